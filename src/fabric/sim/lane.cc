#include "fabric/sim/lane.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "fabric/sim/link.h"

namespace erda::fabric {

namespace {

bool IsMessage(OpKind kind) { return kind == OpKind::kWriteImm || kind == OpKind::kSend; }

}  // namespace

void SimLane::Post(std::span<const WorkRequest> batch) {
  for (const WorkRequest& request : batch) {
    world_.Note("post", link_.number(), side_, posted_, request.local.size(), static_cast<uint64_t>(request.kind));
    unconsumed_ += IsMessage(request.kind) ? 1 : 0;
    ops_[posted_++].request = request;
  }
  ExecuteNext();
}

bool SimLane::ReadNow(const WorkRequest& request) {
  if (!open_ || cut_ || next_ != posted_ || to_.channel == nullptr || !Permitted(request)) return false;
  const auto placing = [](const auto& op) { return !op.second.pieces.empty(); };
  if (std::any_of(ops_.begin(), ops_.end(), placing)) return false;
  std::memcpy(request.local.data(), RemoteBytes(request), request.local.size());
  world_.Note("read", link_.number(), side_, posted_, request.local.size(), Crc32c(0, request.local));
  return true;
}

void SimLane::Open() {
  open_ = true;
  ExecuteNext();
}

void SimLane::ExecuteNext() {
  if (!open_ || cut_ || due_ || next_ == posted_) return;
  due_ = true;
  // A Read waits only for Writes. After another Read it begins at once, so each may be the first that takes its bytes.
  // A Read without permission waits until everything before it has completed.
  const WorkRequest& next = ops_.at(next_).request;
  const bool read = next.kind == OpKind::kRead && Permitted(next) && !world_.options.reads_in_order;
  const bool overlaps = read && idle_at_ > written_by_;
  const Nanoseconds begin = std::max(world_.events.now(), read ? written_by_ : idle_at_);
  world_.events.At(overlaps ? begin : begin + world_.Delay(), [hold = link_.shared_from_this(), this] {
    due_ = false;
    if (cut_) return;
    const uint64_t number = next_++;
    Execute(number, ops_.at(number));
    ExecuteNext();
  });
}

void SimLane::Execute(uint64_t number, Op& op) {
  const Nanoseconds now = world_.events.now();
  const WorkRequest& request = op.request;
  op.executed = true;
  world_.Note("execute", link_.number(), side_, number, request.local.size());
  if (!Permitted(request)) {
    op.code = Code::kPermissionDenied;
    link_.Deny(side_);
    return;
  }
  if (request.kind == OpKind::kSend) op.message.assign(request.local.begin(), request.local.end());
  const Nanoseconds placed = Scatter(number, op);
  idle_at_ = std::max(idle_at_, placed);
  if (request.kind != OpKind::kRead) written_by_ = idle_at_;

  const Nanoseconds done = (request.kind == OpKind::kRead ? placed : now) + world_.Delay();
  completed_by_ = std::max(completed_by_, done);
  At(op.completion, completed_by_, &SimLane::Complete, number);
  if (IsMessage(request.kind)) {
    delivered_by_ = std::max(delivered_by_, idle_at_ + world_.Delay());
    At(op.delivery, delivered_by_, &SimLane::Deliver, number);
  }
  if (world_.random.Chance(world_.options.drop_chance)) link_.Drop();
}

Nanoseconds SimLane::Scatter(uint64_t number, Op& op) {
  const Nanoseconds now = world_.events.now();
  Nanoseconds last = now;
  const size_t size = op.request.local.size();
  if (op.request.kind == OpKind::kSend || size == 0) return last;
  const std::vector<size_t> boundaries = Boundaries(RemoteBytes(op.request), size);
  if (boundaries.size() > 2) {
    ++(op.request.kind == OpKind::kRead ? world_.counts.torn_reads : world_.counts.torn_writes);
  }
  for (size_t i = 0; i + 1 < boundaries.size(); ++i) {
    const size_t offset = boundaries[i];
    const Nanoseconds time = now + world_.Delay();
    Piece& piece = op.pieces[offset];
    piece.offset = offset;
    piece.size = boundaries[i + 1] - offset;
    piece.placing =
        world_.events.At(time, [hold = link_.shared_from_this(), this, number, offset] { Place(number, offset); });
    last = std::max(last, time);
  }
  return last;
}

// Returns the places where a transfer is cut: its start, its end, and some aligned words of the remote memory between
// them.
std::vector<size_t> SimLane::Boundaries(const std::byte* remote, size_t size) {
  std::set<size_t> cuts = {0, size};
  const size_t first = sizeof(uint64_t) - reinterpret_cast<uintptr_t>(remote) % sizeof(uint64_t);
  if (first < size) {
    const size_t words = (size - first - 1) / sizeof(uint64_t) + 1;
    const uint64_t wanted = world_.random.Uniform(std::max(world_.options.pieces_max, 1U));
    for (uint64_t i = 0; i < wanted; ++i) cuts.insert(first + sizeof(uint64_t) * world_.random.Uniform(words));
  }
  return {cuts.begin(), cuts.end()};
}

void SimLane::Place(uint64_t number, size_t offset) {
  const auto op = ops_.find(number);
  const auto piece = op->second.pieces.extract(offset);
  if (op->second.completed) ++world_.counts.late_pieces;
  Copy(number, op->second, piece.mapped());
  Retire(op);
}

void SimLane::Copy(uint64_t number, const Op& op, const Piece& piece) {
  std::byte* remote = RemoteBytes(op.request) + piece.offset;
  std::byte* local = op.request.local.data() + piece.offset;
  std::byte* to = op.request.kind == OpKind::kRead ? local : remote;
  const std::byte* from = op.request.kind == OpKind::kRead ? remote : local;
  if (!piece.kept.empty()) from = piece.kept.data();
  std::memmove(to, from, piece.size);
  if (to == remote && to_.node->placed) to_.node->placed({to, piece.size});
  world_.Note("place", link_.number(), side_, number, piece.offset, Crc32c(0, {to, piece.size}));
}

void SimLane::Complete(uint64_t number) {
  const auto op = ops_.find(number);
  const WorkRequest& request = op->second.request;
  world_.Note("complete", link_.number(), side_, number);
  op->second.completed = true;
  Detach(op->second);
  if (request.signaled || request.kind == OpKind::kRead) from_.Complete(request.kind, request, Code::kOk);
  Retire(op);
}

void SimLane::Deliver(uint64_t number) {
  const auto op = ops_.find(number);
  const WorkRequest& request = op->second.request;
  const bool send = request.kind == OpKind::kSend;
  world_.Note("deliver", link_.number(), side_, number, request.imm, Crc32c(0, op->second.message));
  op->second.delivery = {};
  to_.Receive(send ? OpKind::kReceive : OpKind::kReceiveImm, send ? 0 : request.imm,
              static_cast<uint32_t>(request.local.size()), std::move(op->second.message));
  Retire(op);
}

void SimLane::Cut(bool keep_completed) {
  if (cut_) return;
  cut_ = true;
  for (auto op = ops_.begin(); op != ops_.end() && op->second.executed;) {
    Op& cut = op->second;
    const bool read = cut.request.kind == OpKind::kRead;
    const size_t before = cut.pieces.size();
    std::erase_if(cut.pieces, [&](const auto& piece) {
      if (!read && Survives(cut, keep_completed)) return false;
      if (!read) ++world_.counts.lost_pieces;
      world_.events.Cancel(piece.second.placing);
      return true;
    });
    if (cut.pieces.size() != before) LosePieces(cut);
    op = Retire(op);
  }
}

bool SimLane::places() const {
  return std::any_of(ops_.begin(), ops_.end(), [](const auto& op) {
    return op.second.request.kind != OpKind::kRead && !op.second.pieces.empty();
  });
}

bool SimLane::PlacesThrough(uint32_t window) const {
  return std::any_of(ops_.begin(), ops_.end(), [window](const auto& op) {
    return op.second.request.remote.window == window && !op.second.pieces.empty();
  });
}

void SimLane::Flush() {
  for (auto op = ops_.begin(); op != ops_.end();) {
    Op& flushed = op->second;
    if (!flushed.completed) {
      world_.Note("flush", link_.number(), side_, op->first);
      world_.events.Cancel(flushed.completion);
      flushed.completed = true;
      Detach(flushed);
      from_.Complete(flushed.request.kind, flushed.request,
                     flushed.code == Code::kOk ? Code::kUnavailable : flushed.code);
    }
    op = Retire(op);
  }
}

void SimLane::LoseMessages() {
  for (auto op = ops_.begin(); op != ops_.end(); op = Retire(op)) LoseMessage(op->second);
}

void SimLane::LeaveSource() {
  for (auto op = ops_.begin(); op != ops_.end(); op = Retire(op)) {
    world_.events.Cancel(op->second.completion);
    if (!op->second.completed) Detach(op->second);
    op->second.completed = true;
  }
}

void SimLane::LeaveTarget(bool keep_completed) {
  for (auto op = ops_.begin(); op != ops_.end(); op = Retire(op)) {
    Op& left = op->second;
    LoseMessage(left);
    bool lost = false;
    for (const auto& [offset, piece] : std::exchange(left.pieces, {})) {
      world_.events.Cancel(piece.placing);
      if (Survives(left, keep_completed)) {
        Copy(op->first, left, piece);
      } else {
        lost = true;
        if (left.request.kind != OpKind::kRead) ++world_.counts.lost_pieces;
      }
    }
    if (lost) LosePieces(left);
  }
}

bool SimLane::Survives(const Op& op, bool keep_completed) {
  return world_.random.Chance(0.5) || (op.completed && keep_completed);
}

// A message is not delivered without the bytes before it. A Read does not complete without its bytes. A Write does not
// complete without them, either, if completing promises that they arrive.
void SimLane::LosePieces(Op& op) {
  LoseMessage(op);
  if (op.request.kind == OpKind::kRead || !world_.options.lose_completed) world_.events.Cancel(op.completion);
}

void SimLane::LoseMessage(Op& op) { world_.events.Cancel(std::exchange(op.delivery, {})); }

void SimLane::Detach(Op& op) {
  if (op.request.kind == OpKind::kRead) return;  // Its pieces were all placed, or are cut.
  for (auto& [offset, piece] : op.pieces) {
    const auto bytes = op.request.local.subspan(offset, piece.size);
    piece.kept.assign(bytes.begin(), bytes.end());
  }
}

// Forgets an operation after its last event. Returns the next operation.
SimLane::Ops::iterator SimLane::Retire(Ops::iterator op) {
  const Op& done = op->second;
  const bool retired = done.completed && done.pieces.empty() && done.delivery == SimEvents::Id{};
  return retired ? ops_.erase(op) : std::next(op);
}

bool SimLane::Permitted(const WorkRequest& request) const {
  const size_t size = request.local.size();
  if (request.kind == OpKind::kSend || size == 0) return true;
  const auto [region, at, key] = request.remote;
  if (region >= to_.offer.size()) return false;
  const auto within = [size, offset = at](uint64_t begin, uint64_t bytes) {
    return offset >= begin && size <= bytes && offset - begin <= bytes - size;
  };
  if (key != 0) {
    const auto window = to_.windows.find(key);
    return request.kind != OpKind::kRead && window != to_.windows.end() && window->second.region == to_.offer[region] &&
           within(window->second.offset, window->second.size);
  }
  if (!within(0, to_.offer[region]->bytes().size())) return false;
  return request.kind == OpKind::kRead || to_.offer[region]->access() == Access::kRemoteReadWrite;
}

std::byte* SimLane::RemoteBytes(const WorkRequest& request) const {
  return to_.offer[request.remote.region]->bytes().data() + request.remote.offset;
}

void SimLane::At(SimEvents::Id& event, Nanoseconds time, void (SimLane::*action)(uint64_t), uint64_t number) {
  event = world_.events.At(time, [hold = link_.shared_from_this(), this, action, number] { (this->*action)(number); });
}

}  // namespace erda::fabric
