// Reads a file, and writes a file that appears whole or not at all.
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

// Returns all bytes of a file, or of stdin if the path is -. The message of a failure names the file. If there are more
// than `most` bytes, it returns somewhat more than these, so that the caller sees that there are too many.
[[nodiscard]] Result<std::string> ReadAll(const std::string& path, size_t most = SIZE_MAX);

// A file that gets its name when it is whole, and on the medium. Until then an older file of that name stays. Its mode
// is 0600, as that of a pool. A path that is not a regular file, such as /dev/null, is written in place.
class WholeFile {
 public:
  explicit WholeFile(std::string path);
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  ~WholeFile();  // removes the file if it was not kept

  // Null if the file could not be made; errno has the reason.
  [[nodiscard]] std::FILE* file() const { return file_.get(); }
  // Returns the name of the file that is written, for messages.
  [[nodiscard]] const std::string& name() const { return name_; }
  // Call it when all bytes are written. Gives the file its name. Returns false if that fails; errno says why.
  [[nodiscard]] bool Keep();

 private:
  std::string target_;
  std::string name_;
  bool in_place_;
  File file_;
};

}  // namespace erda::cli
