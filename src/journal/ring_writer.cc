#include "journal/ring_writer.h"

#include <poll.h>
#include <sys/prctl.h>

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/start_thread.h"

namespace erda::journal {

namespace {

constexpr Nanoseconds kForever = std::chrono::hours(1);
// A longer write says nothing of the next ones.
constexpr Nanoseconds kWriteTimeMost = std::chrono::milliseconds(20);
constexpr Nanoseconds kMemoryPause = std::chrono::milliseconds(10);

}  // namespace

RingWriter::RingWriter(Stream& stream, Ring ring, Nanoseconds lazy, Health& health, Hooks hooks)
    : stream_(stream),
      ring_(std::move(ring)),
      lazy_(lazy),
      health_(health),
      hooks_(std::move(hooks)),
      ring_bytes_(ring_.record_bytes()),
      held_(ring_.held()),
      checkpoint_(ring_.checkpoint()) {
  Count();
}

Status RingWriter::Start() {
  if (!bell_.Create()) {
    return {Code::kResourceExhausted,
            "cannot create an event descriptor: the process or the machine has too many open files"};
  }
  return StartThread(
      "erda-journal", [this] { Run(); }, &thread_);
}

void RingWriter::Stop() {
  if (!thread_.joinable()) return;
  stops_.store(true, std::memory_order_release);  // pairs with the acquire in stops()
  bell_.Ring();
  thread_.join();
}

// Sequentially consistent, as in Sleep: one of the two threads sees the other's store. So either the writer finds the
// place before it sleeps, or the asker finds it asleep and rings. The same holds for the waiters, and AwaitGroup.
void RingWriter::Ask(uint64_t waiters) {
  const Place end = stream_.end();
  waiters_.store(waiters, std::memory_order_seq_cst);
  Place asked = asked_.load(std::memory_order_relaxed);
  while (asked < end &&
         !asked_.compare_exchange_weak(asked, end, std::memory_order_seq_cst, std::memory_order_relaxed)) {
  }
  if (!sleeps_.load(std::memory_order_seq_cst)) return;
  const uint64_t wanted = wanted_.load(std::memory_order_relaxed);
  if (wanted == 0 ? asked < end : waiters >= wanted) bell_.Ring();
}

Status RingWriter::AwaitHeld() {
  const Place end = stream_.end();
  Ask();
  {
    std::unique_lock lock(mutex_);
    // The writer tells after each store of held_.
    news_.wait(lock, [&] { return held_.load(std::memory_order_acquire) >= end || !health_.ok() || stops(); });
  }
  // After a failure the stream may lack what the shard has flushed.
  if (!health_.ok()) return health_.failure();
  const bool is_held = held_.load(std::memory_order_acquire) >= end;
  return is_held ? Status() : Status(Code::kUnavailable, "the journal is closing");
}

void RingWriter::AwaitNews(Nanoseconds most) {
  std::unique_lock lock(mutex_);
  news_.wait_for(lock, most, [this, told = told_] { return told_ != told; });
}

void RingWriter::Tell() {
  {
    const std::lock_guard lock(mutex_);
    ++told_;
  }
  news_.notify_all();
}

Status RingWriter::Checkpoint(Place place) {
  if (place == checkpoint_) return {};
  std::unique_lock lock(mutex_);
  wanted_checkpoint_ = place;
  wants_checkpoint_.store(true, std::memory_order_seq_cst);  // as in Ask
  bell_.Ring();
  news_.wait(lock, [this] { return !wants_checkpoint_.load(std::memory_order_relaxed) || stops(); });
  if (wants_checkpoint_.exchange(false)) return {Code::kUnavailable, "the journal is closing"};
  if (checkpoint_status_.ok()) checkpoint_ = place;
  return checkpoint_status_;
}

void RingWriter::Run() {
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);  // The waits of AwaitGroup are short.
  while (!stops()) {
    if (wants_checkpoint_.load(std::memory_order_acquire)) MakeCheckpoint();
    const bool asked = asked_.load(std::memory_order_acquire) > ring_.held();
    const bool due = std::exchange(due_, false) || asked;
    if (asked && !full_ && health_.ok()) AwaitGroup();
    if (!(due && !full_ && health_.ok() && WriteOrNoMemory())) Sleep();
  }
  Tell();
}

// Without memory some records may be written and not flushed. The next attempt goes on after them, and flushes all.
bool RingWriter::WriteOrNoMemory() try { return WriteAll(); } catch (const std::bad_alloc&) {
  std::this_thread::sleep_for(kMemoryPause);
  return true;
}

void RingWriter::Sleep() {
  sleeps_.store(true, std::memory_order_seq_cst);
  const bool has_work = health_.ok() && !full_ && asked_.load(std::memory_order_seq_cst) > ring_.held();
  if (!has_work && !wants_checkpoint_.load(std::memory_order_seq_cst) && !stops()) {
    const bool works = health_.ok() && !full_;
    pollfd event{bell_.get(), POLLIN, 0};
    const int rung = ::poll(&event, 1, PollMilliseconds(works ? lazy_ : kForever));
    due_ = rung == 0 && works;
    if (rung > 0) bell_.Drain();
  }
  sleeps_.store(false, std::memory_order_relaxed);
}

// A ring that is missed here costs no more than the patience.
void RingWriter::AwaitGroup() {
  const uint64_t expected = group_.expected();
  if (waiters_.load(std::memory_order_relaxed) >= expected) return;
  bell_.Drain();  // of rings that came while the thread was at work
  wanted_.store(expected, std::memory_order_relaxed);
  sleeps_.store(true, std::memory_order_seq_cst);
  if (waiters_.load(std::memory_order_seq_cst) < expected && !wants_checkpoint_.load(std::memory_order_seq_cst) &&
      !stops()) {
    pollfd event{bell_.get(), POLLIN, 0};
    const timespec patience{0, group_.Patience().count()};
    const bool in_vain = ::ppoll(&event, 1, &patience, nullptr) == 0;
    const bool came = waiters_.load(std::memory_order_relaxed) >= expected;
    if (came || in_vain) group_.Ended(came);
  }
  sleeps_.store(false, std::memory_order_relaxed);
  wanted_.store(0, std::memory_order_relaxed);
}

bool RingWriter::WriteAll() {
  const Place before = ring_.held();
  const Nanoseconds begin = SteadyClock::Instance().Now();
  Status status = WriteRecords(stream_.end());
  if (status.ok() && ring_.end() != before) status = ring_.Flush();
  if (asked_.load(std::memory_order_relaxed) > before) {
    const uint64_t waiters = waiters_.load(std::memory_order_relaxed);
    group_.Wrote(waiters == kUrgent ? 0 : waiters, std::min(SteadyClock::Instance().Now() - begin, kWriteTimeMost));
  }
  if (!status.ok()) {
    health_.Fail(status);
    Tell();
    return false;
  }
  const bool wrote = ring_.end() != before;
  if (wrote) TellHeld();
  // Half of the ring is left for what the shard appends while a checkpoint is made. A small record takes a whole block,
  // so the ring may be full long before the stream's memory is.
  const bool low = full_ || ring_.free_bytes() < ring_bytes_ / 2;
  if (low && !std::exchange(asked_room_, true)) hooks_.full();
  return wrote;
}

// There is no order between numbers that are only looked at.
void RingWriter::Count() {
  bytes_written_.store(ring_.bytes_written(), std::memory_order_relaxed);
  flushes_.store(ring_.flushes(), std::memory_order_relaxed);
  used_bytes_.store(ring_bytes_ - ring_.free_bytes(), std::memory_order_relaxed);
}

nvm::JournalCounts RingWriter::counts() const {
  nvm::JournalCounts counts;
  counts.held_bytes = held_.load(std::memory_order_acquire);
  counts.stream_bytes = stream_.end();
  counts.bytes_written = bytes_written_.load(std::memory_order_relaxed);
  counts.flushes = flushes_.load(std::memory_order_relaxed);
  counts.ring_bytes = ring_bytes_;
  counts.ring_used_bytes = used_bytes_.load(std::memory_order_relaxed);
  counts.full_times = full_times_.load(std::memory_order_relaxed);
  counts.failed = !health_.ok();
  return counts;
}

// The count of the waiters begins again: the shard asks for those who still wait when it has answered the others. If it
// has asked meanwhile, that counts.
void RingWriter::TellHeld() {
  Count();
  uint64_t waiters = waiters_.load(std::memory_order_relaxed);
  if (waiters != kUrgent) waiters_.compare_exchange_strong(waiters, 0, std::memory_order_seq_cst);
  // Release: pairs with the acquire of CapturedPool::held. A shard that reads it answers what the disk has (J2).
  held_.store(ring_.held(), std::memory_order_release);
  Tell();
  hooks_.held();
}

Status RingWriter::WriteRecords(Place end) {
  while (ring_.end() < end) {
    const Place from = ring_.end();
    const uint64_t room = std::min(ring_.Room(), kRecordBytesMax);
    // A piece of a record always fits into an empty ring. Otherwise the ring waits for a checkpoint.
    full_ = room < std::min(end - from, kEntrySpaceMax);
    if (full_) {
      full_times_.fetch_add(1, std::memory_order_relaxed);
      return {};
    }
    const Place to = end - from <= room ? end : stream_.Cut(from, room);
    if (to == from) return {Code::kCorruption, "the stream in memory is damaged at place " + std::to_string(from)};
    if (auto status = ring_.Write(from, stream_.Bytes(from, to), hooks_.micros()); !status.ok()) return status;
  }
  return {};
}

void RingWriter::MakeCheckpoint() {
  Place place = 0;
  {
    const std::lock_guard lock(mutex_);
    place = wanted_checkpoint_;
  }
  Status status = health_.ok() ? ring_.Checkpoint(place) : health_.failure();
  if (!status.ok()) health_.Fail(status);
  Count();
  full_ = asked_room_ = false;
  {
    const std::lock_guard lock(mutex_);
    checkpoint_status_ = std::move(status);
    wants_checkpoint_.store(false, std::memory_order_relaxed);
    ++told_;
  }
  news_.notify_all();
}

}  // namespace erda::journal
