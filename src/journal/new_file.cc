#include "journal/new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "base/bytes.h"
#include "base/file_system.h"

namespace erda::journal {

Status SyncFolder(const std::string& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return ErrnoStatus("cannot write folder " + folder + " to its disk");
  return {};
}

NewFile::NewFile(std::string path, std::string temporary, UniqueFd fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)) {}

Result<std::unique_ptr<NewFile>> NewFile::Create(const std::string& path, const std::string& temporary) {
  if (::access(path.c_str(), F_OK) == 0) {
    return Status(Code::kConflict, path + " exists already and is not overwritten; remove it, or choose another name");
  }
  UniqueFd fd(::open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return ErrnoStatus("cannot create " + temporary);
  return std::unique_ptr<NewFile>(new NewFile(path, temporary, std::move(fd)));
}

NewFile::~NewFile() {
  if (!renamed_) (void)::unlink(temporary_.c_str());
}

Status NewFile::Keep() {
  // The name comes last. Otherwise a power cut could leave the name with a part of the file.
  if (::fdatasync(fd_.get()) != 0) return ErrnoStatus("cannot write " + temporary_ + " to its disk");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return ErrnoStatus("cannot rename " + temporary_ + " to " + path_);
  }
  renamed_ = true;
  Status status = SyncFolder(FolderOf(path_));
  // A later attempt needs the name.
  if (!status.ok()) (void)::unlink(path_.c_str());
  return status;
}

}  // namespace erda::journal
