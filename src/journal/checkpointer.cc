#include "journal/checkpointer.h"

#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/bytes.h"
#include "base/start_thread.h"
#include "journal/apply.h"

namespace erda::journal {

Checkpointer::Checkpointer(int fd, uint64_t pool_size, std::vector<Source> sources, Health& health)
    : fd_(fd), pool_size_(pool_size), sources_(std::move(sources)), health_(health) {}

Status Checkpointer::Start() {
  return StartThread(
      "erda-checkpoint", [this] { Loop(); }, &thread_);
}

void Checkpointer::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Checkpointer::Ask() {
  {
    const std::lock_guard lock(mutex_);
    ++asked_;
  }
  changed_.notify_all();
}

Status Checkpointer::Run() {
  std::unique_lock lock(mutex_);
  const uint64_t mine = ++asked_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return done_ >= mine || stops_; });
  return done_ >= mine ? health_.failure() : Status(Code::kUnavailable, "the journal is closing");
}

void Checkpointer::Loop() {
  Nanoseconds last = SteadyClock::Instance().Now();
  std::unique_lock lock(mutex_);
  while (!stops_) {
    changed_.wait_for(lock, kLook, [this] { return stops_ || asked_ > done_; });
    const uint64_t answers = asked_;
    const bool aged = SteadyClock::Instance().Now() - last >= kAge;
    if (stops_ || (answers == done_ && !aged && !IsFull())) continue;
    lock.unlock();
    bool done = true;
    try {
      if (const Status status = health_.ok() ? Make() : Status(); !status.ok()) health_.Fail(status);
    } catch (const std::bad_alloc&) {  // the next round tries again
      done = false;
      std::this_thread::sleep_for(kLook);
    }
    lock.lock();
    if (!done) continue;
    last = SteadyClock::Instance().Now();
    done_ = answers;
    changed_.notify_all();
  }
}

// Half of a stream's memory is left for what the shard appends meanwhile. If no answer waits for the disk, nobody else
// has it written.
bool Checkpointer::IsFull() const {
  bool full = false;
  for (const auto& [stream, writer] : sources_) {
    const Place held = writer->held().load(std::memory_order_acquire);
    if (stream->end() - held > stream->capacity() / 4) writer->Ask();
    full |= held - stream->released() > stream->capacity() / 2;
  }
  return full;
}

Status Checkpointer::Make() {
  std::vector<Place> places;
  bool changes = false;
  for (const auto& [stream, writer] : sources_) {
    // Pairs with the release of the writer: the disk holds these bytes (J6).
    const Place held = writer->held().load(std::memory_order_acquire);
    places.push_back(held);
    changes |= held != stream->released();
    for (const auto piece : stream->Bytes(stream->released(), held)) {
      if (auto status = ApplyToFile(piece, fd_, pool_size_); !status.ok()) return status;
    }
  }
  if (!changes) return {};
  if (::fdatasync(fd_) != 0) return ErrnoStatus("cannot write the pool file to its disk");
  for (size_t i = 0; i < sources_.size(); ++i) {
    const auto& [stream, writer] = sources_[i];
    // In this order (J4). After a kill between the two, the stream has more than it needs.
    if (auto status = writer->Checkpoint(places[i]); !status.ok()) return status;
    stream->Release(places[i]);
    writer->Tell();  // The shard may wait for room.
  }
  made_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

}  // namespace erda::journal
