#include "fuzz/journal_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "base/file_io.h"
#include "base/unique_fd.h"

namespace erda::fuzz {

namespace {

void WriteFile(const std::string& path, const std::vector<std::byte>& bytes) {
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd || !WriteRange(fd.get(), path, 0, bytes).ok()) std::abort();
}

std::vector<std::byte> ReadFile(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return {};
  std::vector<std::byte> bytes(static_cast<size_t>(::lseek(fd.get(), 0, SEEK_END)));
  if (!ReadRange(fd.get(), path, 0, bytes).ok()) std::abort();
  return bytes;
}

}  // namespace

std::string JournalFolder::InMemory(const std::string& suffix) const {
  return folder_ / ("erda-"
                    "070707" +
                    std::string(26, '0') + suffix);
}

journal::JournalOptions JournalFolder::Options() const {
  return {.pool = pool(), .journal = journal(), .memory = folder_.path(), .disk_in_memory = true};
}

void JournalFolder::Write(const JournalFiles& files) const {
  WriteFile(pool(), files.pool);
  WriteFile(journal(), files.journal);
  Reboot();
  if (files.streams.empty()) return;
  WriteFile(InMemory(".streams"), files.streams);
  WriteFile(InMemory(".pool"), files.image);
}

JournalFiles JournalFolder::Read() const {
  return {ReadFile(pool()), ReadFile(journal()), ReadFile(InMemory(".streams")), ReadFile(InMemory(".pool"))};
}

void JournalFolder::Reboot() const {
  ::unlink(InMemory(".streams").c_str());
  ::unlink(InMemory(".pool").c_str());
}

}  // namespace erda::fuzz
