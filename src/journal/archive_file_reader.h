// Reads one file of an archive (archive_format.h). The file may have any bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/unique_fd.h"
#include "erda/status.h"
#include "journal/archive_format.h"
#include "journal/place.h"

namespace erda::journal {

// A piece of a stream, with the time at which the server wrote it to the ring.
struct ArchivedPiece {
  Place from;
  uint64_t time_us;
  std::span<const std::byte> bytes;  // They last until the visitor returns.

  [[nodiscard]] Place end() const { return from + bytes.size(); }
};

// Owns the open file. One thread at a time calls it.
class ArchiveFileReader {
 public:
  // Reads the header. Returns kCorruption with the file's name if it is no archive file, is damaged or cut short, and
  // kInvalidArgument if it has another format version.
  static Result<ArchiveFileReader> Open(const std::string& path);

  [[nodiscard]] const ArchiveHeader& header() const { return header_; }
  // Calls `visit` for each piece, in order. An error of it ends Read, which returns it. Returns kCorruption, with the
  // names of file and place, at the first frame that is damaged.
  using Visit = std::function<Status(const ArchivedPiece& piece)>;
  [[nodiscard]] Status Read(const Visit& visit) const;

 private:
  ArchiveFileReader(std::string path, UniqueFd fd, const ArchiveHeader& header);
  [[nodiscard]] Status Damaged(Place place, const std::string& what) const;
  // Reads the frame at this offset of the file, which begins at this place. Advances both.
  Status ReadFrame(uint64_t* offset, Place* place, const Visit& visit) const;

  std::string path_;
  UniqueFd fd_;
  ArchiveHeader header_;
};

}  // namespace erda::journal
