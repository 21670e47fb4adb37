#include "bench/ycsb/worker.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <thread>
#include <utility>

namespace erda::bench {

Workload Settings::WorkloadOf(uint32_t thread) const {
  if (writers == 0) return workload;
  return {"writers", thread < writers ? 100U : 0U, 0, 0, workload.distribution};
}

void Failures::Add(std::string message) {
  const std::lock_guard lock(mutex_);
  if (count_++ == 0) first_ = std::move(message);
  any_.store(true, std::memory_order_relaxed);
}

uint64_t Failures::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

std::string Failures::first() const {
  const std::lock_guard lock(mutex_);
  return first_;
}

void Measured::Merge(const Measured& other) {
  get.Merge(other.get);
  put.Merge(other.put);
  rmw.Merge(other.rmw);
  not_found += other.not_found;
}

Worker::Worker(const Settings& settings, const Values& values, Inserts& inserts, Failures& failures, uint32_t index,
               std::unique_ptr<Store> store)
    : settings_(settings),
      values_(values),
      inserts_(inserts),
      failures_(failures),
      index_(index),
      store_(std::move(store)),
      source_(settings.WorkloadOf(index), settings.records, Random::Mix(settings.seed + 1) + index, inserts),
      put_buffer_(values.value_bytes(), '\0'),
      get_buffer_(values.value_bytes(), '\0'),
      sequence_(uint64_t{index} << 48) {}

uint64_t Worker::ShareBegin(uint64_t total, uint32_t index) const {
  return total / settings_.threads * index + std::min<uint64_t>(index, total % settings_.threads);
}

void Worker::Prepare(Stage stage) {
  stage_ = stage;
  const uint64_t total = stage == Stage::kLoad     ? settings_.records
                         : stage == Stage::kWarmUp ? settings_.warm_up
                                                   : settings_.operations;
  next_record_ = ShareBegin(total, index_);
  left_ = ShareBegin(total, index_ + 1) - next_record_;
  done_.store(0, std::memory_order_relaxed);
  measured_ = Measured();
  const bool ahead = stage != Stage::kLoad && !settings_.workload.follows_inserts();
  Draw(ahead ? settings_.drawn_most / settings_.threads : 0);
}

// Draws this number of operations, or all that are left.
void Worker::Draw(uint64_t count) {
  drawn_.resize(std::min(count, left_));
  for (PreparedOp& next : drawn_) {
    next.op = stage_ == Stage::kLoad ? Op{OpKind::kUpdate, next_record_++} : source_.Next();
    next.key = KeyOf(next.op.record);
  }
  next_drawn_ = 0;
}

void Worker::Run() {
  const uint32_t depth = stage_ == Stage::kLoad ? std::max(settings_.depth, settings_.load_depth) : settings_.depth;
  now_ = Clock::now();
  end_ = Clock::time_point::max();
  if (stage_ == Stage::kRun && settings_.seconds > 0) {
    end_ = now_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(settings_.seconds));
  }
  depth == 1 ? RunOneByOne() : RunPipelined(depth);
}

bool Worker::TakeOp(PreparedOp& prepared) {
  if (left_ == 0 || now_ >= end_) return false;
  if (next_drawn_ == drawn_.size()) {
    constexpr uint64_t kDrawnOnTheWay = 64;
    Draw(kDrawnOnTheWay);
    now_ = Clock::now();
  }
  --left_;
  prepared = drawn_[next_drawn_++];
  return true;
}

std::string_view Worker::MakeValue(uint64_t record) {
  values_.Fill(put_buffer_, record, sequence_++);
  now_ = Clock::now();
  return put_buffer_;
}

// Runs one operation at a time, with the synchronous calls.

void Worker::RunOneByOne() {
  PreparedOp prepared;
  while (!failures_.any() && TakeOp(prepared)) {
    const OpKind kind = prepared.op.kind;
    const auto start = now_;
    const bool reads = kind == OpKind::kGet || kind == OpKind::kReadModifyWrite;
    if (reads && !GetNow(prepared, start)) return;
    if (kind != OpKind::kGet && !PutNow(prepared)) return;
    if (kind == OpKind::kReadModifyWrite) measured_.rmw.Record(static_cast<uint64_t>((now_ - start).count()));
    CountOp();
  }
}

bool Worker::GetNow(const PreparedOp& prepared, Clock::time_point start) {
  const auto size = store_->Get(AsView(prepared.key), std::as_writable_bytes(std::span(get_buffer_)));
  now_ = Clock::now();
  const std::string_view value = size.ok() ? std::string_view(get_buffer_).substr(0, *size) : std::string_view();
  return CountGet(prepared, size.status(), value, start);
}

bool Worker::PutNow(const PreparedOp& prepared) {
  const std::string_view value = MakeValue(prepared.op.record);
  const auto start = now_;
  const Status status = store_->Put(AsView(prepared.key), value);
  now_ = Clock::now();
  return CountPut(prepared, status, start);
}

// Runs many operations at a time, with the asynchronous calls. A slot starts its next step from the callback of the one
// before.

void Worker::RunPipelined(uint32_t depth) {
  constexpr uint32_t kIdlePolls = 100;  // Polls before another thread gets the processor.
  slots_.assign(depth, Slot());
  waiting_.clear();
  in_flight_ = 0;
  for (size_t slot = 0; slot < depth; ++slot) StartOrWait(slot);
  uint32_t idle_polls = 0;
  while (!failures_.any() && (in_flight_ > 0 || !waiting_.empty())) {
    if (store_->Poll() > 0) {
      idle_polls = 0;
    } else if (++idle_polls >= kIdlePolls) {
      std::this_thread::yield();
    }
    if (waiting_.empty()) continue;
    now_ = Clock::now();
    for (const size_t slot : std::exchange(waiting_, {})) StartOrWait(slot);
  }
}

void Worker::StartOrWait(size_t slot) {
  if (!failures_.any() && !StartStep(slot)) waiting_.push_back(slot);
}

bool Worker::StartStep(size_t index) {
  Slot& slot = slots_[index];
  if (slot.step == Step::kNext) {
    if (!TakeOp(slot.prepared)) return true;
    const OpKind kind = slot.prepared.op.kind;
    slot.step = kind == OpKind::kGet || kind == OpKind::kReadModifyWrite ? Step::kGet : Step::kPut;
  }
  const std::string_view key = AsView(slot.prepared.key);
  Status started;
  if (slot.step == Step::kGet) {
    slot.start = slot.rmw_start = now_;
    started = store_->GetAsync(key, [this, index](const Result<std::string_view>& value) { FinishGet(index, value); });
  } else {
    const std::string_view value = MakeValue(slot.prepared.op.record);
    slot.start = now_;
    started = store_->PutAsync(key, value, [this, index](const Status& status) { FinishPut(index, status); });
  }
  if (started.ok()) {
    ++in_flight_;
    return true;
  }
  if (started.code() == Code::kResourceExhausted && in_flight_ > 0) return false;
  Fail(slot.step == Step::kGet ? "get" : "put", slot.prepared, started.ToString());
  return true;
}

void Worker::FinishGet(size_t index, const Result<std::string_view>& value) {
  now_ = Clock::now();
  --in_flight_;
  Slot& slot = slots_[index];
  const std::string_view bytes = value.ok() ? *value : std::string_view();
  if (!CountGet(slot.prepared, value.status(), bytes, slot.start)) return;
  const bool whole = slot.prepared.op.kind == OpKind::kGet;
  slot.step = whole ? Step::kNext : Step::kPut;
  if (whole) CountOp();
  StartOrWait(index);
}

void Worker::FinishPut(size_t index, const Status& status) {
  now_ = Clock::now();
  --in_flight_;
  Slot& slot = slots_[index];
  if (!CountPut(slot.prepared, status, slot.start)) return;
  if (slot.prepared.op.kind == OpKind::kReadModifyWrite) {
    measured_.rmw.Record(static_cast<uint64_t>((now_ - slot.rmw_start).count()));
  }
  slot.step = Step::kNext;
  CountOp();
  StartOrWait(index);
}

bool Worker::CountGet(const PreparedOp& prepared, const Status& status, std::string_view value,
                      Clock::time_point start) {
  const bool missing = status.code() == Code::kNotFound;
  if (!status.ok() && !missing) {
    Fail("get", prepared, status.ToString());
    return false;
  }
  measured_.get.Record(static_cast<uint64_t>((now_ - start).count()));
  if (missing) ++measured_.not_found;
  if (!settings_.verify) return true;
  std::string wrong;
  if (!missing) wrong = values_.Check(value, prepared.op.record);
  if (missing && settings_.load) wrong = "not found, though it was put before";
  if (!wrong.empty()) {
    Fail("get", prepared, wrong);
    return false;
  }
  now_ = Clock::now();
  return true;
}

bool Worker::CountPut(const PreparedOp& prepared, const Status& status, Clock::time_point start) {
  if (!status.ok()) {
    Fail("put", prepared, status.ToString());
    return false;
  }
  measured_.put.Record(static_cast<uint64_t>((now_ - start).count()));
  if (prepared.op.kind == OpKind::kInsert) inserts_.End(prepared.op.record);
  return true;
}

void Worker::CountOp() { done_.store(done_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }

void Worker::Fail(const char* action, const PreparedOp& prepared, const std::string& why) {
  failures_.Add(fmt::format("{} of {} at {} failed: {}", action, AsView(prepared.key), settings_.address, why));
}

}  // namespace erda::bench
