#include "nvm/pool.h"

#include <fcntl.h>
#include <libpmem.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <string_view>
#include <utility>

#include "base/boot.h"
#include "base/bytes.h"
#include "base/file_system.h"
#include "base/map_shared.h"
#include "nvm/pages.h"
#include "nvm/pool_file.h"

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
  [[nodiscard]] LargePages large_pages() const override { return LargePages::kInMemory; }
  Status Widen(uint64_t /*kept*/, uint64_t /*size*/) override {
    return {Code::kInvalidArgument, "a pool in dram: keeps the size that it was made with"};
  }

 private:
  // DRAM does not outlive the process, so there is nothing to write back.
  void FlushRange(const std::byte* /*begin*/, size_t /*size*/) override {}
  void Drain() override {}

  SharedMemory memory_;
};

struct Mapping {
  std::span<std::byte> bytes;
  bool is_pmem = false;
};

// Maps all of a file or device. If it returns no bytes, errno has the reason.
Mapping Map(const std::string& path) {
  size_t mapped = 0;
  int is_pmem = 0;
  void* at = pmem_map_file(path.c_str(), 0, 0, 0, &mapped, &is_pmem);
  if (at == nullptr) return {};
  // The server reads a file at scattered places, like those of an index. On some machines, the kernel's read-ahead
  // brings in 8 MiB around each first touch. A look at each segment's header would then read all of the file. Code that
  // reads in order asks for read-ahead itself (Writer::WillUse).
  if (is_pmem == 0) (void)::madvise(at, mapped, MADV_RANDOM);
  return {{static_cast<std::byte*>(at), mapped}, is_pmem != 0};
}

// A file or a DAX device, mapped by libpmem.
class FilePool final : public Pool {
 public:
  struct Descriptors {
    UniqueFd lock;  // Holds the lock. Never handed out, since a lock lives as long as any copy of its descriptor.
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
        enlarges_(!mapping.is_pmem && !in_memory_ && KernelEnlarges(FolderOf(path_))),
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
  [[nodiscard]] LargePages large_pages() const override {
    if (mapping_.is_pmem) return LargePages::kNone;
    if (in_memory_) return LargePages::kInMemory;
    return enlarges_ && MemoryHasRoomFor(bytes_.size()) ? LargePages::kOnDisk : LargePages::kNone;
  }
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
  // For an ordinary file there is nothing to do. The page cache keeps the stores of a dead process. An msync for each
  // put would cost milliseconds, and would still not make the pool power-safe between two calls.
  void FlushRange(const std::byte* begin, size_t size) override {
    if (mapping_.is_pmem) pmem_flush(begin, size);  // Takes any alignment.
  }
  void Drain() override {
    if (mapping_.is_pmem) pmem_drain();
  }

  std::string path_;
  Mapping mapping_;  // All of the file, even if the pool is only a part of it.
  bool created_;
  bool is_device_;
  bool in_memory_;
  const bool enlarges_;  // The kernel makes large pages of files in this folder.
  Descriptors fds_;
};

Status Allocate(const std::string& path, int fd, uint64_t size) {
  if (const int error = AllocateRange(fd, 0, size); error != 0) {
    return ErrnoStatus("cannot allocate " + std::to_string(size) + " bytes for pool " + path, error);
  }
  return {};
}

// Allocates the holes that a sparse copy of a pool has in place of zeroes. The call also reports allocated blocks as
// holes if they were never written; to allocate those again costs nothing.
Status FillHoles(const std::string& path, int fd, uint64_t size) {
  for (uint64_t at = 0; at < size;) {
    const off_t hole = ::lseek(fd, static_cast<off_t>(at), SEEK_HOLE);
    // No hole, or the file system does not know its holes.
    if (hole < 0 || std::cmp_greater_equal(hole, size)) return {};
    const off_t data = ::lseek(fd, hole, SEEK_DATA);
    // Below 0: the hole reaches to the end.
    const uint64_t end = data < 0 ? size : std::min(static_cast<uint64_t>(data), size);
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

// Syncs a part with msync, so that a mark does not wait for gigabytes that a dead server left in the page cache. Syncs
// all of the pool with fdatasync, which also writes the file's size and blocks. (The Writer's Fence makes the bytes of
// a DAX file persistent, but not its size and blocks.)
Status FilePool::Sync(uint64_t offset, uint64_t size) {
  const bool all = offset == 0 && size == bytes_.size();
  if (is_device_ || (mapping_.is_pmem && !all)) return {};
  const int failed = all ? ::fdatasync(fds_.lock.get())
                         : ::msync(bytes_.data() + AlignDown(offset, kSmallPage), size + offset % kSmallPage, MS_SYNC);
  return failed == 0 ? Status() : ErrnoStatus("cannot write pool " + path_ + " to its disk");
}

Status FilePool::SyncName() {
  if (!created_) return {};
  const std::string folder = FolderOf(path_);
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // If the server may write to the folder but not read it, the server can neither open nor sync it.
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
  // Removes leftovers of an earlier attempt, so that all new bytes are zeroes.
  Status status;
  if (::ftruncate(fd, static_cast<off_t>(kept)) != 0) status = ErrnoStatus("cannot shorten the file of pool " + path_);
  if (status.ok()) status = Allocate(path_, fd, size);
  if (!status.ok()) {
    // If this fails, too, the file stays longer than the pool. That does no harm.
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

void Pool::Enlarge(uint64_t offset, uint64_t size) {
  if (large_pages() != LargePages::kOnDisk) return;
  const uint64_t begin = AlignUp(offset, kLargePage);
  const uint64_t end = AlignDown(offset + size, kLargePage);
  if (begin < end) EnlargePages(bytes_.subspan(begin, end - begin), view().fd, begin);
}

void Pool::MakeReady(uint64_t offset, uint64_t size) {
  const std::span<std::byte> range = bytes_.subspan(offset, size);
  if (large_pages() == LargePages::kInMemory) MakeLargePages(range);
  if (large_pages() == LargePages::kOnDisk) MakeEnlargedPages(range);
}

// Asks for room first: a memory that is too small would end programs, this one or others.
Status Pool::Populate() {
  const bool in_memory = large_pages() == LargePages::kInMemory;
  struct stat info {};
  if (::fstat(view().fd, &info) != 0) return ErrnoStatus("cannot examine it");
  // Only pages in memory have blocks there. Pages of NVM need no memory.
  const uint64_t made = in_memory ? static_cast<uint64_t>(info.st_blocks) * 512 : 0;
  const uint64_t missing = durability_ == Durability::kPowerSafe ? 0 : size() - std::min(size(), made);
  // Single pages take tables, too: 8 bytes for each page, and as much in each process that maps them.
  if (const uint64_t room = AvailableMemory(); missing + missing / 64 > room) {
    return {Code::kResourceExhausted, "populating it takes " + std::to_string(missing) + " bytes of memory, and only " +
                                          std::to_string(room) + " are free"};
  }
  Enlarge(0, size());
  const bool done = in_memory ? MakeLargePages(bytes_) : MakePages(bytes_);
  return done ? Status() : ErrnoStatus("cannot make all its pages");
}

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
  const bool is_device = !created && *existing == 0;  // ExistingSize knows the size of every file.
  auto pool = std::make_unique<FilePool>(path, mapping, created, is_device, std::move(fds), options.write_latency);
  if (mapped < options.size) {
    return InPath(path, Code::kInvalidArgument,
                  "has " + std::to_string(mapped) + " bytes, not the " + std::to_string(options.size) + " asked for");
  }
  return std::unique_ptr<Pool>(std::move(pool));
}

}  // namespace erda::nvm
