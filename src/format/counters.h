// The numbers that a server counts. Made by tools/statistics/generate of statistics.toml; do not edit.
#pragma once

#include <cstddef>
#include <cstdint>

namespace erda::format {

// A word of the control block's counters.
enum class Counter : uint32_t {
  kPutsInline,
  kPutsReserved,
  kCommits,
  kDeletes,
  kReports,
  kRefused,
  kViolations,
  kSettled,
  kTakenBack,
  kNvmBytes,
  kNvmFlushes,
  kNvmFences,
  kClients,
  kKeys,
  kIndexSlots,
  kLogBytesUsed,
  kLogBytesTotal,
  kInFlight,
  kSleeps,
  kCleanBytesCopied,
  kCleanNvmBytes,
  kScrubBytes,
  kCleanMoves,
  kCleanRegions,
  kCleanBytesFreed,
  kDamagedKeys,
  kPutsDelayed,
  kFreeRegions,
  kLogBytesLive,
  kCleaning,
  kSetAside,
  kPutsDelegated,
  kChunks,
  kChunkBytes,
  kOverdue,
  kExpired,
  kDescriptors,
  kRegisteredBytes,
  kPutsStaged,
  kRecoveryNanos,
  kRecoveryObjects,
  kRecoverySettled,
  kRecoveryTakenBack,
  kRecoveryDropped,
  kRecoveryDeletesFinished,
  kRecoveryDamaged,
  kRecoveryShardsVerified,
  kSyncs,
  kSyncFailures,
  kSyncedAt,
  kFlipsUndone,
  kJournalStreamBytes,
  kJournalHeldBytes,
  kJournalBytesWritten,
  kJournalFlushes,
  kJournalRingBytes,
  kJournalRingUsed,
  kJournalCheckpoints,
  kJournalCheckpointAt,
  kJournalsFailed,
  kJournalInterval,
  kJournalFullTimes,
  kArchiveBytesWritten,
  kArchiveWaiting,
  kArchivesFailing,
  kArchiveGaps,
  kJournalFrontBytes,
  kJournalFrontUsed,
  kJournalFrontFullTimes,
  kJournalErrorNumber,
  kCount,
};
// Their names in `erda-cli stats`.
inline constexpr const char* kCounterNames[] = {
    "puts_inline",
    "puts_reserved",
    "commits",
    "deletes",
    "reports",
    "refused",
    "violations",
    "settled",
    "taken_back",
    "nvm_bytes_written",
    "nvm_flushes",
    "nvm_fences",
    "clients",
    "keys",
    "index_slots",
    "log_bytes_used",
    "log_bytes_total",
    "in_flight",
    "sleeps",
    "clean_bytes_copied",
    "clean_nvm_bytes",
    "scrub_bytes",
    "clean_moves",
    "clean_regions",
    "clean_bytes_freed",
    "damaged_keys",
    "puts_delayed",
    "free_regions",
    "log_bytes_live",
    "cleaning",
    "set_aside",
    "puts_delegated",
    "chunks",
    "chunk_bytes",
    "overdue",
    "expired",
    "descriptors",
    "registered_bytes",
    "puts_staged",
    "recovery_ns",
    "recovery_objects",
    "recovery_settled",
    "recovery_taken_back",
    "recovery_dropped",
    "recovery_deletes_finished",
    "recovery_damaged",
    "recovery_shards_verified",
    "syncs",
    "sync_failures",
    "synced_at_ms",
    "flips_undone",
    "journal_stream_bytes",
    "journal_held_bytes",
    "journal_bytes_written",
    "journal_flushes",
    "journal_ring_bytes",
    "journal_ring_used",
    "journal_checkpoints",
    "journal_checkpoint_at_ms",
    "journals_failed",
    "journal_interval_ms",
    "journal_full_times",
    "archive_bytes_written",
    "archive_waiting_bytes",
    "archives_failing",
    "archive_gaps",
    "journal_front_bytes",
    "journal_front_used",
    "journal_front_full_times",
    "journal_error_number",
};
static_assert(sizeof(kCounterNames) / sizeof(kCounterNames[0]) == static_cast<size_t>(Counter::kCount));

}  // namespace erda::format

// clang-format off

// X(field): all of ServerStats, in its order.
#define ERDA_STATISTICS(X) \
  X(puts) \
  X(puts_inline) \
  X(puts_staged) \
  X(puts_reserved) \
  X(puts_delegated) \
  X(commits) \
  X(deletes) \
  X(refused) \
  X(violations) \
  X(settled) \
  X(taken_back) \
  X(nvm_bytes_written) \
  X(shards) \
  X(clients) \
  X(keys) \
  X(index_slots) \
  X(log_bytes_used) \
  X(log_bytes_total) \
  X(in_flight) \
  X(descriptors) \
  X(registered_bytes) \
  X(sleeps) \
  X(log_bytes_live) \
  X(puts_delayed) \
  X(regions_cleaned) \
  X(clean_bytes_copied) \
  X(clean_bytes_freed) \
  X(clean_nvm_bytes_written) \
  X(scrub_bytes) \
  X(damaged_keys) \
  X(clean_moves) \
  X(free_regions) \
  X(cleaning) \
  X(set_aside) \
  X(expired) \
  X(chunks) \
  X(chunk_bytes) \
  X(overdue) \
  X(reports) \
  X(nvm_flushes) \
  X(nvm_fences) \
  X(syncs) \
  X(sync_failures) \
  X(synced_at_ms) \
  X(flips_undone) \
  X(journal_stream_bytes) \
  X(journal_held_bytes) \
  X(journal_bytes_written) \
  X(journal_flushes) \
  X(journal_ring_bytes) \
  X(journal_ring_used) \
  X(journal_checkpoints) \
  X(journal_checkpoint_at_ms) \
  X(journal_interval_ms) \
  X(journal_full_times) \
  X(journals_failed) \
  X(archive_bytes_written) \
  X(archive_waiting_bytes) \
  X(archives_failing) \
  X(archive_gaps) \
  X(journal_front_bytes) \
  X(journal_front_used) \
  X(journal_front_full_times) \
  X(journal_error_number)

// X(field, counter): those that are sums over the counters of all shards.
#define ERDA_SUMMED_STATISTICS(X) \
  X(puts_inline, kPutsInline) \
  X(puts_staged, kPutsStaged) \
  X(puts_reserved, kPutsReserved) \
  X(puts_delegated, kPutsDelegated) \
  X(commits, kCommits) \
  X(deletes, kDeletes) \
  X(refused, kRefused) \
  X(violations, kViolations) \
  X(settled, kSettled) \
  X(taken_back, kTakenBack) \
  X(nvm_bytes_written, kNvmBytes) \
  X(clients, kClients) \
  X(keys, kKeys) \
  X(index_slots, kIndexSlots) \
  X(log_bytes_used, kLogBytesUsed) \
  X(log_bytes_total, kLogBytesTotal) \
  X(in_flight, kInFlight) \
  X(registered_bytes, kRegisteredBytes) \
  X(sleeps, kSleeps) \
  X(log_bytes_live, kLogBytesLive) \
  X(puts_delayed, kPutsDelayed) \
  X(regions_cleaned, kCleanRegions) \
  X(clean_bytes_copied, kCleanBytesCopied) \
  X(clean_bytes_freed, kCleanBytesFreed) \
  X(clean_nvm_bytes_written, kCleanNvmBytes) \
  X(scrub_bytes, kScrubBytes) \
  X(damaged_keys, kDamagedKeys) \
  X(clean_moves, kCleanMoves) \
  X(free_regions, kFreeRegions) \
  X(cleaning, kCleaning) \
  X(set_aside, kSetAside) \
  X(expired, kExpired) \
  X(chunks, kChunks) \
  X(chunk_bytes, kChunkBytes) \
  X(overdue, kOverdue) \
  X(reports, kReports) \
  X(nvm_flushes, kNvmFlushes) \
  X(nvm_fences, kNvmFences) \
  X(syncs, kSyncs) \
  X(sync_failures, kSyncFailures) \
  X(synced_at_ms, kSyncedAt) \
  X(flips_undone, kFlipsUndone) \
  X(journal_stream_bytes, kJournalStreamBytes) \
  X(journal_held_bytes, kJournalHeldBytes) \
  X(journal_bytes_written, kJournalBytesWritten) \
  X(journal_flushes, kJournalFlushes) \
  X(journal_ring_bytes, kJournalRingBytes) \
  X(journal_ring_used, kJournalRingUsed) \
  X(journal_checkpoints, kJournalCheckpoints) \
  X(journal_checkpoint_at_ms, kJournalCheckpointAt) \
  X(journal_interval_ms, kJournalInterval) \
  X(journal_full_times, kJournalFullTimes) \
  X(journals_failed, kJournalsFailed) \
  X(archive_bytes_written, kArchiveBytesWritten) \
  X(archive_waiting_bytes, kArchiveWaiting) \
  X(archives_failing, kArchivesFailing) \
  X(archive_gaps, kArchiveGaps) \
  X(journal_front_bytes, kJournalFrontBytes) \
  X(journal_front_used, kJournalFrontUsed) \
  X(journal_front_full_times, kJournalFrontFullTimes) \
  X(journal_error_number, kJournalErrorNumber)
// clang-format on
