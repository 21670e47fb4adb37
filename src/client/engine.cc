// The way from a completion to the operation and the step it belongs to.
#include "client/engine.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/bytes.h"
#include "base/planted.h"

namespace erda::client {

using fabric::Completion;
using fabric::OpKind;
using fabric::WorkRequest;

namespace {

// Ids of posted Reads: the operation's index, and whether it is the last of its batch. Only the last one moves it on.
constexpr uint64_t kLastBit = uint64_t{1} << 32;

// Deadlines are looked at so often within a timeout, and at the latest after so many Polls with progress.
constexpr int64_t kChecksPerTimeout = 16;
constexpr uint32_t kBusyPollsPerCheck = 256;
constexpr uint32_t kIdlePollsPerCheck = 8;

// Set while it lives; also if a callback throws.
class PollingScope {
 public:
  explicit PollingScope(bool* polling) : polling_(polling) { *polling_ = true; }
  PollingScope(const PollingScope&) = delete;
  PollingScope& operator=(const PollingScope&) = delete;
  ~PollingScope() { *polling_ = false; }

 private:
  bool* polling_;
};

}  // namespace

// --- Setting up

Result<std::unique_ptr<Engine>> Engine::Create(std::shared_ptr<fabric::Fabric> fabric, std::string address,
                                               const EngineOptions& options, const Clock& clock) {
  std::unique_ptr<Engine> engine(new Engine(std::move(fabric), std::move(address), options, clock));
  if (auto status = engine->Prepare(); !status.ok()) return status;
  return engine;
}

Engine::Engine(std::shared_ptr<fabric::Fabric> fabric, std::string address, const EngineOptions& options,
               const Clock& clock)
    : fabric_(std::move(fabric)),
      address_(std::move(address)),
      options_(options),
      clock_(clock),
      reads_in_order_(fabric_->capabilities().reads_in_order) {}

Engine::~Engine() = default;

Status Engine::Prepare() {
  auto queue = fabric_->CreateQueue();
  if (!queue.ok()) return queue.status();
  queue_ = *std::move(queue);
  const size_t count = options_.queue_depth + 1;
  op_memory_.resize(count * kOpMemoryBytes + kReportBytesMax);
  auto region = fabric_->Register(MemoryView{op_memory_, -1, -1}, fabric::Access::kLocal);
  if (!region.ok()) return region.status();
  op_region_ = *std::move(region);
  ops_.resize(count);
  for (OpIndex i = 0; i < count; ++i) {
    ops_[i].index = i;
    ops_[i].memory = std::span(op_memory_).subspan(i * kOpMemoryBytes, kOpMemoryBytes);
    free_ops_.push_back(i);
  }
  locations_.Reset(options_.cache_entries);
  key_order_.Reset(count);
  done_.reserve(2 * count);  // those that are delivered now, and those that end meanwhile
  to_flush_.reserve(count);
  to_start_.reserve(count);
  links_.push_back(std::make_unique<Link>(*fabric_, *queue_, address_, 0, options_.client_id));
  return {};
}

size_t Engine::ValueBytesMax(size_t key_bytes) const {
  return geometry_known_ ? format::ValueBytesMax(geometry_, key_bytes) : 0;
}

// --- Progress

size_t Engine::Poll() {
  if (polling_) return 0;  // from a callback
  const PollingScope scope(&polling_);
  finished_ = 0;
  if (!out_of_memory_) {
    try {
      Progress();
    } catch (const std::bad_alloc&) {
      out_of_memory_ = true;
    }
  }
  if (out_of_memory_) {
    EndAll();
    went_on_ = true;
    DeliverDeferred();
  }
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  return finished_;
}

void Engine::Progress() {
  FlushPosts();  // what was started since the last Poll
  closed_.clear();
  if (!done_.empty()) {
    gathering_ = true;
    DeliverDeferred();
    FlushPosts();
  }
  const size_t n = queue_->Poll(completions_);
  went_on_ = n > 0;
  gathering_ = n > 1;
  // Without memory, a channel that a later completion names may be destroyed already. EndAll ends what is left.
  for (size_t i = 0; i < n && !out_of_memory_; ++i) Dispatch(completions_[i]);
  FlushPosts();

  if (!closed_.empty()) {
    // Before the callbacks: they may use the memory of what ended for new operations, and nothing may still send it.
    closed_.clear();
    DeliverDeferred();
    FlushPosts();
  }
  // The clock is looked at now and then: rarely while operations complete at once, so that they do not pay for it.
  const uint32_t between_checks = (n == 0 ? kIdlePollsPerCheck : kBusyPollsPerCheck) - 1;  // all ones: no division
  if (in_flight_ > 0 && (++polls_ & between_checks) == 0) CheckDeadlines();
}

void Engine::Wait(Nanoseconds timeout) {
  if (out_of_memory_) return;
  try {
    queue_->Wait(timeout);
  } catch (const std::bad_alloc&) {
    out_of_memory_ = true;
  }
  polls_ = UINT32_MAX;  // time has passed: the next Poll looks at the clock
}

void Engine::Dispatch(const Completion& completion) {
  auto& link = *static_cast<Link*>(completion.channel->user);
  if (link.channel() != completion.channel) return;  // closed earlier in this Poll
  switch (completion.kind) {
    case OpKind::kConnected:
      return OnLinkConnected(link);
    case OpKind::kClosed:
      return link.IsChallenged() ? Prove(link) : OnLinkClosed(link);
    case OpKind::kReceiveImm:
      if ((completion.imm & format::kTakesBack) == 0) return OnReply(link, completion.imm);
      link.delegated.OnTakenBack(format::LogAddress(completion.imm));
      return SendChunkRequests(link);
    case OpKind::kWriteImm:
      if (completion.code == Code::kOk) OnSent(ops_[static_cast<OpIndex>(completion.id)]);
      return;  // else kClosed follows
    case OpKind::kWrite:
      if (Planted(Flaw::kNoReadBehindWrite) && completion.code == Code::kOk) {
        Finish(ops_[static_cast<OpIndex>(completion.id)], Status());
      }
      return;  // else an error: kClosed follows
    case OpKind::kRead:
      break;
    default:
      return;
  }
  if (completion.code != Code::kOk) return;  // kClosed follows
  if (completion.id == Link::kControlReadId) return OnControlRead(link);
  if ((completion.id & kLastBit) == 0) return;
  Operation& op = ops_[static_cast<OpIndex>(completion.id)];
  switch (op.step) {
    case Step::kLocated:
      return OnLocatedRead(op);
    case Step::kEntry:
      return OnEntryRead(op);
    case Step::kObject:
      return OnVersionRead(op);
    case Step::kSecondLook:
      return OnSecondLook(op);
    case Step::kTime:
      return OnTimeRead(op);
    case Step::kMissConfirm:
      return OnMissConfirm(op);
    case Step::kBlock:
      return OnBlockRead(op);
    case Step::kPlaced:
      return FinishPut(op, op.reply);
    default:
      return;
  }
}

bool Engine::Post(Link& link, std::span<const WorkRequest> batch) {
  if (link.channel() == nullptr) return false;
  if (Gathers() && link.gathered() < Link::kGatheredMax) {
    if (link.gathered() == 0) to_flush_.push_back(&link);
    link.Gather(batch);
    return true;
  }
  const Status status = link.Post(batch);
  if (status.ok()) return true;
  CloseLink(link, {Code::kUnavailable, address_ + ": the connection failed"});
  return false;
}

// One doorbell for each connection. (A link that was closed, or flushed since, has nothing gathered.)
void Engine::FlushAll() {
  StartGets();
  for (size_t i = 0; i < to_flush_.size(); ++i) {
    Link& link = *to_flush_[i];
    if (link.gathered() == 0 || link.Flush().ok()) continue;
    CloseLink(link, {Code::kUnavailable, address_ + ": the connection failed"});
  }
  to_flush_.clear();
}

WorkRequest Engine::ReadWork(const Operation& op, std::span<std::byte> to, fabric::RemoteAddress from, bool last) {
  ++stats_.reads;
  stats_.read_bytes += to.size();
  WorkRequest work;
  work.kind = OpKind::kRead;
  work.id = op.index | (last ? kLastBit : 0);
  work.local = to;
  work.remote = from;
  return work;
}

void Engine::PostRead(Operation& op, Step step, std::span<std::byte> to, fabric::RemoteAddress from) {
  op.step = step;
  const WorkRequest work = ReadWork(op, to, from, true);
  Post(*op.link, {&work, 1});
}

// An operation's time begins when it is first found waiting.
void Engine::CheckDeadlines() {
  const Nanoseconds now = clock_.Now();
  if (now < next_check_) return;
  next_check_ = now + options_.timeout / kChecksPerTimeout;
  for (Operation& op : ops_) {
    if (!op.waits_for_link()) continue;
    if (op.deadline.count() == 0) {
      op.deadline = now + options_.timeout;
    } else if (now > op.deadline) {
      CloseLink(*op.link,
                {Code::kTimeout, address_ + ": the connection was given up, since another operation got no answer"},
                op.index);
    }
  }
}

}  // namespace erda::client
