// The folder of an archive. It has the files of one pool; each file's name tells its shard and its first place:
//
//   shard-003-00000000000000012288.erda-archive
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "erda/status.h"
#include "journal/archive_file_reader.h"
#include "journal/identity.h"
#include "journal/place.h"

namespace erda::journal {

// The names of the files as Open found them. Any thread may call the functions.
class ArchiveFolder {
 public:
  // Lists the files that are complete. Other files do not count. Returns an error if there is no such folder.
  static Result<ArchiveFolder> Open(const std::string& path);

  [[nodiscard]] static std::string PathOf(const std::string& folder, uint32_t shard, Place first);
  [[nodiscard]] static std::string TemporaryPathOf(const std::string& folder, uint32_t shard);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool empty() const { return files_.empty(); }
  // Returns the first places of the shard's files, in order. May be called for any shard.
  [[nodiscard]] const std::vector<Place>& FirstPlaces(uint32_t shard) const;

  // Opens a file, and checks that its header agrees with its name. Returns kInvalidArgument if it is of another pool or
  // journal, and other errors as ArchiveFileReader::Open does.
  [[nodiscard]] Result<ArchiveFileReader> OpenFile(const RingIdentity& identity, Place first) const;
  // The same for the shard's last file. REQUIRES: the shard has files.
  [[nodiscard]] Result<ArchiveFileReader> OpenLast(const RingIdentity& identity) const {
    return OpenFile(identity, FirstPlaces(identity.shard).back());
  }

 private:
  explicit ArchiveFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::map<uint32_t, std::vector<Place>> files_;
};

}  // namespace erda::journal
