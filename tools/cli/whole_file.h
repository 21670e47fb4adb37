// Files that are there whole, or not at all; and reading one.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

namespace erda::cli {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

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
