#include "nvm/pool.h"

#include <fcntl.h>
#include <libpmem.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <string_view>
#include <utility>

#include "base/boot.h"
#include "base/bytes.h"

namespace erda::nvm {

namespace {

constexpr uint64_t kPage = 4096;  // of any mapping on x86-64, or a part of one

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
  Status Widen(uint64_t /*kept*/, uint64_t /*size*/) override {
    return {Code::kInvalidArgument, "a pool in dram: keeps the size that it was made with"};
  }

 private:
  // Nothing of DRAM outlives the process, so there is nothing to write back.
  void FlushRange(const std::byte* /*begin*/, size_t /*size*/) override {}
  void Drain() override {}

  SharedMemory memory_;
};

struct Mapping {
  std::span<std::byte> bytes;
  bool is_pmem = false;
};

// All of what is there. No bytes: errno says why.
Mapping Map(const std::string& path) {
  size_t mapped = 0;
  int is_pmem = 0;
  void* at = pmem_map_file(path.c_str(), 0, 0, 0, &mapped, &is_pmem);
  if (at == nullptr) return {};
  // A file is read here and there, as an index is. With the kernel's read-ahead, 8 MiB about each first touch on some
  // machines, a look at each segment's header would read all of the file. Those who go on in order say so
  // (Writer::WillUse).
  if (is_pmem == 0) (void)::madvise(at, mapped, MADV_RANDOM);
  return {{static_cast<std::byte*>(at), mapped}, is_pmem != 0};
}

// The file's pages are its only copy: there is no disk that the kernel writes them to.
bool IsInMemory(int fd) {
  struct statfs info {};
  return ::fstatfs(fd, &info) == 0 &&
         (info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC || info.f_type == HUGETLBFS_MAGIC);
}

// A file or a DAX device, mapped by libpmem.
class FilePool final : public Pool {
 public:
  struct Descriptors {
    UniqueFd lock;  // holds the lock; never handed out, since a lock lives as long as any copy of its descriptor
    UniqueFd read_write;
    UniqueFd read_only;
  };

  FilePool(std::string path, Mapping mapping, bool created, bool is_device, Descriptors fds,
           std::chrono::nanoseconds write_latency)
      : path_(std::move(path)),
        mapping_(mapping),
        created_(created),
        is_device_(is_device),
        in_memory_(IsInMemory(fds.lock.get())),
        fds_(std::move(fds)) {
    bytes_ = mapping.bytes;
    durability_ = mapping.is_pmem ? Durability::kPowerSafe : Durability::kProcessSafe;
    write_latency_ = write_latency;
  }
  FilePool(const FilePool&) = delete;
  FilePool& operator=(const FilePool&) = delete;
  ~FilePool() override { Unmap(); }

  [[nodiscard]] MemoryView view() const override { return {bytes_, fds_.read_write.get(), fds_.read_only.get()}; }
  [[nodiscard]] bool created() const override { return created_; }
  [[nodiscard]] bool is_device() const override { return is_device_; }
  [[nodiscard]] bool written_back() const override { return !mapping_.is_pmem && !in_memory_; }
  void RemoveIfCreated() override {
    if (created_) ::unlink(path_.c_str());
  }
  Status Widen(uint64_t kept, uint64_t size) override;
  Status Sync(uint64_t offset, uint64_t size) override;
  Status SyncName() override;
  [[nodiscard]] format::BootId boot() const override { return mapping_.is_pmem ? format::BootId{} : BootOfMachine(); }

 private:
  void Unmap() {
    if (!mapping_.bytes.empty()) pmem_unmap(mapping_.bytes.data(), mapping_.bytes.size());
    mapping_ = {};
    bytes_ = {};
  }
  // The page cache keeps what a dead process stored, and msync for each put would cost milliseconds without making the
  // pool power-safe in between: on an ordinary file there is nothing to do.
  void FlushRange(const std::byte* begin, size_t size) override {
    if (mapping_.is_pmem) pmem_flush(begin, size);  // takes any alignment
  }
  void Drain() override {
    if (mapping_.is_pmem) pmem_drain();
  }

  std::string path_;
  Mapping mapping_;  // all of the file, also where the pool is a part of it
  bool created_;
  bool is_device_;
  bool in_memory_;
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
    if (size == 0) return InPath(path, Code::kInvalidArgument, "does not exist; give a size to create it");
    fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_CREAT | O_EXCL, 0600);
    *created = fd >= 0;
  }
  if (fd < 0) return ErrnoStatus("cannot open pool " + path);
  UniqueFd lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK)
      return InPath(path, Code::kUnavailable, "another server has it open; stop that server first");
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

// Gives a range of the file real blocks, so that a full disk is an error here and not a SIGBUS later. Keeps what is in
// the range. In pieces, since a signal ends a call in the middle, and the next one has to get farther.
int AllocateRange(int fd, uint64_t begin, uint64_t end) {
  constexpr uint64_t kPiece = 1 << 30;
  for (uint64_t at = begin; at < end;) {
    const uint64_t size = std::min(kPiece, end - at);
    const int error = ::posix_fallocate(fd, static_cast<off_t>(at), static_cast<off_t>(size));
    if (error == EINTR) continue;
    if (error != 0) return error;
    at += size;
  }
  return 0;
}

Status Allocate(const std::string& path, int fd, uint64_t size) {
  if (const int error = AllocateRange(fd, 0, size); error != 0) {
    return ErrnoStatus("cannot allocate " + std::to_string(size) + " bytes for pool " + path, error);
  }
  return {};
}

// A sparse copy of a pool has holes where the pool has zeroes. (So has, to this call, what was allocated and not
// written yet: to allocate that again takes nothing.)
Status FillHoles(const std::string& path, int fd, uint64_t size) {
  for (uint64_t at = 0; at < size;) {
    const off_t hole = ::lseek(fd, static_cast<off_t>(at), SEEK_HOLE);
    if (hole < 0 || std::cmp_greater_equal(hole, size)) return {};  // none, or the file system does not know
    const off_t data = ::lseek(fd, hole, SEEK_DATA);
    const uint64_t end = data < 0 ? size : std::min(static_cast<uint64_t>(data), size);  // < 0: it goes to the end
    if (const int error = AllocateRange(fd, static_cast<uint64_t>(hole), end); error != 0) {
      return ErrnoStatus("cannot allocate the holes of pool " + path +
                             ", a sparse file: " + std::to_string(end - static_cast<uint64_t>(hole)) +
                             " bytes at offset " + std::to_string(hole),
                         error);
    }
    at = end;
  }
  return {};
}

// A part goes by msync, so that a mark does not wait for the gigabytes that a dead server left in the page cache. All
// of it goes by fdatasync, which also writes what is needed to find the bytes: the file's size and blocks. (A DAX
// file's bytes are persistent with the Writer's Fence; its size and blocks are not.)
Status FilePool::Sync(uint64_t offset, uint64_t size) {
  const bool all = offset == 0 && size == bytes_.size();
  if (is_device_ || (mapping_.is_pmem && !all)) return {};
  const int failed = all ? ::fdatasync(fds_.lock.get())
                         : ::msync(bytes_.data() + AlignDown(offset, kPage), size + offset % kPage, MS_SYNC);
  return failed == 0 ? Status() : ErrnoStatus("cannot write pool " + path_ + " to its disk");
}

Status FilePool::SyncName() {
  if (!created_) return {};
  const std::string folder = std::filesystem::absolute(path_).parent_path();
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // A folder that the server may write to and not read cannot be opened, and so not be synced either.
  if (!fd && errno != EACCES) return ErrnoStatus("cannot open " + folder + ", the folder of the new pool");
  if (fd && ::fsync(fd.get()) != 0)
    return ErrnoStatus("cannot write " + folder + ", the folder of the new pool, to its disk");
  return {};
}

Status FilePool::Widen(uint64_t kept, uint64_t size) {
  const int fd = fds_.lock.get();
  if (is_device_) {
    if (size <= mapping_.bytes.size()) {
      bytes_ = mapping_.bytes.first(size);
      return {};
    }
    return InPath(path_, Code::kInvalidArgument,
                  "is a device of " + std::to_string(mapping_.bytes.size()) + " bytes: " + std::to_string(size) +
                      " bytes do not fit");
  }
  Unmap();
  // What an earlier attempt left behind goes, so that all that comes is zeroes.
  Status status;
  if (::ftruncate(fd, static_cast<off_t>(kept)) != 0) status = ErrnoStatus("cannot shorten the file of pool " + path_);
  if (status.ok()) status = Allocate(path_, fd, size);
  if (!status.ok()) {
    // (If that fails as well, the file stays longer than the pool, which does no harm.)
    [[maybe_unused]] const int undone = ::ftruncate(fd, static_cast<off_t>(kept));
  }
  // The file is that long persistently, before anything says that the pool is.
  if (status.ok() && ::fsync(fd) != 0) status = ErrnoStatus("cannot write pool " + path_ + " to its disk");
  mapping_ = Map(path_);
  bytes_ = mapping_.bytes;
  if (status.ok() && bytes_.size() != size) status = ErrnoStatus("cannot map pool " + path_);
  return status;
}

}  // namespace

Result<std::unique_ptr<Pool>> Pool::Open(const PoolOptions& options) {
  const std::string& path = options.path;
  if (path.empty()) return Status(Code::kInvalidArgument, "the name of the pool is missing");
  if (std::cmp_greater(options.size, std::numeric_limits<off_t>::max())) {
    return InPath(path, Code::kInvalidArgument, "cannot have " + std::to_string(options.size) + " bytes");
  }
  if (path == "dram:") {
    if (options.size == 0) return InPath(path, Code::kInvalidArgument, "needs a size; give one");
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
  } else if (*existing != 0 && *existing < options.size) {
    return InPath(path, Code::kInvalidArgument,
                  "has " + std::to_string(*existing) + " bytes, not the " + std::to_string(options.size) +
                      " asked for; erda-pool resize makes a pool larger");
  } else if (auto status = FillHoles(path, lock->get(), *existing); !status.ok()) {
    return status;
  }

  FilePool::Descriptors fds;
  fds.lock = *std::move(lock);
  fds.read_write = UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  fds.read_only = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fds.read_write || !fds.read_only) return fail(ErrnoStatus("cannot open pool " + path));

  const Mapping mapping = Map(path);
  if (mapping.bytes.empty()) {
    if (!created && *existing == 0)
      return InPath(path, Code::kInvalidArgument,
                    "cannot be mapped: it is an empty file, or a device other than a DAX device");
    return fail(ErrnoStatus("cannot map pool " + path));
  }
  const uint64_t mapped = mapping.bytes.size();
  const bool is_device = !created && *existing == 0;  // ExistingSize knows the size of every file
  auto pool = std::make_unique<FilePool>(path, mapping, created, is_device, std::move(fds), options.write_latency);
  if (mapped < options.size) {
    return InPath(path, Code::kInvalidArgument,
                  "has " + std::to_string(mapped) + " bytes, not the " + std::to_string(options.size) + " asked for");
  }
  return std::unique_ptr<Pool>(std::move(pool));
}

}  // namespace erda::nvm
