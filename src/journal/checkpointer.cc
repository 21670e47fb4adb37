#include "journal/checkpointer.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/server_time.h"
#include "base/start_thread.h"
#include "journal/apply.h"

namespace erda::journal {

namespace {

// A step of a checkpoint has this much for each shard, or a quarter of a small stream's memory. A shard's part of a
// step costs a flush of its ring. It also costs a write of each page of the index that its puts have changed. With
// smaller steps, a page that many puts change is written more often.
constexpr uint64_t kStepBytes = 16 << 20;

CheckpointSteps::Places Released(const std::vector<Checkpointer::Source>& sources) {
  CheckpointSteps::Places places;
  for (const auto& source : sources) places.push_back(source.stream->released());
  return places;
}

uint64_t StepBytes(const std::vector<Checkpointer::Source>& sources) {
  uint64_t bytes = kStepBytes;
  for (const auto& source : sources) bytes = std::min(bytes, source.stream->capacity() / 4);
  return bytes * sources.size();
}

// Without the shard, nobody could tell which memory it is.
Status OfStream(const Stream& stream, Status status) {
  if (status.code() != Code::kCorruption) return status;
  return {Code::kCorruption, "the stream of shard " + std::to_string(stream.shard()) +
                                 " in memory is damaged: " + std::string(status.message())};
}

}  // namespace

Checkpointer::Checkpointer(SyncedFile& file, uint64_t pool_size, std::vector<Source> sources, Health& health,
                           std::function<void()> made)
    : file_(file),
      writeback_(file.fd()),
      pool_size_(pool_size),
      sources_(std::move(sources)),
      health_(health),
      tell_made_(std::move(made)),
      steps_(Released(sources_), StepBytes(sources_)) {}

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
    if (stops_) continue;
    lock.unlock();
    bool done = false;
    try {
      steps_.Note(Held());
      const bool aged = SteadyClock::Instance().Now() - last >= kAge;
      if (answers != done_ || aged || IsFull()) {
        if (const Status status = health_.ok() ? MakeAll() : Status(); !status.ok()) health_.Fail(status);
        last = SteadyClock::Instance().Now();
        done = true;
      }
    } catch (const std::bad_alloc&) {  // the next round tries again
      std::this_thread::sleep_for(kLook);
    }
    lock.lock();
    if (!done) continue;
    done_ = answers;
    changed_.notify_all();
  }
}

// Half of a stream's memory is left for what the shard appends meanwhile. If no answer waits for the disk, nobody else
// has it written.
bool Checkpointer::IsFull() const {
  bool full = false;
  for (const auto& [stream, writer, archived] : sources_) {
    const Place held = writer->held().load(std::memory_order_acquire);
    if (stream->end() - held > stream->capacity() / 4) writer->Ask();
    full |= held - stream->released() > stream->capacity() / 2;
  }
  return full;
}

CheckpointSteps::Places Checkpointer::Held() const {
  CheckpointSteps::Places places;
  for (const auto& source : sources_) {
    // Pairs with the release of the writer: the disk holds these bytes (J6). And with that of the archiver: it has read
    // the bytes that the shard may soon overwrite.
    const Place held = source.writer->held().load(std::memory_order_acquire);
    const Place most = source.archived == nullptr ? held : source.archived->load(std::memory_order_acquire);
    places.push_back(std::min(held, most));
  }
  return places;
}

// The disk may hold more while a step is made. That is for the next call.
Status Checkpointer::MakeAll() {
  for (size_t left = steps_.size(); left > 0; --left) {
    if (auto status = Make(steps_.next()); !status.ok()) return status;
    steps_.Pop();
    steps_.Note(Held());
  }
  return {};
}

Status Checkpointer::Make(const CheckpointSteps::Places& places) {
  const uint64_t begin_ms = ServerTime::WallMicros() / 1000;
  for (size_t i = 0; i < sources_.size(); ++i) {
    const Stream& stream = *sources_[i].stream;
    for (const auto piece : stream.Bytes(stream.released(), places[i])) {
      if (auto status = ApplyToFile(piece, file_.fd(), pool_size_, &writeback_); !status.ok())
        return OfStream(stream, std::move(status));
    }
  }
  if (auto status = file_.Sync(); !status.ok()) return status;
  for (size_t i = 0; i < sources_.size(); ++i) {
    const auto& [stream, writer, archived] = sources_[i];
    // In this order (J4). After a kill between the two, the stream has more than it needs.
    if (auto status = writer->Checkpoint(places[i]); !status.ok()) return status;
    stream->Release(places[i]);
    writer->Tell();  // The shard may wait for room.
  }
  made_.fetch_add(1, std::memory_order_relaxed);
  made_at_ms_.store(begin_ms, std::memory_order_relaxed);
  tell_made_();
  return {};
}

}  // namespace erda::journal
