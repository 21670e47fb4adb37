#include "nvm/pool.h"

#include <fcntl.h>
#include <libpmem.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <limits>
#include <utility>

#include "base/bytes.h"

namespace erda::nvm {

namespace {

class DramPool final : public Pool {
 public:
  DramPool(SharedMemory memory, std::chrono::nanoseconds write_latency) : memory_(std::move(memory)) {
    bytes_ = memory_.bytes();
    durability_ = Durability::kVolatile;
    write_latency_ = write_latency;
  }
  [[nodiscard]] MemoryView view() const override { return memory_.view(); }
  [[nodiscard]] bool created() const override { return true; }
  void RemoveIfCreated() override {}

 private:
  // Nothing of DRAM outlives the process, so there is nothing to write back.
  void FlushRange(const std::byte* /*begin*/, size_t /*size*/) override {}
  void Drain() override {}

  SharedMemory memory_;
};

// A file or a DAX device, mapped by libpmem.
class FilePool final : public Pool {
 public:
  struct Descriptors {
    UniqueFd lock;  // holds the lock; never handed out, since a lock lives as long as any copy of its descriptor
    UniqueFd read_write;
    UniqueFd read_only;
  };

  FilePool(std::string path, std::span<std::byte> bytes, bool is_pmem, bool created, bool is_device, Descriptors fds,
           std::chrono::nanoseconds write_latency)
      : path_(std::move(path)), is_pmem_(is_pmem), created_(created), is_device_(is_device), fds_(std::move(fds)) {
    bytes_ = bytes;
    durability_ = is_pmem ? Durability::kPowerSafe : Durability::kProcessSafe;
    write_latency_ = write_latency;
  }
  FilePool(const FilePool&) = delete;
  FilePool& operator=(const FilePool&) = delete;
  ~FilePool() override { pmem_unmap(bytes_.data(), bytes_.size()); }

  [[nodiscard]] MemoryView view() const override { return {bytes_, fds_.read_write.get(), fds_.read_only.get()}; }
  [[nodiscard]] bool created() const override { return created_; }
  [[nodiscard]] bool is_device() const override { return is_device_; }
  void RemoveIfCreated() override {
    if (created_) ::unlink(path_.c_str());
  }

 private:
  // The page cache keeps what a dead process stored, and msync for each put would cost milliseconds without making the
  // pool power-safe in between: on an ordinary file there is nothing to do.
  void FlushRange(const std::byte* begin, size_t size) override {
    if (is_pmem_) pmem_flush(begin, size);  // takes any alignment
  }
  void Drain() override {
    if (is_pmem_) pmem_drain();
  }

  std::string path_;
  bool is_pmem_;
  bool created_;
  bool is_device_;
  Descriptors fds_;
};

Status InPath(const std::string& path, Code code, const std::string& what) {
  return {code, "pool " + path + ": " + what};
}

// Opens and locks before anything is looked at, so that no one else can be inside.
Result<UniqueFd> OpenLocked(const std::string& path, uint64_t size, bool* created) {
  *created = false;
  int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) {
    if (size == 0) return InPath(path, Code::kInvalidArgument, "does not exist, and no size was given to create it");
    fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_CREAT | O_EXCL, 0600);
    *created = fd >= 0;
  }
  if (fd < 0) return ErrnoStatus("cannot open pool " + path);
  UniqueFd lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return InPath(path, Code::kUnavailable, "another server has it open");
    return ErrnoStatus("cannot lock pool " + path);
  }
  return lock;
}

// The bytes behind a descriptor: a file's size, or what libpmem finds for a device when it maps it (0 here).
Result<uint64_t> ExistingSize(const std::string& path, int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return ErrnoStatus("cannot examine pool " + path);
  if (S_ISCHR(info.st_mode)) return uint64_t{0};
  if (!S_ISREG(info.st_mode)) return InPath(path, Code::kInvalidArgument, "is neither a file nor a DAX device");
  return static_cast<uint64_t>(info.st_size);
}

Status Allocate(const std::string& path, int fd, uint64_t size) {
  // Real blocks, so that a full disk is an error here and not a SIGBUS later.
  if (const int error = ::posix_fallocate(fd, 0, static_cast<off_t>(size)); error != 0) {
    return ErrnoStatus("cannot allocate " + std::to_string(size) + " bytes for pool " + path, error);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Pool>> Pool::Open(const PoolOptions& options) {
  const std::string& path = options.path;
  if (path.empty()) return Status(Code::kInvalidArgument, "no pool was named");
  if (std::cmp_greater(options.size, std::numeric_limits<off_t>::max())) {
    return InPath(path, Code::kInvalidArgument, "cannot have " + std::to_string(options.size) + " bytes");
  }
  if (path == "dram:") {
    if (options.size == 0) return InPath(path, Code::kInvalidArgument, "needs a size");
    auto memory = SharedMemory::Create("erda-pool", options.size, options.writers);
    if (!memory.ok()) return memory.status();
    return std::unique_ptr<Pool>(std::make_unique<DramPool>(*std::move(memory), options.write_latency));
  }

  bool created = false;
  auto lock = OpenLocked(path, options.size, &created);
  if (!lock.ok()) return lock.status();
  const auto fail = [&](Status status) {
    if (created) ::unlink(path.c_str());
    return status;
  };

  auto existing = ExistingSize(path, lock->get());
  if (!existing.ok()) return fail(existing.status());
  if (created) {
    if (auto status = Allocate(path, lock->get(), options.size); !status.ok()) return fail(std::move(status));
  } else if (*existing != 0 && options.size != 0 && *existing != options.size) {
    return InPath(
        path, Code::kInvalidArgument,
        "has " + std::to_string(*existing) + " bytes, not the " + std::to_string(options.size) + " asked for");
  }

  FilePool::Descriptors fds;
  fds.lock = *std::move(lock);
  fds.read_write = UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  fds.read_only = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fds.read_write || !fds.read_only) return fail(ErrnoStatus("cannot open pool " + path));

  size_t mapped = 0;
  int is_pmem = 0;
  void* at = pmem_map_file(path.c_str(), 0, 0, 0, &mapped, &is_pmem);
  if (at == nullptr) {
    if (!created && *existing == 0) return InPath(path, Code::kInvalidArgument, "cannot be mapped; it has no bytes");
    return fail(ErrnoStatus("cannot map pool " + path));
  }
  // A file is read here and there, as an index is. With the kernel's read-ahead, 8 MiB about each first touch on some
  // machines, a look at each segment's header would read all of the file. Those who go on in order say so
  // (Writer::WillUse).
  if (is_pmem == 0) (void)::madvise(at, mapped, MADV_RANDOM);
  const std::span<std::byte> bytes(static_cast<std::byte*>(at), mapped);
  const bool is_device = !created && *existing == 0;  // ExistingSize knows the size of every file
  auto pool =
      std::make_unique<FilePool>(path, bytes, is_pmem != 0, created, is_device, std::move(fds), options.write_latency);
  if (options.size != 0 && mapped != options.size) {
    return InPath(path, Code::kInvalidArgument,
                  "has " + std::to_string(mapped) + " bytes, not the " + std::to_string(options.size) + " asked for");
  }
  return std::unique_ptr<Pool>(std::move(pool));
}

}  // namespace erda::nvm
