// Looks at the rings of a journal that a server may have open.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "erda/status.h"
#include "journal/disk.h"
#include "journal/identity.h"
#include "journal/place.h"
#include "journal/ring_file.h"

namespace erda::journal {

// Owns the open file, and never writes to it. One thread at a time calls it.
class RingView {
 public:
  // Returns errors as RingFile::Open does, but none because another process has the file open.
  static Result<RingView> Open(const std::string& path);

  [[nodiscard]] const RingFileHeader& header() const { return header_; }
  [[nodiscard]] RingIdentity identity(uint32_t shard) const { return {header_.uuid, header_.secret, shard}; }

  // Where a ring began and ended at some moment of the call. The server may have gone on since.
  struct Ends {
    Place checkpoint;
    Place end;
    uint64_t epoch;
  };
  // Returns kUnavailable if the server makes checkpoints faster than this can read. REQUIRES: shard < header().shards.
  Result<Ends> Look(uint32_t shard);

 private:
  RingView(std::unique_ptr<Disk> disk, const RingFileHeader& header);

  std::unique_ptr<Disk> disk_;
  RingFileHeader header_;
};

}  // namespace erda::journal
