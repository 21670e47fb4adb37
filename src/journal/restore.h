// Makes a pool as it was at some time, of a base copy and an archive (docs/journal.md, "An archive").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "erda/status.h"
#include "journal/place.h"

namespace erda::journal {

struct RestoreOptions {
  std::string base;
  std::string archive;
  std::string pool;     // The new pool,
  std::string journal;  // and its new journal, of `journal_size` bytes.
  uint64_t journal_size = 1 << 30;
  // Unix time in microseconds. UINT64_MAX: all that the archive has.
  uint64_t until_us = UINT64_MAX;
  bool disk_in_memory = false;  // As for JournalOptions.
};

struct Restored {
  struct Shard {
    Place place;       // The pool has the stream up to there.
    uint64_t time_us;  // When the server wrote the last bytes of it. 0: the base copy was enough.
    bool is_cut;       // The archive has more, which came after the time that was asked for.
  };
  std::vector<Shard> shards;
};

// The new pool needs recovery, which the server does that opens it. Leaves neither file after an error. Returns
// kConflict if one of the two exists. Returns kInvalidArgument if the archive is of another pool, or the time is before
// the end of the base copy. Returns kCorruption if the archive has a gap or is damaged, and kNotFound if it ends before
// the base copy's end.
Result<Restored> RestorePool(const RestoreOptions& options);

}  // namespace erda::journal
