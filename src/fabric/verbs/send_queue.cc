#include "fabric/verbs/send_queue.h"

#include <algorithm>
#include <array>

#include "fabric/verbs/work_id.h"
#include "fabric/verbs/work_maker.h"

namespace erda::fabric::verbs {

namespace {

constexpr size_t kRequestsPerDoorbell = 32;

bool IsCallersRead(Purpose purpose, OpKind kind) { return purpose == Purpose::kCaller && kind == OpKind::kRead; }

}  // namespace

void SendQueue::Open(ibv_qp* pair, uint32_t channel, uint32_t places, uint32_t inline_bytes) {
  pair_ = pair;
  channel_ = channel;
  inline_bytes_ = inline_bytes;
  posted_.Resize(places);
  open_ = true;
}

int SendQueue::Post(std::span<const Request> requests) {
  const size_t pushed = waiting_.empty() ? Push(requests) : 0;
  for (const Request& request : requests.subspan(pushed)) waiting_.push_back(request);
  return refused_;
}

int SendQueue::PostWaiting() {
  while (!waiting_.empty() && open_ && refused_ == 0) {
    std::array<Request, kRequestsPerDoorbell> some;
    const size_t n = std::min(some.size(), waiting_.size());
    for (size_t i = 0; i < n; ++i) some[i] = waiting_[i];
    const size_t pushed = Push({some.data(), n});
    waiting_.pop_front(pushed);
    if (pushed < n) break;
  }
  return refused_;
}

size_t SendQueue::Push(std::span<const Request> requests) {
  size_t done = 0;
  while (open_ && refused_ == 0 && done < requests.size() && room() > 0) {
    const size_t n = std::min({requests.size() - done, kRequestsPerDoorbell, size_t{room()}});
    done += RingDoorbell(requests.subspan(done, n));
  }
  return done;
}

size_t SendQueue::RingDoorbell(std::span<const Request> requests) {
  std::array<ibv_send_wr, kRequestsPerDoorbell> works;
  std::array<ibv_sge, kRequestsPerDoorbell> pieces;
  for (size_t i = 0; i < requests.size(); ++i) {
    const Request& request = requests[i];
    MakeWork(request, peer_, windows_, inline_bytes_, &works[i], &pieces[i]);
    works[i].wr_id = WorkId::OfSend(channel_, posted_.next()).word();
    works[i].next = i + 1 < requests.size() ? &works[i + 1] : nullptr;
    works[i].send_flags |= FlagsOf(request);
    posted_.Add(PostedOf(request));
  }
  ibv_send_wr* refused = nullptr;
  refused_ = ibv_post_send(pair_, works.data(), &refused);
  if (refused_ == 0) return requests.size();
  const size_t taken = refused == nullptr ? 0 : static_cast<size_t>(refused - works.data());
  posted_.TakeBack(static_cast<uint32_t>(requests.size() - taken));
  return taken;
}

// Returns the flags that depend on earlier requests, and counts the request.
unsigned SendQueue::FlagsOf(const Request& request) {
  const WorkRequest& work = request.work;
  unsigned flags = 0;
  // Enough requests ask for a completion that room becomes free again.
  if (work.signaled || work.kind == OpKind::kRead || unsignaled_ + 1 >= posted_.places() / 4) {
    flags |= IBV_SEND_SIGNALED;
    unsignaled_ = 0;
  } else {
    ++unsignaled_;
  }
  if (request.purpose != Purpose::kCaller) return flags;
  // If the answer to a Read is lost, the peer's device executes the Read again. The Read must not see what was posted
  // later. (The channel's own requests touch nothing that the caller reads.)
  if (work.kind != OpKind::kRead && reads_ > 0) flags |= IBV_SEND_FENCE;
  reads_ += work.kind == OpKind::kRead ? 1 : 0;
  messages_ += IsMessage(work.kind) ? 1 : 0;
  return flags;
}

bool SendQueue::PostLast() {
  ibv_send_wr work{};
  work.wr_id = WorkId::OfSend(channel_, posted_.next()).word();
  work.opcode = IBV_WR_RDMA_WRITE;
  work.send_flags = IBV_SEND_SIGNALED;
  posted_.Add({.kind = OpKind::kWrite, .purpose = Purpose::kLast});
  ibv_send_wr* refused = nullptr;
  return ibv_post_send(pair_, &work, &refused) == 0;
}

bool SendQueue::Take(uint32_t number, PostedRequest* posted) {
  if (!posted_.Take(number, posted)) return false;
  if (IsCallersRead(posted->purpose, posted->kind)) --reads_;
  return true;
}

}  // namespace erda::fabric::verbs
