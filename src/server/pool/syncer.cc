#include "server/pool/syncer.h"

#include <new>
#include <string>
#include <utility>

#include "base/start_thread.h"

namespace erda::server {

using format::Counter;

Syncer::Syncer(FormattedPool& pool, std::chrono::milliseconds every, Counters counters,
               std::function<uint64_t()> changes, std::function<void(std::string_view line)> tell)
    : pool_(pool), every_(every), counters_(counters), changes_(std::move(changes)), tell_(std::move(tell)) {}

Status Syncer::Start(bool unsynced) {
  if (!unsynced) synced_changes_ = changes_();
  return StartThread(
      "erda-sync", [this] { Run(); }, &thread_);
}

void Syncer::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  stopped_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Syncer::Run() {
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, every_, [this] { return stops_; })) {
    lock.unlock();  // a sync takes as long as the disk needs
    try {
      Step();
    } catch (const std::bad_alloc&) {  // the next round tries again
    }
    lock.lock();
  }
}

void Syncer::Step() {
  SyncChanges();
  if (!failed_) return;
  if (!told_) Tell();
  if (!marked_) marked_ = pool_.MarkUnvouched().ok();
}

void Syncer::Tell() {
  try {
    if (tell_) {
      tell_((why_.empty() ? "a sync of the pool failed" : why_) +
            ": acknowledged puts may be lost, and no later sync can prove that they are not. The pool will not be "
            "marked as closed cleanly, and the next start verifies it in full");
    }
    told_ = true;
  } catch (const std::bad_alloc&) {  // the next time tells it
  }
}

void Syncer::SyncChanges() {
  // Read before the sync, so that changes during the sync count for the next one.
  const uint64_t changes = changes_();
  if (changes == synced_changes_) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  Status status;
  try {
    status = pool_.pool().Sync();
  } catch (const std::bad_alloc&) {  // thrown while reporting an error, which the kernel reports only once
    status = Status(Code::kResourceExhausted);
  }
  synced_changes_ = changes;
  if (status.ok()) {
    counters_.Set(Counter::kSyncedAt,
                  static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()));
    counters_.Add(Counter::kSyncs);
    return;
  }
  counters_.Add(Counter::kSyncFailures);
  if (!std::exchange(failed_, true)) why_ = status.message();
}

}  // namespace erda::server
