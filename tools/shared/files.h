// Reading a file, and writing one that is there whole or not at all.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "erda/status.h"

namespace erda::cli {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// All of a file, or of stdin if its name is -. The message of a failure names it. Of more than `most` bytes it reads
// somewhat more than these, so that the caller sees that there are too many.
[[nodiscard]] Result<std::string> ReadAll(const std::string& path, size_t most = SIZE_MAX);

// A file gets its name when it is whole, and on the medium: what had it before stays until then. It is for the user
// alone, as a pool is: mode 0600. What is no regular file, as /dev/null, is written in place.
class WholeFile {
 public:
  explicit WholeFile(std::string path);
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  ~WholeFile();  // removes what was not kept

  [[nodiscard]] std::FILE* file() const { return file_.get(); }  // null if it could not be made; errno says why
  // The file that is written, for messages.
  [[nodiscard]] const std::string& name() const { return name_; }
  // All is written. False if that fails; errno says why.
  [[nodiscard]] bool Keep();

 private:
  std::string target_;
  std::string name_;
  bool in_place_;
  File file_;
};

}  // namespace erda::cli
