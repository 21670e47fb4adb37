// The start of a pool with a journal (docs/journal.md, "Start"). It finds the image that an earlier process left, or
// makes one from the pool file, the rings and the front. Then image and rings go together, the rings name the front,
// and the archive knows where they begin.
//
// Owns nothing of what it is given. One thread uses it, before the shards and the threads of the journal exist.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "erda/status.h"
#include "format/superblock.h"
#include "journal/archiver.h"
#include "journal/front.h"
#include "journal/image.h"
#include "journal/journal_options.h"
#include "journal/ring.h"
#include "journal/ring_file.h"
#include "journal/synced_file.h"

namespace erda::journal {

// How a journaled pool was found when it was opened.
struct JournalStart {
  bool had_image = false;      // An earlier server left the memory.
  uint64_t bytes_applied = 0;  // Of the rings and the front, without an image.
};

class Starting {
 public:
  struct Parts {
    const JournalOptions& options;
    const format::Superblock& superblock;
    bool clean;        // The pool file says that the pool was closed cleanly.
    SyncedFile& file;  // The pool file.
    const RingFile& rings;
    Front* front;        // Null: there is no front.
    Archiver* archiver;  // Null: there is no archive.
  };
  explicit Starting(const Parts& parts) : parts_(parts) {}

  struct Started {
    std::unique_ptr<Image> image;
    std::vector<Ring> rings;
    JournalStart how;
  };
  // Returns errors as JournaledPool::Open does.
  Result<Started> Run();

 private:
  // Called for each record of each shard.
  using Visit = std::function<Status(uint32_t shard, const Record& record)>;

  // Opens the image of an earlier process if it fits the rings. Returns kNotFound if there is no image that counts.
  Result<Started> FindImage();
  // Returns true if the image is of an earlier life of the rings, and false if it fits them.
  Result<bool> IsOlder(Image& image, const std::vector<Ring>& rings);
  // Brings the pool file up to the end of rings and front, and makes an image of it.
  Result<Started> MakeImage();
  Result<std::vector<Ring>> OpenRings(const Visit& visit);
  // Finds the front's parts. Returns an error if the rings need a front that is not there.
  Status TakeFront(const std::vector<Ring>& rings);
  // Has the rings name the front.
  Status NameFront(std::vector<Ring>* rings);
  // Visits the bytes of the front that follow the end of the ring. Returns the place of their end, or that of the ring.
  Result<Place> VisitFront(const Ring& ring, uint32_t shard, const Visit& visit);
  // The archive learns where the rings begin and end. `ends`: it has got their records, and what a front has, up to
  // these places. Null: the streams in memory have them.
  Status BeginArchive(const std::vector<Ring>& rings, const std::vector<Place>* ends);
  [[nodiscard]] ImageShape Shape() const;
  // Returns the error with the journal's name.
  [[nodiscard]] Status InJournal(const Status& status) const {
    return {status.code(), "journal " + parts_.options.journal + ": " + std::string(status.message())};
  }

  const Parts parts_;
};

}  // namespace erda::journal
