// The thread that brings the pool file up to what the disk holds of the streams. After that the rings and the streams
// can use their space again.
//
// It takes the bytes from the streams' memory, and writes the pool file (J6: only what is held). It syncs the file,
// and then has each ring make a checkpoint (J4). Then it frees the stream. It does so in steps (checkpoint_steps.h).
//
// Nobody else writes to the file's bytes of the streams. Does not own streams and writers.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "erda/status.h"
#include "journal/checkpoint_steps.h"
#include "journal/health.h"
#include "journal/ring_writer.h"
#include "journal/stream.h"
#include "journal/synced_file.h"
#include "journal/writeback.h"

namespace erda::journal {

class Checkpointer {
 public:
  struct Source {
    Stream* stream;
    RingWriter* writer;
    // No checkpoint goes beyond this place. Null: there is no archive.
    const std::atomic<Place>* archived = nullptr;
  };
  // How often it looks how full the streams are, and how old a checkpoint gets if the pool changes.
  static constexpr Nanoseconds kLook = std::chrono::milliseconds(20);
  static constexpr Nanoseconds kAge = std::chrono::seconds(10);

  // `file` is the pool file. `made`: the checkpointer's thread calls it after each checkpoint. REQUIRES: all of these
  // outlive the checkpointer.
  Checkpointer(
      SyncedFile& file, uint64_t pool_size, std::vector<Source> sources, Health& health,
      std::function<void()> made = [] {});
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;
  ~Checkpointer() { Stop(); }

  // Returns kResourceExhausted if the system gives no thread. REQUIRES: the writers are started.
  Status Start();
  // REQUIRES: the writers are still started.
  void Stop();

  // Any thread: a checkpoint is due now.
  void Ask();
  // Any thread but the checkpointer's: makes a checkpoint of all that the disk holds at this moment, or later.
  // REQUIRES: the checkpointer is started.
  Status Run();
  // Any thread: how many checkpoints were made, and the Unix time in milliseconds at which the last one began.
  [[nodiscard]] uint64_t made() const { return made_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t made_at_ms() const { return made_at_ms_.load(std::memory_order_relaxed); }

 private:
  void Loop();
  [[nodiscard]] bool IsFull() const;
  // Returns the places up to which the disk holds the streams, and the archive has them.
  [[nodiscard]] CheckpointSteps::Places Held() const;
  // Brings the file up to what the disk holds now.
  Status MakeAll();
  // One checkpoint of all shards.
  Status Make(const CheckpointSteps::Places& places);

  SyncedFile& file_;
  Writeback writeback_;  // The thread's.
  const uint64_t pool_size_;
  const std::vector<Source> sources_;
  Health& health_;
  const std::function<void()> tell_made_;
  CheckpointSteps steps_;  // The thread's.

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t asked_ = 0;  // Calls of Ask and Run.
  uint64_t done_ = 0;   // This many of them are answered.
  bool stops_ = false;
  std::atomic<uint64_t> made_{0};
  std::atomic<uint64_t> made_at_ms_{0};
  std::thread thread_;
};

}  // namespace erda::journal
