// The thread that writes the stream of one shard to its ring, and tells what the disk holds.
//
// The shard appends to the stream, and asks if somebody waits. All that the stream has at that moment goes to the disk
// together, with one flush. Other bytes go there a little later.
//
// Owns the ring: no other thread uses it. The checkpointer has its checkpoints made here. Neither owns the stream, nor
// frees its space.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/event_fd.h"
#include "erda/status.h"
#include "journal/group_wait.h"
#include "journal/health.h"
#include "journal/ring.h"
#include "journal/stream.h"
#include "nvm/journal_counts.h"

namespace erda::journal {

class RingWriter {
 public:
  struct Hooks {
    std::function<uint64_t()> micros;  // The server's time for the records. The writer's thread calls it.
    std::function<void()> held;        // More is held, or the disk has failed. The writer's thread calls it.
    std::function<void()> full;        // The ring needs a checkpoint. The writer's thread calls it.
  };
  // `lazy`: bytes that nobody waits for are written after this time.
  // REQUIRES: the stream and the health outlive the writer, and the ring ends at a place that the stream still has.
  RingWriter(Stream& stream, Ring ring, Nanoseconds lazy, Health& health, Hooks hooks);
  RingWriter(const RingWriter&) = delete;
  RingWriter& operator=(const RingWriter&) = delete;
  ~RingWriter() { Stop(); }

  // Returns kResourceExhausted if the system gives no thread or descriptor.
  Status Start();
  // Stops the thread. The stream keeps all that is not written.
  void Stop();

  // Any thread: somebody waits until the disk holds what the stream has now. `waiters`: how many do. kUrgent: the
  // writer waits for no others.
  static constexpr uint64_t kUrgent = UINT64_MAX;
  void Ask(uint64_t waiters = kUrgent);
  // The place up to which the disk holds the stream.
  [[nodiscard]] const std::atomic<Place>& held() const { return held_; }
  // Any thread but the writer's: waits until the disk holds what the stream has now. Returns the failure if it never
  // will. REQUIRES: the writer is started.
  Status AwaitHeld();
  // Waits for at most `most` until somebody calls Tell, or until more is held.
  void AwaitNews(Nanoseconds most);
  // Any thread: ends the present AwaitNews.
  void Tell();

  // The checkpointer's thread: makes the place durable as the ring's checkpoint. REQUIRES: the pool file has the stream
  // up to there, synced, and held() had this value once. The writer is started.
  Status Checkpoint(Place place);
  // The last checkpoint that is durable. Only the checkpointer's thread asks.
  [[nodiscard]] Place checkpoint() const { return checkpoint_; }
  // Any thread: what the writer and its stream have done. The checkpoints are not its own.
  [[nodiscard]] nvm::JournalCounts counts() const;

 private:
  void Run();
  // Writes what the stream has, and flushes. Returns false if there was nothing to write.
  bool WriteAll();
  bool WriteOrNoMemory();
  Status WriteRecords(Place end);
  void Count();
  void TellHeld();
  void Sleep();
  // Before a write that somebody waits for: waits for others (group_wait.h).
  void AwaitGroup();
  void MakeCheckpoint();
  [[nodiscard]] bool stops() const { return stops_.load(std::memory_order_acquire); }

  Stream& stream_;
  Ring ring_;
  const Nanoseconds lazy_;
  Health& health_;
  const Hooks hooks_;
  EventFd bell_;
  const uint64_t ring_bytes_;
  std::atomic<Place> held_;
  // Numbers for other threads.
  std::atomic<uint64_t> bytes_written_{0};
  std::atomic<uint64_t> flushes_{0};
  std::atomic<uint64_t> used_bytes_{0};
  std::atomic<uint64_t> full_times_{0};
  std::atomic<Place> asked_{0};
  std::atomic<uint64_t> waiters_{0};  // As the last Ask said.
  std::atomic<uint64_t> wanted_{0};   // An Ask of fewer does not end the writer's sleep.
  GroupWait group_;
  std::atomic<bool> sleeps_{false};
  std::atomic<bool> stops_{false};
  bool full_ = false;        // The last record found no room.
  bool asked_room_ = false;  // For the next checkpoint.
  bool due_ = false;         // The bytes that nobody waits for are due.

  std::mutex mutex_;
  std::condition_variable news_;
  uint64_t told_ = 0;  // Counts the news.
  Place checkpoint_;
  // A checkpoint that the checkpointer waits for.
  std::atomic<bool> wants_checkpoint_{false};
  Place wanted_checkpoint_ = 0;
  Status checkpoint_status_;

  std::thread thread_;
};

}  // namespace erda::journal
