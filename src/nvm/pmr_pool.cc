#include "nvm/pmr_pool.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

#include "base/bytes.h"
#include "base/file_io.h"
#include "base/file_system.h"
#include "base/map_shared.h"
#include "nvm/pmr_registers.h"

namespace erda::nvm {

namespace {

constexpr std::string_view kNvmeClass = "0x010802";
constexpr std::string_view kWriteCombining = "_wc";

Status InRegion(const std::string& resource, Code code, const std::string& what) {
  return {code, "persistent memory region " + resource + ": " + what};
}

// A mapped file. Unmaps it at its end.
class Mapped {
 public:
  explicit Mapped(std::span<std::byte> bytes) : bytes_(bytes) {}
  Mapped(Mapped&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  Mapped& operator=(Mapped&&) = delete;
  ~Mapped() {
    if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  }
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  // Reads from the device, and writes to it. The compiler leaves out none of these.
  [[nodiscard]] uint32_t Load(uint64_t at) const { return *Word(at); }
  void Store(uint64_t at, uint32_t value) { *Word(at) = value; }

 private:
  [[nodiscard]] volatile uint32_t* Word(uint64_t at) const {
    return reinterpret_cast<volatile uint32_t*>(bytes_.data() + at);
  }
  std::span<std::byte> bytes_;
};

// All stores of this CPU that came before are on their way to the device.
void DrainStores() {
#if defined(__x86_64__)
  __builtin_ia32_mfence();  // The read that follows must not come before the stores.
#elif defined(__aarch64__)
  asm volatile("dsb sy" ::: "memory");
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

class PmrPool final : public Pool {
 public:
  PmrPool(Mapped region, Mapped registers, UniqueFd fd, UniqueFd lock)
      : region_(std::move(region)),
        registers_(std::move(registers)),
        reads_region_(!pmr::StatusReadPersists(registers_.Load(pmr::kPmrCap))),
        fd_(std::move(fd)),
        lock_(std::move(lock)) {
    bytes_ = region_.bytes();
    durability_ = Durability::kPowerSafe;
  }
  [[nodiscard]] MemoryView view() const override { return {bytes_, fd_.get(), -1}; }
  [[nodiscard]] bool created() const override { return false; }
  [[nodiscard]] bool is_device() const override { return true; }
  [[nodiscard]] bool failed() const override { return failed_.load(std::memory_order_relaxed); }
  void RemoveIfCreated() override {}
  Status Widen(uint64_t /*kept*/, uint64_t /*size*/) override {
    return {Code::kInvalidArgument, "a persistent memory region keeps its size"};
  }

 private:
  void FlushRange(const std::byte* /*begin*/, size_t /*size*/) override {}
  void Drain() override {
    DrainStores();
    if (reads_region_) (void)region_.Load(0);
    if (!pmr::Works(registers_.Load(pmr::kPmrSts))) failed_.store(true, std::memory_order_relaxed);
  }

  Mapped region_;
  Mapped registers_;
  const bool reads_region_;
  UniqueFd fd_;
  UniqueFd lock_;
  std::atomic<bool> failed_ = false;  // Several threads may use the region. The flag orders nothing else.
};

// Splits /sys/.../resource4_wc into the path without _wc, and the 4. Returns no number if the name is another one.
struct ResourceName {
  std::string plain;
  int number = -1;
};
ResourceName Parse(const std::string& resource) {
  ResourceName name{resource, -1};
  if (name.plain.ends_with(kWriteCombining)) name.plain.resize(name.plain.size() - kWriteCombining.size());
  const std::string_view file = std::string_view(name.plain).substr(name.plain.rfind('/') + 1);
  constexpr std::string_view kPrefix = "resource";
  if (!file.starts_with(kPrefix)) return name;
  int number = -1;
  const auto [end, error] = std::from_chars(file.data() + kPrefix.size(), file.data() + file.size(), number);
  if (error == std::errc() && end == file.data() + file.size()) name.number = number;
  return name;
}

// Returns the first line of a file in the device's folder, or nothing.
std::string FirstLine(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[32];
  const ssize_t n = fd ? ::read(fd.get(), text, sizeof(text)) : -1;
  const std::string_view read(text, n < 0 ? 0 : static_cast<size_t>(n));
  return std::string(read.substr(0, read.find('\n')));
}

Result<Mapped> MapFile(const std::string& path, int fd, uint64_t size) {
  const auto bytes = MapShared(fd, size, true);
  if (!bytes.empty()) return Mapped(bytes);
  if (errno != EINVAL) return ErrnoStatus("cannot map " + path);
  return Status(Code::kUnavailable, "the kernel does not map " + path +
                                        ", since a driver uses the device; start the kernel with iomem=relaxed, or "
                                        "unbind the driver");
}

// Without this the device does not answer, and reads give ones.
Status SwitchMemoryOn(const std::string& folder) {
  const std::string path = folder + "/enable";
  if (FirstLine(path) != "0") return {};
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return ErrnoStatus("cannot switch on the device: cannot open " + path);
  return WriteRange(fd.get(), path, 0, AsBytes("1"));
}

// Returns ok when the region is ready and works.
Status SwitchRegionOn(const std::string& resource, Mapped& registers) {
  using std::chrono::milliseconds;
  using std::chrono::steady_clock;
  constexpr milliseconds kMore{500};  // Some devices say that they take no time.
  const uint32_t control = registers.Load(pmr::kPmrCtl);
  if ((control & pmr::kPmrCtlEn) == 0) registers.Store(pmr::kPmrCtl, control | pmr::kPmrCtlEn);
  const auto until = steady_clock::now() + milliseconds(pmr::ReadyMilliseconds(registers.Load(pmr::kPmrCap))) + kMore;
  while (!pmr::IsReady(registers.Load(pmr::kPmrSts))) {
    if (steady_clock::now() >= until) return InRegion(resource, Code::kUnavailable, "it does not become ready");
    std::this_thread::sleep_for(milliseconds(1));
  }
  const uint32_t status = registers.Load(pmr::kPmrSts);
  if (pmr::Works(status)) return {};
  return InRegion(resource, Code::kUnavailable,
                  "the disk says that it does not work: health " + std::to_string(pmr::HealthOf(status)) + ", error " +
                      std::to_string(pmr::ErrorOf(status)));
}

}  // namespace

Result<std::unique_ptr<Pool>> OpenPmr(const std::string& resource) {
  const ResourceName name = Parse(resource);
  if (name.number < 0) {
    return InRegion(resource, Code::kInvalidArgument,
                    "is not the file of a PCI resource, such as /sys/bus/pci/devices/0000:00:05.0/resource4");
  }
  const std::string folder = FolderOf(name.plain);
  if (const std::string found = FirstLine(folder + "/class"); found != kNvmeClass) {
    return InRegion(resource, Code::kInvalidArgument,
                    "is not of an NVMe disk: its PCI class is '" + found + "', not " + std::string(kNvmeClass));
  }
  // The same file for both kinds of mapping.
  UniqueFd lock(::open(name.plain.c_str(), O_RDWR | O_CLOEXEC));
  UniqueFd fd(::open(resource.c_str(), O_RDWR | O_CLOEXEC));
  if (!lock || !fd) return ErrnoStatus("cannot open the persistent memory region " + resource);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus("cannot lock the persistent memory region " + resource);
    return InRegion(resource, Code::kUnavailable, "another server has it open; stop that server first");
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return ErrnoStatus("cannot examine " + resource);
  if (auto status = SwitchMemoryOn(folder); !status.ok()) return status;

  const std::string first = folder + "/resource0";
  const UniqueFd first_fd(::open(first.c_str(), O_RDWR | O_CLOEXEC));
  if (!first_fd) return ErrnoStatus("cannot open " + first);
  auto registers = MapFile(first, first_fd.get(), pmr::kRegisterBytes);
  if (!registers.ok()) return registers.status();
  if ((registers->Load(pmr::kCapHigh) & pmr::kCapHighPmrs) == 0) {
    return InRegion(resource, Code::kInvalidArgument, "this disk has none");
  }
  if (const uint32_t number = pmr::ResourceOf(registers->Load(pmr::kPmrCap)); std::cmp_not_equal(number, name.number)) {
    return InRegion(resource, Code::kInvalidArgument, "this disk has it in resource" + std::to_string(number));
  }
  if (auto status = SwitchRegionOn(resource, *registers); !status.ok()) return status;
  auto region = MapFile(resource, fd.get(), static_cast<uint64_t>(info.st_size));
  if (!region.ok()) return region.status();
  return std::unique_ptr<Pool>(
      std::make_unique<PmrPool>(*std::move(region), *std::move(registers), std::move(fd), std::move(lock)));
}

}  // namespace erda::nvm
