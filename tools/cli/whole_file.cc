#include "tools/cli/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace erda::cli {

WholeFile::WholeFile(std::string path) : target_(std::move(path)) {
  struct stat status {};
  in_place_ = stat(target_.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
  // Where a link leads to, if it does.
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
  if (fsync(fileno(file_.get())) != 0 || std::rename(name_.c_str(), target_.c_str()) != 0) return false;
  file_.reset();
  return true;
}

}  // namespace erda::cli
