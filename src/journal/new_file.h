// A file that gets its name when it is complete and on the disk. Until then it has a temporary name.
#pragma once

#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "erda/status.h"

namespace erda::journal {

// Owns the open file. Removes it if Keep was not called, or failed. One thread at a time calls it.
class NewFile {
 public:
  // Makes an empty file. `temporary` is in the folder of `path`; a file with this name is overwritten. Other users can
  // read neither. Returns kConflict if `path` exists.
  static Result<std::unique_ptr<NewFile>> Create(const std::string& path, const std::string& temporary);
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }
  // Syncs the file, gives it its name, and syncs the folder. Then the file survives a power cut. Removes it after
  // an error.
  Status Keep();

 private:
  NewFile(std::string path, std::string temporary, UniqueFd fd);

  const std::string path_;
  const std::string temporary_;
  const UniqueFd fd_;
  bool renamed_ = false;
};

// Returns ok if the disk has the names of the files in this folder.
Status SyncFolder(const std::string& folder);

}  // namespace erda::journal
