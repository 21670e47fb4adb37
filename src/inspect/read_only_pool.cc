#include "inspect/read_only_pool.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fstream>
#include <utility>

#include "base/bytes.h"

namespace erda::inspect {

namespace {

// Returns 0 for a file without a byte, and for anything that is neither a file nor a DAX device.
uint64_t SizeOf(const struct stat& info) {
  if (S_ISREG(info.st_mode)) return static_cast<uint64_t>(info.st_size);
  if (!S_ISCHR(info.st_mode)) return 0;
  // Among character devices, only DAX devices have a size there.
  const auto device = info.st_rdev;
  std::ifstream file("/sys/dev/char/" + std::to_string(major(device)) + ":" + std::to_string(minor(device)) + "/size");
  uint64_t size = 0;
  file >> size;
  return file ? size : 0;
}

}  // namespace

Result<std::unique_ptr<ReadOnlyPool>> ReadOnlyPool::Open(const std::string& path) {
  const auto in_path = [&path](Code code, const std::string& what) {
    return Status(code, "pool " + path + ": " + what);
  };
  // If the path is a pipe, O_NONBLOCK lets the open return although the pipe has no writer.
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return ErrnoStatus("cannot open pool " + path);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return ErrnoStatus("cannot examine pool " + path);
  if (!S_ISREG(info.st_mode) && !S_ISCHR(info.st_mode)) {
    return in_path(Code::kInvalidArgument, "is neither a file nor a DAX device");
  }
  if (::flock(file.get(), LOCK_SH | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return in_path(Code::kUnavailable, "a server has it open; stop that server first");
    return ErrnoStatus("cannot lock pool " + path);
  }
  // Comes after the lock: a server that had the file open may have been about to create the pool.
  if (::fstat(file.get(), &info) != 0) return ErrnoStatus("cannot examine pool " + path);
  const uint64_t size = SizeOf(info);
  if (size == 0) {
    return in_path(Code::kInvalidArgument,
                   S_ISREG(info.st_mode) ? "has no bytes, so it is not a pool" : "is not a DAX device");
  }
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) return ErrnoStatus("cannot map pool " + path);
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(at), size);
  return std::unique_ptr<ReadOnlyPool>(new ReadOnlyPool(std::move(file), bytes));
}

ReadOnlyPool::~ReadOnlyPool() { ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()); }

}  // namespace erda::inspect
