// The calls of the C library that SimulatedFiles or a WatchedFolder answer, for all of this program. For other files,
// and while there are neither, they are the kernel's.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <vector>

#include "journal/simulated_files.h"
#include "journal/watched_folder.h"

namespace erda::journal {

namespace {

// Calls `simulated` with the files that there are. Calls the kernel if they have no answer.
template <class Simulated, class Kernel>
auto Answer(const Simulated& simulated, const Kernel& kernel) -> decltype(kernel()) {
  if (SimulatedFiles* const files = PresentFiles()) {
    if (const auto answer = simulated(*files)) return *answer;
  }
  return kernel();
}

// Returns true if the watched folder has the call fail. Then errno has the error.
template <class Watched>
bool Fails(const Watched& watched) {
  WatchedFolder* const folder = PresentFolder();
  const int error = folder == nullptr ? 0 : watched(*folder);
  if (error != 0) errno = error;
  return error != 0;
}

}  // namespace

// The names of the functions here are not those of the C library, whose headers may define some as inline.
extern "C" {

ssize_t ErdaTestWrite(int fd, const void* bytes, size_t size, off_t offset) __asm__("pwrite");
ssize_t ErdaTestWriteAll(int fd, const iovec* pieces, int count, off_t offset) __asm__("pwritev");
int ErdaTestAllocate(int fd, int mode, off_t offset, off_t size) __asm__("fallocate");
ssize_t ErdaTestRead(int fd, void* bytes, size_t size, off_t offset) __asm__("pread");
int ErdaTestSync(int fd) __asm__("fsync");
int ErdaTestDataSync(int fd) __asm__("fdatasync");
int ErdaTestWriteback(int fd, off64_t offset, off64_t size, unsigned flags) __asm__("sync_file_range");
int ErdaTestMappingSync(void* begin, size_t size, int flags) __asm__("msync");
int ErdaTestUnlink(const char* path) __asm__("unlink");
int ErdaTestRename(const char* from, const char* to) __asm__("rename");

ssize_t ErdaTestWrite(int fd, const void* bytes, size_t size, off_t offset) {
  if (Fails([&](WatchedFolder& folder) { return folder.Write(fd); })) return -1;
  const iovec piece{const_cast<void*>(bytes), size};
  return Answer(
      [&](SimulatedFiles& files) {
        return files.Write(fd, {&piece, 1}, static_cast<uint64_t>(offset));
      },
      [&] { return ssize_t{::syscall(SYS_pwrite64, fd, bytes, size, offset)}; });
}

ssize_t ErdaTestWriteAll(int fd, const iovec* pieces, int count, off_t offset) {
  const std::span all(pieces, static_cast<size_t>(count));
  return Answer([&](SimulatedFiles& files) { return files.Write(fd, all, static_cast<uint64_t>(offset)); },
                [&] { return ssize_t{::syscall(SYS_pwritev, fd, pieces, count, offset, 0)}; });
}

// A range that is zeroed is a write of zeroes to the simulation.
int ErdaTestAllocate(int fd, int mode, off_t offset, off_t size) {
  return Answer(
      [&](SimulatedFiles& files) -> std::optional<int> {
        if (mode != (FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE)) return {};
        std::vector<std::byte> zeroes(static_cast<size_t>(size));
        const iovec piece{zeroes.data(), zeroes.size()};
        const auto written = files.Write(fd, {&piece, 1}, static_cast<uint64_t>(offset));
        return written ? std::optional(*written < 0 ? -1 : 0) : std::nullopt;
      },
      [&] { return static_cast<int>(::syscall(SYS_fallocate, fd, mode, offset, size)); });
}

ssize_t ErdaTestRead(int fd, void* bytes, size_t size, off_t offset) {
  const ssize_t count = ::syscall(SYS_pread64, fd, bytes, size, offset);
  SimulatedFiles* const files = PresentFiles();
  if (files != nullptr && count > 0) {
    files->HasRead(fd, {static_cast<std::byte*>(bytes), static_cast<size_t>(count)}, static_cast<uint64_t>(offset));
  }
  return count;
}

int ErdaTestSync(int fd) {
  if (Fails([&](WatchedFolder& folder) { return folder.Sync(fd); })) return -1;
  return Answer([&](SimulatedFiles& files) { return files.Sync(fd); },
                [&] { return static_cast<int>(::syscall(SYS_fsync, fd)); });
}

int ErdaTestDataSync(int fd) {
  if (Fails([&](WatchedFolder& folder) { return folder.Sync(fd); })) return -1;
  return Answer([&](SimulatedFiles& files) { return files.Sync(fd); },
                [&] { return static_cast<int>(::syscall(SYS_fdatasync, fd)); });
}

int ErdaTestWriteback(int fd, off64_t offset, off64_t size, unsigned flags) {
  return Answer([&](SimulatedFiles& files) { return files.StartWriteback(fd); },
                [&] { return static_cast<int>(::syscall(SYS_sync_file_range, fd, offset, size, flags)); });
}

int ErdaTestMappingSync(void* begin, size_t size, int flags) {
  return Answer([&](SimulatedFiles& files) { return files.SyncMapping(begin, size); },
                [&] { return static_cast<int>(::syscall(SYS_msync, begin, size, flags)); });
}

int ErdaTestUnlink(const char* path) {
  return Answer([&](SimulatedFiles& files) { return files.Unlink(path); },
                [&] { return static_cast<int>(::syscall(SYS_unlink, path)); });
}

int ErdaTestRename(const char* from, const char* to) {
  if (Fails([&](WatchedFolder& folder) { return folder.Rename(from, to); })) return -1;
  return static_cast<int>(::syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to));
}

}  // extern "C"

}  // namespace erda::journal
