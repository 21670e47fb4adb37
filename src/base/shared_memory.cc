#include "base/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <utility>

#include "base/bytes.h"
#include "base/map_shared.h"

namespace erda {

namespace {

Result<std::span<std::byte>> MapWhole(int fd, size_t size, bool writable) {
  const std::span<std::byte> bytes = MapShared(fd, size, writable);
  if (bytes.empty()) return ErrnoStatus("cannot map " + std::to_string(size) + " bytes of shared memory");
  return bytes;
}

}  // namespace

SharedMemory::SharedMemory(std::span<std::byte> bytes, UniqueFd fd, UniqueFd fd_read_only)
    : bytes_(bytes), fd_(std::move(fd)), fd_read_only_(std::move(fd_read_only)) {}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})),
      fd_(std::move(other.fd_)),
      fd_read_only_(std::move(other.fd_read_only_)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(fd_, other.fd_);
  std::swap(fd_read_only_, other.fd_read_only_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

Result<SharedMemory> SharedMemory::Create(const std::string& name, size_t size, Writers writers) {
  UniqueFd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return ErrnoStatus("cannot create shared memory");
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return ErrnoStatus("cannot size shared memory to " + std::to_string(size) + " bytes");
  }
  // A process with a read-only descriptor could open the memory again through /proc, with the rights of the file. The
  // kernel gives every user rights on a new memfd.
  if (::fchmod(fd.get(), 0600) != 0) return ErrnoStatus("cannot keep shared memory from other users");
  UniqueFd read_only(::open(("/proc/self/fd/" + std::to_string(fd.get())).c_str(), O_RDONLY | O_CLOEXEC));
  if (!read_only) return ErrnoStatus("cannot open shared memory for reading");
  auto bytes = MapWhole(fd.get(), size, true);
  if (!bytes.ok()) return bytes.status();
  SharedMemory memory(*bytes, std::move(fd), std::move(read_only));
  // The mapping above stays writable. With the seal, no descriptor of any user is enough to map the memory for writing.
  const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | (writers == Writers::kOwner ? F_SEAL_FUTURE_WRITE : 0);
  if (::fcntl(memory.fd_.get(), F_ADD_SEALS, seals) != 0) return ErrnoStatus("cannot seal shared memory");
  return memory;
}

Result<SharedMemory> SharedMemory::Map(UniqueFd fd, size_t size, bool writable) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return ErrnoStatus("cannot examine shared memory of the peer");
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    return Status(Code::kInvalidArgument, "the peer's shared memory is not sealed against shrinking");
  if (std::cmp_not_equal(info.st_size, size)) {
    return Status(Code::kInvalidArgument, "the peer's shared memory has " + std::to_string(info.st_size) +
                                              " bytes, not " + std::to_string(size));
  }
  auto bytes = MapWhole(fd.get(), size, writable);
  if (!bytes.ok()) return bytes.status();
  return SharedMemory(*bytes, std::move(fd), UniqueFd());
}

}  // namespace erda
