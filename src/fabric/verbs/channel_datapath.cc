// Posting, and completions, of a verbs channel. Connecting and ending are in channel.cc.
//
// Room for messages. The contract allows at most message-depth unconsumed messages. This end counts the messages that
// it sent. The peer keeps its count of consumed messages where this end can read it (CreditPage::consumed). It also
// writes the count here (CreditPage::told) whenever it has consumed half the depth since it last did so. So an end that
// alternates requests and answers never has to ask for the count. An end without room reads it.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "base/bytes.h"
#include "fabric/verbs/channel.h"
#include "fabric/verbs/queue.h"

namespace erda::fabric::verbs {

namespace {

constexpr size_t kRequestsPerDoorbell = 32;

ibv_wr_opcode OpcodeOf(OpKind kind) {
  switch (kind) {
    case OpKind::kRead:
      return IBV_WR_RDMA_READ;
    case OpKind::kWrite:
      return IBV_WR_RDMA_WRITE;
    case OpKind::kWriteImm:
      return IBV_WR_RDMA_WRITE_WITH_IMM;
    default:
      return IBV_WR_SEND;
  }
}

bool IsMessage(OpKind kind) { return kind == OpKind::kWriteImm || kind == OpKind::kSend; }

std::atomic_ref<uint64_t> Count(uint64_t& word) { return std::atomic_ref<uint64_t>(word); }

}  // namespace

// --- Posting

Status VerbsChannel::Post(std::span<const WorkRequest> batch) {
  if (state_ == State::kFailed) return {Code::kUnavailable, std::string(error_.message())};
  if (state_ != State::kConnected) return {Code::kUnavailable, name_ + ": not connected yet"};
  uint32_t messages = 0;
  if (auto status = CheckBatch(batch, &messages); !status.ok()) return status;
  if (!HasCredit(messages)) {
    if (state_ == State::kFailed) return {Code::kUnavailable, std::string(error_.message())};
    return {Code::kResourceExhausted, name_ + ": the peer has not consumed its messages"};
  }
  sent_ += messages;
  // A caller that only posts must make room, too.
  if (batch_.size() > Room()) (void)queue_->TakeCompletions();
  size_t pushed = 0;
  if (waiting_.empty()) pushed = PushSome(batch_);
  for (size_t i = pushed; i < batch_.size(); ++i) waiting_.push_back(batch_[i]);
  return {};
}

Status VerbsChannel::CheckBatch(std::span<const WorkRequest> batch, uint32_t* messages) {
  batch_.clear();
  for (const WorkRequest& work : batch) {
    if (work.kind > OpKind::kSend) return {Code::kInvalidArgument, "this kind of operation cannot be posted"};
    if (work.kind == OpKind::kSend && work.local.size() > kSendBytesMax) {
      return {Code::kInvalidArgument, "a message has at most " + std::to_string(kSendBytesMax) + " bytes"};
    }
    if (work.local.size() > UINT32_MAX >> 1)
      return {Code::kInvalidArgument, "an operation of 2 GiB or more cannot be posted"};
    Request request{work, 0, Purpose::kCaller, {}};
    if (!work.local.empty() && !FindLocalKey(work.local, work.kind == OpKind::kRead, &request.local_key)) {
      return {Code::kInvalidArgument, "the local bytes of an operation are not in a registered region"};
    }
    if (IsMessage(work.kind)) ++*messages;
    batch_.push_back(request);
  }
  return {};
}

bool VerbsChannel::FindLocalKey(std::span<const std::byte> bytes, bool to_write, uint32_t* key) {
  const auto holds = [&](const LocalKey& one) {
    return one.begin <= bytes.data() && bytes.data() + bytes.size() <= one.end && (one.writable || !to_write);
  };
  const LocalKeys& keys = device_->keys();
  if (last_key_version_ != keys.version() || !holds(last_key_)) {
    const LocalKey* found = queue_->FindLocalKey(holds);
    if (found == nullptr) return false;
    last_key_ = *found;
    last_key_version_ = queue_->keys_version();
  }
  *key = last_key_.key;
  return true;
}

bool VerbsChannel::HasCredit(uint32_t messages) {
  if (messages == 0) return true;
  auto& page = *reinterpret_cast<CreditPage*>(credit_.data());
  // Acquire: the device placed the count before the message that made this end look.
  if (!LearnConsumed(Count(page.told).load(std::memory_order_acquire))) return false;
  if (sent_ + messages - known_consumed_ <= message_depth_) return true;
  if (!credit_asked_ && !LearnConsumed(Count(page.asked).load(std::memory_order_acquire))) return false;
  if (sent_ + messages - known_consumed_ <= message_depth_) return true;
  if (messages <= message_depth_ && !credit_asked_) {
    WorkRequest work;
    work.kind = OpKind::kRead;
    work.local = {reinterpret_cast<std::byte*>(&page.asked), sizeof(page.asked)};
    credit_asked_ = true;
    PostOwn(Purpose::kAskCredit, work, credit_.mr()->lkey);
  }
  return false;
}

// Takes a count of the peer. A peer that counts more messages than the queue pair has sent loses its channel: the
// messages that wait here could exceed the depth.
bool VerbsChannel::LearnConsumed(uint64_t consumed) {
  if (consumed > pushed_) {
    FailByPeer();
    return false;
  }
  known_consumed_ = std::max(known_consumed_, consumed);
  return true;
}

// Counts a consumed message. The peer's next message may come: this end has one more receive for it.
void VerbsChannel::Consumed() {
  ++consumed_;
  auto& page = *reinterpret_cast<CreditPage*>(credit_.data());
  Count(page.consumed).store(consumed_, std::memory_order_release);
}

// Returns true if the message keeps the rules. A peer loses its channel if it sends before its greeting, sends too long
// a message, or sends more messages than were consumed.
bool VerbsChannel::MayArrive(const ibv_wc& wc) {
  const bool immediate = wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
  if (state_ == State::kConnected && (immediate || wc.byte_len <= kSendBytesMax) &&
      ++arrived_ - consumed_ <= message_depth_) {
    return true;
  }
  FailByPeer();
  return false;
}

void VerbsChannel::FailByPeer() {
  peer_broke_rules_ = true;
  Fail({Code::kUnavailable, name_ + ": the peer broke the fabric's rules"});
}

void VerbsChannel::TellCredit() {
  if (state_ != State::kConnected || consumed_ - told_ < std::max(1U, message_depth_ / 2)) return;
  told_ = consumed_;
  auto& page = *reinterpret_cast<CreditPage*>(credit_.data());
  WorkRequest work;
  work.kind = OpKind::kWrite;
  work.signaled = false;
  // Sends the word itself. If it grows before the device fetches it, so much the better.
  work.local = {reinterpret_cast<std::byte*>(&page.consumed), sizeof(page.consumed)};
  PostOwn(Purpose::kTellCredit, work, credit_.mr()->lkey);
}

// --- Windows

// Binds the window on this queue pair (type 2B), so that only its peer can use the key. The bind request precedes any
// message that tells the peer of the key in the send queue. So the caller need not wait for it.
Result<uint32_t> VerbsChannel::OpenWindow(const Region& region, uint64_t offset, uint64_t bytes) {
  if (state_ != State::kConnected) return Status(Code::kUnavailable, name_ + ": not connected");
  const auto* of = dynamic_cast<const VerbsRegion*>(&region);
  const uint64_t size = region.bytes().size();
  if (of == nullptr || region.access() != Access::kRemoteReadWindows || bytes == 0 || bytes > size ||
      offset > size - bytes) {
    return Status(Code::kInvalidArgument, "a window needs bytes inside a region that was registered for windows");
  }
  Window window;
  window.window = ibv_alloc_mw(device_->domain(), IBV_MW_TYPE_2);
  if (window.window == nullptr) return ErrnoStatus(name_ + ": cannot allocate a memory window");
  window.key = ibv_inc_rkey(window.window->rkey);
  if (!device_->limits().windows_have_bounds) {
    auto own = device_->Register(region.bytes().subspan(offset, bytes), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    if (!own.ok()) {
      (void)ibv_dealloc_mw(window.window);
      return own.status();
    }
    window.own = *own;
  }
  const auto begin = reinterpret_cast<uint64_t>(region.bytes().data() + offset);
  window.bound = {window.own != nullptr ? window.own : of->mr(), begin, bytes, IBV_ACCESS_REMOTE_WRITE};
  windows_.push_back(window);
  WorkRequest work;
  work.kind = OpKind::kWrite;  // Like a Write, a bind needs no completion: if it fails, so does the channel.
  work.signaled = false;
  PostOwn({work, 0, Purpose::kOpenWindow, window});
  return window.key;
}

Status VerbsChannel::CloseWindow(uint32_t key, uint64_t id) {
  if (state_ != State::kConnected) return {Code::kUnavailable, name_ + ": not connected"};
  const auto is_it = [key](const Window& window) { return window.key == key; };
  if (std::ranges::none_of(windows_, is_it)) return {Code::kInvalidArgument, "there is no such window"};
  WorkRequest work;
  work.kind = OpKind::kWrite;
  work.id = id;
  PostOwn({work, 0, Purpose::kCloseWindow, {nullptr, key, {}, nullptr}});
  return {};
}

void VerbsChannel::DropWindow(uint32_t key) {
  const auto window = std::ranges::find(windows_, key, &Window::key);
  if (window == windows_.end()) return;
  (void)ibv_dealloc_mw(window->window);
  if (window->own != nullptr) (void)ibv_dereg_mr(window->own);
  windows_.erase(window);
}

// Posts a request of the channel itself, after the requests that wait already.
void VerbsChannel::PostOwn(const Request& request) {
  waiting_.push_back(request);
  PushWaiting();
}

void VerbsChannel::PushWaiting() {
  while (!waiting_.empty() && state_ != State::kFailed) {
    std::array<Request, kRequestsPerDoorbell> some;
    const size_t n = std::min(some.size(), waiting_.size());
    for (size_t i = 0; i < n; ++i) some[i] = waiting_[i];
    const size_t pushed = PushSome({some.data(), n});
    waiting_.pop_front(pushed);
    if (pushed < n) return;
  }
}

// Hands as many requests to the queue pair as fit, kRequestsPerDoorbell with each doorbell. Returns their number.
size_t VerbsChannel::PushSome(std::span<const Request> requests) {
  size_t done = 0;
  while (done < requests.size() && Room() > 0 && state_ != State::kFailed) {
    std::array<ibv_send_wr, kRequestsPerDoorbell> works;
    std::array<ibv_sge, kRequestsPerDoorbell> pieces;
    const size_t n = std::min({requests.size() - done, works.size(), size_t{Room()}});
    for (size_t i = 0; i < n; ++i) {
      const Request& request = requests[done + i];
      const WorkRequest& work = request.work;
      ibv_send_wr& wr = works[i];
      std::memset(&wr, 0, sizeof(wr));
      // Enough requests ask for a completion that room becomes free again.
      const bool ask = work.signaled || work.kind == OpKind::kRead || unsignaled_ + 1 >= posted_.size() / 4;
      unsignaled_ = ask ? 0 : unsignaled_ + 1;
      wr.wr_id = (uint64_t{number_} << 32) | posted_end_;
      wr.next = i + 1 < n ? &works[i + 1] : nullptr;
      wr.opcode = OpcodeOf(work.kind);
      if (ask) wr.send_flags |= IBV_SEND_SIGNALED;
      if (request.purpose == Purpose::kCaller) {
        // A Read whose answer is lost is executed again. Operations posted after it must not have come first then. (The
        // channel's requests touch nothing that the caller reads.)
        if (work.kind != OpKind::kRead && reads_out_ > 0) wr.send_flags |= IBV_SEND_FENCE;
        reads_out_ += work.kind == OpKind::kRead ? 1 : 0;
        pushed_ += IsMessage(work.kind) ? 1 : 0;
      }
      if (!work.local.empty()) {
        pieces[i] = {reinterpret_cast<uint64_t>(work.local.data()), static_cast<uint32_t>(work.local.size()),
                     request.local_key};
        wr.sg_list = &pieces[i];
        wr.num_sge = 1;
        if (work.kind != OpKind::kRead && work.local.size() <= inline_bytes_) wr.send_flags |= IBV_SEND_INLINE;
      }
      wr.imm_data = htonl(work.imm);
      if (request.purpose == Purpose::kOpenWindow) {
        wr.opcode = IBV_WR_BIND_MW;
        wr.bind_mw = {request.window.window, request.window.key, request.window.bound};
      } else if (request.purpose == Purpose::kCloseWindow) {
        wr.opcode = IBV_WR_LOCAL_INV;
        wr.imm_data = 0;
        wr.invalidate_rkey = request.window.key;
      } else if (request.purpose == Purpose::kTellCredit || request.purpose == Purpose::kAskCredit) {
        const bool tell = request.purpose == Purpose::kTellCredit;
        wr.wr.rdma.remote_addr =
            peer_credit_address_ + (tell ? offsetof(CreditPage, told) : offsetof(CreditPage, consumed));
        wr.wr.rdma.rkey = peer_credit_key_;
      } else if (work.kind != OpKind::kSend && work.remote.region < peer_memory_.size()) {
        // The peer's device checks the bounds and the right. An offset that overflows ends up before the region.
        wr.wr.rdma.remote_addr = peer_memory_[work.remote.region].address + work.remote.offset;
        wr.wr.rdma.rkey = work.remote.window != 0 ? work.remote.window : peer_memory_[work.remote.region].key;
      }  // Otherwise key 0, which opens nothing.
      PostedAt(posted_end_++) = {work.id,         static_cast<uint32_t>(work.local.size()),
                                 work.kind,       work.signaled || work.kind == OpKind::kRead,
                                 request.purpose, request.window.key};
    }
    ibv_send_wr* bad = nullptr;
    if (const int error = ibv_post_send(id_->qp, works.data(), &bad); error != 0) {
      const size_t taken = bad == nullptr ? 0 : static_cast<size_t>(bad - works.data());
      posted_end_ -= static_cast<uint32_t>(n - taken);
      Fail({Code::kUnavailable, name_ + ": the device takes no request: " + std::strerror(error)});
      return done + taken;
    }
    done += n;
  }
  return done;
}

// Posts a request after all others, on a queue pair that flushes. It completes requests that asked for no completion.
void VerbsChannel::PostLast() {
  ibv_send_wr work{};
  work.wr_id = (uint64_t{number_} << 32) | posted_end_;
  work.opcode = IBV_WR_RDMA_WRITE;
  work.send_flags = IBV_SEND_SIGNALED;
  PostedAt(posted_end_++) = {0, 0, OpKind::kWrite, false, Purpose::kLast};
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(id_->qp, &work, &bad) != 0) dead_device_ = true;
}

// --- Completing

void VerbsChannel::OnSendCompletion(const ibv_wc& wc) {
  const auto number = static_cast<uint32_t>(wc.wr_id);
  if (number - posted_begin_ >= InQueuePair()) return;
  posted_begin_ = number;  // The requests before it asked for no completion, and are done.
  const Posted posted = PostedAt(posted_begin_++);
  if (wc.status == IBV_WC_SUCCESS) {
    heard_ = true;
    if (posted.purpose == Purpose::kAskCredit) credit_asked_ = false;
    if (posted.purpose == Purpose::kKeepAlive) keep_alive_out_ = false;
    if (posted.purpose == Purpose::kCaller && posted.kind == OpKind::kRead) --reads_out_;
    if (posted.purpose == Purpose::kCaller && posted.signaled) CompletePosted(posted, Code::kOk);
    if (posted.purpose == Purpose::kCloseWindow) {
      DropWindow(posted.window);
      CompletePosted(posted, Code::kOk);
    }
    PushWaiting();
    return;
  }
  const bool denied = wc.status == IBV_WC_REM_ACCESS_ERR || wc.status == IBV_WC_REM_INV_REQ_ERR;
  Fail({denied ? Code::kPermissionDenied : Code::kUnavailable, name_ + ": " + ibv_wc_status_str(wc.status)});
  if (IsTold(posted.purpose)) CompletePosted(posted, denied ? Code::kPermissionDenied : Code::kUnavailable);
}

void VerbsChannel::CompletePosted(const Posted& posted, Code code) {
  Completion completion;
  completion.channel = this;
  completion.kind = posted.purpose == Purpose::kCloseWindow ? OpKind::kWindowClosed : posted.kind;
  completion.code = code;
  completion.id = posted.id;
  completion.bytes = posted.bytes;
  queue_->Complete(completion);
}

// Completes the requests that the queue pair never completed, and those that it never received.
void VerbsChannel::FlushAll() {
  for (; InQueuePair() > 0; ++posted_begin_) {
    if (IsTold(PostedAt(posted_begin_).purpose)) {
      CompletePosted(PostedAt(posted_begin_), Code::kUnavailable);
    }
  }
  for (size_t i = 0; i < waiting_.size(); ++i) {
    const Request& request = waiting_[i];
    if (!IsTold(request.purpose)) continue;
    CompletePosted(
        {request.work.id, static_cast<uint32_t>(request.work.local.size()), request.work.kind, true, request.purpose},
        Code::kUnavailable);
  }
  waiting_.clear();
}

}  // namespace erda::fabric::verbs
