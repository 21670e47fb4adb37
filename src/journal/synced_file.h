// The pool file of a pool with a journal. All threads sync it with one flush (group_flush.h): the kernel tells an error
// of the file to one call alone.
#pragma once

#include <unistd.h>

#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/unique_fd.h"
#include "erda/status.h"
#include "journal/group_flush.h"

namespace erda::journal {

class SyncedFile {
 public:
  SyncedFile(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  [[nodiscard]] int fd() const { return fd_.get(); }
  // Any thread: returns ok if the disk has all that was written before. After an error every call returns it.
  Status Sync() {
    return flush_.Flush([this] {
      return ::fdatasync(fd_.get()) == 0 ? Status() : ErrnoStatus("cannot write pool " + path_ + " to its disk");
    });
  }

 private:
  const UniqueFd fd_;
  const std::string path_;
  GroupFlush flush_;
};

}  // namespace erda::journal
