#include "fabric/sim/lane.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "fabric/sim/link.h"

namespace erda::fabric {

namespace {

// Returns the places where a transfer is cut: its start, its end, and some aligned words of the remote memory between
// them.
std::vector<size_t> Boundaries(SimWorld& world, const std::byte* remote, size_t size) {
  std::set<size_t> cuts = {0, size};
  const size_t first = sizeof(uint64_t) - reinterpret_cast<uintptr_t>(remote) % sizeof(uint64_t);
  if (first < size) {
    const size_t words = (size - first - 1) / sizeof(uint64_t) + 1;
    const uint64_t wanted = world.random.Uniform(std::max(world.options.pieces_max, 1U));
    for (uint64_t i = 0; i < wanted; ++i) cuts.insert(first + sizeof(uint64_t) * world.random.Uniform(words));
  }
  return {cuts.begin(), cuts.end()};
}

}  // namespace

void SimLane::Post(std::span<const WorkRequest> batch) {
  for (const WorkRequest& request : batch) {
    world_.Note("post", link_.number(), side_, posted_, request.local.size(), static_cast<uint64_t>(request.kind));
    SimOperation& op = operations_[posted_++];
    op.request = request;
    unconsumed_ += op.is_message() ? 1 : 0;
  }
  ExecuteNext();
}

bool SimLane::ReadNow(const WorkRequest& request) {
  if (!open_ || cut_ || next_ != posted_ || to_.channel == nullptr || !to_.Permits(request)) return false;
  const auto placing = [](const auto& op) { return !op.second.pieces.empty(); };
  if (std::any_of(operations_.begin(), operations_.end(), placing)) return false;
  if (!request.local.empty()) std::memcpy(request.local.data(), to_.BytesOf(request), request.local.size());
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
  const WorkRequest& next = operations_.at(next_).request;
  const bool passes_reads = next.kind == OpKind::kRead && to_.Permits(next) && !world_.options.reads_in_order;
  const bool overlaps = passes_reads && times_.ends_with_read();
  const Nanoseconds begin = std::max(world_.events.now(), times_.BeginsAt(passes_reads));
  world_.events.At(overlaps ? begin : begin + world_.Delay(), [hold = link_.shared_from_this(), this] {
    due_ = false;
    if (cut_) return;
    const uint64_t number = next_++;
    Execute(number, operations_.at(number));
    ExecuteNext();
  });
}

void SimLane::Execute(uint64_t number, SimOperation& op) {
  const Nanoseconds now = world_.events.now();
  const WorkRequest& request = op.request;
  op.executed = true;
  world_.Note("execute", link_.number(), side_, number, request.local.size());
  if (!to_.Permits(request)) {
    op.code = Code::kPermissionDenied;
    link_.Deny(side_);
    return;
  }
  if (request.kind == OpKind::kSend) op.message.assign(request.local.begin(), request.local.end());
  const Nanoseconds placed = Scatter(number, op);
  times_.PlaceBy(placed, op.is_read());

  const Nanoseconds done = (op.is_read() ? placed : now) + world_.Delay();
  At(op.completion, times_.CompleteBy(done), &SimLane::Complete, number);
  if (op.is_message()) {
    At(op.delivery, times_.DeliverBy(times_.idle_at() + world_.Delay()), &SimLane::Deliver, number);
  }
  if (world_.random.Chance(world_.options.drop_chance)) link_.Drop();
}

Nanoseconds SimLane::Scatter(uint64_t number, SimOperation& op) {
  const Nanoseconds now = world_.events.now();
  Nanoseconds last = now;
  const size_t size = op.request.local.size();
  if (op.request.kind == OpKind::kSend || size == 0) return last;
  const std::vector<size_t> boundaries = Boundaries(world_, to_.BytesOf(op.request), size);
  if (boundaries.size() > 2) ++(op.is_read() ? world_.counts.torn_reads : world_.counts.torn_writes);
  for (size_t i = 0; i + 1 < boundaries.size(); ++i) {
    const size_t offset = boundaries[i];
    const Nanoseconds time = now + world_.Delay();
    SimOperation::Piece& piece = op.pieces[offset];
    piece.offset = offset;
    piece.size = boundaries[i + 1] - offset;
    piece.placing =
        world_.events.At(time, [hold = link_.shared_from_this(), this, number, offset] { Place(number, offset); });
    last = std::max(last, time);
  }
  return last;
}

void SimLane::Place(uint64_t number, size_t offset) {
  const auto op = operations_.find(number);
  const auto piece = op->second.pieces.extract(offset);
  if (op->second.completed) ++world_.counts.late_pieces;
  Copy(number, op->second, piece.mapped());
  Retire(op);
}

void SimLane::Copy(uint64_t number, const SimOperation& op, const SimOperation::Piece& piece) {
  std::byte* remote = to_.BytesOf(op.request) + piece.offset;
  std::byte* local = op.request.local.data() + piece.offset;
  std::byte* to = op.is_read() ? local : remote;
  const std::byte* from = op.is_read() ? remote : local;
  if (!piece.kept.empty()) from = piece.kept.data();
  std::memmove(to, from, piece.size);
  if (to == remote && to_.node->placed) to_.node->placed({to, piece.size});
  world_.Note("place", link_.number(), side_, number, piece.offset, Crc32c(0, {to, piece.size}));
}

void SimLane::Complete(uint64_t number) {
  const auto op = operations_.find(number);
  const WorkRequest& request = op->second.request;
  world_.Note("complete", link_.number(), side_, number);
  op->second.completed = true;
  op->second.Detach();
  if (request.signaled || op->second.is_read()) from_.Complete(request.kind, request, Code::kOk);
  Retire(op);
}

void SimLane::Deliver(uint64_t number) {
  const auto op = operations_.find(number);
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
  for (auto op = operations_.begin(); op != operations_.end() && op->second.executed;) {
    SimOperation& cut = op->second;
    const bool read = cut.is_read();
    const size_t before = cut.pieces.size();
    std::erase_if(cut.pieces, [&](const auto& piece) {
      if (!read && cut.Survives(world_.random, keep_completed)) return false;
      if (!read) ++world_.counts.lost_pieces;
      world_.events.Cancel(piece.second.placing);
      return true;
    });
    if (cut.pieces.size() != before) cut.LosePieces(world_.events, world_.options.lose_completed);
    op = Retire(op);
  }
}

bool SimLane::places() const {
  return std::any_of(operations_.begin(), operations_.end(),
                     [](const auto& op) { return !op.second.is_read() && !op.second.pieces.empty(); });
}

bool SimLane::PlacesThrough(uint32_t window) const {
  return std::any_of(operations_.begin(), operations_.end(), [window](const auto& op) {
    return op.second.request.remote.window == window && !op.second.pieces.empty();
  });
}

void SimLane::Flush() {
  for (auto op = operations_.begin(); op != operations_.end();) {
    SimOperation& flushed = op->second;
    if (!flushed.completed) {
      world_.Note("flush", link_.number(), side_, op->first);
      world_.events.Cancel(flushed.completion);
      flushed.completed = true;
      flushed.Detach();
      from_.Complete(flushed.request.kind, flushed.request,
                     flushed.code == Code::kOk ? Code::kUnavailable : flushed.code);
    }
    op = Retire(op);
  }
}

void SimLane::LoseMessages() {
  for (auto op = operations_.begin(); op != operations_.end(); op = Retire(op)) op->second.LoseMessage(world_.events);
}

void SimLane::LeaveSource() {
  for (auto op = operations_.begin(); op != operations_.end(); op = Retire(op)) {
    world_.events.Cancel(op->second.completion);
    if (!op->second.completed) op->second.Detach();
    op->second.completed = true;
  }
}

void SimLane::LeaveTarget(bool keep_completed) {
  for (auto op = operations_.begin(); op != operations_.end(); op = Retire(op)) {
    SimOperation& left = op->second;
    left.LoseMessage(world_.events);
    bool lost = false;
    for (const auto& [offset, piece] : std::exchange(left.pieces, {})) {
      world_.events.Cancel(piece.placing);
      if (left.Survives(world_.random, keep_completed)) {
        Copy(op->first, left, piece);
      } else {
        lost = true;
        if (!left.is_read()) ++world_.counts.lost_pieces;
      }
    }
    if (lost) left.LosePieces(world_.events, world_.options.lose_completed);
  }
}

SimLane::Operations::iterator SimLane::Retire(Operations::iterator op) {
  return op->second.is_over() ? operations_.erase(op) : std::next(op);
}

void SimLane::At(SimEvents::Id& event, Nanoseconds time, void (SimLane::*action)(uint64_t), uint64_t number) {
  event = world_.events.At(time, [hold = link_.shared_from_this(), this, action, number] { (this->*action)(number); });
}

}  // namespace erda::fabric
