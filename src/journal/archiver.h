// The thread that brings what the disk holds of the streams into an archive (docs/journal.md, "An archive").
//
// It takes the bytes from the streams' memory, which keeps them until a checkpoint has them. No checkpoint goes beyond
// archived(). So after a kill the archive goes on from the memory, and after a power cut from the ring.
//
// An error of the archive stops no put for good. The archiver tries again. If the memory or the ring of a shard gets
// full meanwhile, it leaves out what the shard has. Then the archive has a gap, and needs a new base copy.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "erda/status.h"
#include "journal/archive_file_writer.h"
#include "journal/archive_marks.h"
#include "journal/identity.h"
#include "journal/place.h"
#include "journal/record.h"
#include "journal/stream.h"

namespace erda::journal {

struct ArchiverOptions {
  std::string folder;
  // A file is written when its first byte has this age. It is also the most that the loss of the machine takes.
  Nanoseconds age = std::chrono::seconds(60);
  Nanoseconds retry = std::chrono::seconds(1);  // After an error.
  // More is archived, or a gap was left, or the counts have changed. The archiver's thread calls it.
  std::function<void()> changed = [] {};
  std::function<void(const std::string& line)> event = [](const std::string& /*line*/) {};
};

// The numbers of a shard's archive, since this process opened it.
struct ArchiveCounts {
  uint64_t bytes_written = 0;
  uint64_t waiting_bytes = 0;  // Of the stream: held, and not archived.
  uint64_t gaps = 0;
  bool failing = false;  // The last attempt had an error.
};

class Archiver {
 public:
  // Opens the folder, and locks it. Returns kInvalidArgument if there is no such folder, or if it has an archive of
  // another pool or journal. Returns kUnavailable if another server has it, and kCorruption if the last file of a shard
  // is damaged.
  static Result<std::unique_ptr<Archiver>> Open(ArchiverOptions options, std::vector<RingIdentity> shards);
  Archiver(const Archiver&) = delete;
  Archiver& operator=(const Archiver&) = delete;
  ~Archiver() { Stop(); }

  // --- The start. One thread calls these.

  // The ring of a shard has this record. Called for all of them in order, once or again. Note: the stream's memory has
  // the bytes. Store: nothing else has them, and they go into the archive now.
  void Note(uint32_t shard, const Record& record);
  void Store(uint32_t shard, const Record& record);
  // The ring has no more records. From now on archived() is right. `stored`: by Store. Returns kInvalidArgument if the
  // archive cannot be of this ring.
  Status Begin(uint32_t shard, Place checkpoint, Place end, bool stored);

  // --- The service.

  struct Source {
    const Stream* stream;
    uint64_t epoch;
    std::function<bool()> is_low;  // The shard will soon wait for a checkpoint.
  };
  // REQUIRES: Begin was called for the shard. The stream outlives the thread.
  void SetSource(uint32_t shard, Source source);
  // Returns kResourceExhausted if the system gives no thread. REQUIRES: all shards have a source.
  Status Start();
  void Stop();

  // The writer of the shard's ring calls what these return.
  [[nodiscard]] ArchiveMarks& marks(uint32_t shard) { return shards_[shard]->marks; }
  // Any thread: no checkpoint may go beyond this place.
  [[nodiscard]] const std::atomic<Place>& archived(uint32_t shard) const { return shards_[shard]->archived; }
  // Any thread: a shard needs a checkpoint.
  void Ask();
  // Any thread but the archiver's: all that the disk holds at this moment goes into the archive. Returns the error if
  // it does not. REQUIRES: the archiver is started.
  Status Finish();
  [[nodiscard]] ArchiveCounts counts(uint32_t shard) const;

 private:
  struct Shard {
    RingIdentity identity{};
    std::optional<Place> found;  // The end of the archive, as it was found.
    std::optional<Place> last;   // The same, after what Store has added.
    bool is_foreign = false;     // A record of the ring does not fit to it.
    Source source{};
    uint64_t file_bytes = 0;  // A file has about that much of the stream.
    ArchiveMarks marks;
    std::atomic<Place> archived{0};
    // The thread's.
    Status failure;         // Of the last attempt.
    uint64_t attempts = 0;  // That failed, one after the other.
    Nanoseconds retry_at{0};
    std::optional<Nanoseconds> first_at{};  // When it saw the first byte that waits.
    std::optional<ArchiveFileWriter> file;  // Of Store.
    // Numbers for other threads.
    std::atomic<uint64_t> bytes_written{0};
    std::atomic<uint64_t> gaps{0};
    std::atomic<bool> failing{false};
  };

  Archiver(ArchiverOptions options, UniqueFd folder);
  void Loop();
  // Writes what is due. Returns true if something has changed.
  bool Look(Shard& shard, bool asked, bool finishing);
  // Writes all that waits. Returns true if something has changed.
  bool Write(Shard& shard);
  Status WriteFile(Shard& shard);
  Status StoreRecord(Shard& shard, const Record& record);
  Status Keep(Shard& shard, ArchiveFileWriter& file);
  void LeaveGap(Shard& shard, Place from, Place to);

  const ArchiverOptions options_;
  const UniqueFd folder_;  // With the lock.
  std::vector<std::unique_ptr<Shard>> shards_;

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t asked_ = 0;      // Calls of Ask and Finish.
  uint64_t done_ = 0;       // This many of them are answered.
  uint64_t finishing_ = 0;  // Calls of Finish that wait. They do not wait for the next attempt after an error.
  Status done_status_;      // Of the last answer.
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace erda::journal
