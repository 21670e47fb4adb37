#include "server/control/control_memory.h"

#include <utility>

namespace erda::server {

using format::Counter;

ControlMemory::ControlMemory(SharedMemory memory, const format::Geometry& geometry)
    : memory_(std::move(memory)), counters_(memory_.bytes()), activity_(memory_.bytes(), geometry) {}

Result<ControlMemory> ControlMemory::Create(const format::Geometry& geometry) {
  auto memory =
      SharedMemory::Create("erda-control", format::ControlRegionBytes(geometry), SharedMemory::Writers::kOwner);
  if (!memory.ok()) return memory.status();
  return ControlMemory(*std::move(memory), geometry);
}

void ControlMemory::CountRecovery(const RecoveryReport& report) {
  counters_.Set(Counter::kRecoveryNanos, static_cast<uint64_t>(report.time.count()));
  counters_.Set(Counter::kRecoveryObjects, report.objects);
  counters_.Set(Counter::kRecoverySettled, report.settled);
  counters_.Set(Counter::kRecoveryTakenBack, report.taken_back);
  counters_.Set(Counter::kRecoveryDropped, report.dropped);
  counters_.Set(Counter::kRecoveryDeletesFinished, report.deletes_finished);
  counters_.Set(Counter::kRecoveryDamaged, report.damaged);
  counters_.Set(Counter::kRecoveryShardsVerified, report.shards_verified);
}

void ControlMemory::CountJournal(const nvm::JournalCounts& counts) {
  counters_.Set(Counter::kJournalStreamBytes, counts.stream_bytes);
  counters_.Set(Counter::kJournalHeldBytes, counts.held_bytes);
  counters_.Set(Counter::kJournalBytesWritten, counts.bytes_written);
  counters_.Set(Counter::kJournalFlushes, counts.flushes);
  counters_.Set(Counter::kJournalRingBytes, counts.ring_bytes);
  counters_.Set(Counter::kJournalFullTimes, counts.full_times);
  counters_.Set(Counter::kJournalRingUsed, counts.ring_used_bytes);
  counters_.Set(Counter::kJournalCheckpoints, counts.checkpoints);
  counters_.Set(Counter::kJournalCheckpointAt, counts.checkpoint_at_ms);
  counters_.Set(Counter::kJournalsFailed, counts.failed ? 1 : 0);
  counters_.Set(Counter::kJournalErrorNumber, static_cast<uint64_t>(counts.error_number));
  counters_.Set(Counter::kJournalFrontBytes, counts.front_bytes);
  counters_.Set(Counter::kJournalFrontUsed, counts.front_used_bytes);
  counters_.Set(Counter::kJournalFrontFullTimes, counts.front_full_times);
  counters_.Set(Counter::kArchiveBytesWritten, counts.archive_bytes_written);
  counters_.Set(Counter::kArchiveWaiting, counts.archive_waiting_bytes);
  counters_.Set(Counter::kArchivesFailing, counts.archive_failing ? 1 : 0);
  counters_.Set(Counter::kArchiveGaps, counts.archive_gaps);
}

}  // namespace erda::server
