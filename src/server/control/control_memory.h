// The memory that a shard publishes to its clients (format/control_block.h), and the statistics in it.
//
// Owns the memory, with its counters and its activity. Each word has one writer, and any thread may read it. The
// shard's thread is the writer, unless a comment says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/shared_memory.h"
#include "erda/server.h"
#include "format/activity.h"
#include "format/control_block.h"
#include "nvm/journal_counts.h"
#include "server/control/activity.h"
#include "server/control/counters.h"

namespace erda::server {

class ControlMemory {
 public:
  static Result<ControlMemory> Create(const format::Geometry& geometry);

  [[nodiscard]] const SharedMemory& memory() const { return memory_; }
  [[nodiscard]] std::span<std::byte> bytes() const { return memory_.bytes(); }
  [[nodiscard]] Counters& counters() { return counters_; }
  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] ActivityCounts& activity() { return activity_; }
  // Adds the shard's activity so far to the sum. The shard may go on meanwhile.
  void AddActivity(Activity* sum) const { format::AddActivity(activity_.bytes(), sum); }
  // Counts the recovery of all shards. Requires: the shard does not serve yet.
  void CountRecovery(const RecoveryReport& report);
  // Stores what the journal tells. One thread at a time calls it, which need not be the shard's.
  void CountJournal(const nvm::JournalCounts& counts);
  // Stores how many descriptors the process has open. The cleaner's thread calls it.
  void CountDescriptors(uint64_t open) { counters_.Set(format::Counter::kDescriptors, open); }
  // Returns the time by which values expire, as clients read it.
  [[nodiscard]] uint64_t time() const {
    return LoadAs<uint64_t>(bytes().subspan(offsetof(format::ControlBlock, time)));
  }

 private:
  ControlMemory(SharedMemory memory, const format::Geometry& geometry);

  SharedMemory memory_;
  Counters counters_;
  ActivityCounts activity_;
};

}  // namespace erda::server
