#include "bench/journal/journaled_server.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/bytes.h"
#include "base/unique_fd.h"

namespace erda::journal_bench {

namespace {

constexpr uint64_t kRusageBlock = 512;  // ru_oublock counts blocks of this size.

// The file's pages are clean after the sync, so the kernel can drop them.
Status DropPages(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || ::fdatasync(fd.get()) != 0) return ErrnoStatus("cannot flush " + path);
  const int error = ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  return error == 0 ? Status() : ErrnoStatus("cannot drop the pages of " + path, error);
}

}  // namespace

JournaledServer::JournaledServer(const Settings& settings, std::string program)
    : program_(std::move(program)),
      disk_(settings.folder),
      memory_("/dev/shm"),
      remover_({disk_.path(), memory_.path(), socket_.path()}) {
  serve_.address = "shm:" + socket_.path() + "/socket";
  serve_.pool = disk_.path() + "/pool";
  serve_.pool_size = settings.pool_size;
  serve_.journal = disk_.path() + "/journal";
  serve_.journal_size = settings.journal_size;
  serve_.journal_memory = memory_.path();
  serve_.keep = true;
  serve_.max_clients = static_cast<uint32_t>(settings.clients) + 8;
}

Status JournaledServer::Start() {
  if (disk_.path().empty() || memory_.path().empty() || socket_.path().empty()) {
    return ErrnoStatus("cannot make a temporary folder");
  }
  auto process = floors::ServerProcess::Start(program_, serve_);
  if (!process.ok()) return process.status();
  process_ = *std::move(process);
  return {};
}

Status JournaledServer::Stop() { return std::exchange(process_, nullptr)->Stop(); }

Status JournaledServer::LoseMemory() {
  std::error_code failed;
  for (const auto& file : std::filesystem::directory_iterator(memory_.path(), failed)) {
    std::filesystem::remove(file.path(), failed);
  }
  if (failed) return ErrnoStatus("cannot remove the image", failed.value());
  return DropPages(serve_.pool);
}

uint64_t BytesWrittenByServers() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return static_cast<uint64_t>(usage.ru_oublock) * kRusageBlock;
}

}  // namespace erda::journal_bench
