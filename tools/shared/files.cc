#include "tools/shared/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/unique_fd.h"

namespace erda::cli {

Result<std::string> ReadAll(const std::string& path, size_t most) {
  const bool from_stdin = path == "-";
  const auto failed = [&] {
    return Status(Code::kInternal, "cannot read " + (from_stdin ? "stdin" : path) + ": " + std::strerror(errno));
  };
  const UniqueFd opened(from_stdin ? -1 : open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const int file = from_stdin ? STDIN_FILENO : opened.get();
  if (file < 0) return failed();
  std::string all;
  std::array<char, 65536> buffer;
  while (all.size() <= most) {
    const ssize_t size = read(file, buffer.data(), buffer.size());
    if (size == 0) return all;
    if (size > 0) all.append(buffer.data(), static_cast<size_t>(size));
    if (size < 0 && errno != EINTR) return failed();
  }
  return all;
}

WholeFile::WholeFile(std::string path) : target_(std::move(path)) {
  struct stat status {};
  in_place_ = stat(target_.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
  // Follows a link to its target, if that exists.
  std::error_code none;
  if (const auto real = std::filesystem::canonical(target_, none); !none) target_ = real.string();
  name_ = in_place_ ? target_ : target_ + ".part.XXXXXX";
  const int descriptor = in_place_ ? open(name_.c_str(), O_WRONLY | O_CLOEXEC) : mkostemp(name_.data(), O_CLOEXEC);
  if (descriptor >= 0) file_.reset(fdopen(descriptor, "w"));
}

WholeFile::~WholeFile() {
  if (file_ && !in_place_) std::remove(name_.c_str());
}

bool WholeFile::Keep() {
  if (std::fflush(file_.get()) != 0) return false;
  if (in_place_) return true;
  // Syncs first the bytes, and then the name in the folder: after a power cut the file is the old one or the new one.
  const std::filesystem::path parent = std::filesystem::path(target_).parent_path();
  const UniqueFd folder(open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || fsync(fileno(file_.get())) != 0 || std::rename(name_.c_str(), target_.c_str()) != 0) return false;
  file_.reset();
  return fsync(folder.get()) == 0;
}

}  // namespace erda::cli
