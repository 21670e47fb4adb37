#include "mirror/links.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "base/bytes.h"
#include "mirror/breach.h"

namespace erda::mirror {

using fabric::OpKind;
using journal::Place;

namespace {

// A shard that waits for its mirror looks at the clock at least so often.
constexpr Nanoseconds kLookAgain = std::chrono::milliseconds(1);

// The private data for a mirror.
struct Greeting {
  format::HelloReply hello;
  format::MirrorHello stream;
};
static_assert(sizeof(Greeting) <= fabric::kAcceptDataMax);

}  // namespace

// --- Links that begin and end

void WaitShortly(std::span<fabric::CompletionQueue* const> queues) { fabric::WaitAny(queues, kLookAgain); }

Links::Links(journal::Stream& stream, MemoryView memory, Membership& membership, LinksOptions options)
    : stream_(stream),
      membership_(membership),
      options_(std::move(options)),
      memory_(memory),
      held_(options_.sync ? stream.released() : stream.end()) {}

Status Links::Serve(std::span<fabric::Fabric* const> fabrics) {
  for (fabric::Fabric* const fabric : fabrics) {
    auto region = fabric->Register(memory_, fabric::Access::kLocal);
    if (!region.ok()) return region.status();
    auto queue = fabric->CreateQueue();
    if (!queue.ok()) return queue.status();
    ports_.push_back({*std::move(region), *std::move(queue)});
    queues_.push_back(ports_.back().queue.get());
  }
  return {};
}

void Links::Close() {
  for (const auto& link : links_) link->ended = true;
  RemoveEnded();
  queues_.clear();
  ports_.clear();
  admit_ = {};
}

Status Links::Admit(fabric::Incoming& incoming, const format::HelloRequest& request, size_t fabric,
                    std::span<fabric::Region* const> offer, const format::HelloReply& hello, uint64_t token) {
  if (request.client_id == 0) return {Code::kInvalidArgument, "a mirror needs an id that is not 0"};
  // A mirror that comes again has lost its link. The primary may not know that yet.
  for (const auto& old : links_) {
    if (old->id == request.client_id) End(*old, {Code::kUnavailable, "it has come again"});
  }
  Settle();
  if (links_.size() >= kLinksMax && !membership_.Counts(request.client_id)) {
    return {Code::kResourceExhausted, "the server takes " + std::to_string(kLinksMax) + " mirrors, and has as many"};
  }
  auto link = std::make_unique<Link>();
  link->id = request.client_id;
  link->token = token;
  link->peer = incoming.peer_name();
  Greeting greeting{hello, Feed::Hello(stream_)};
  greeting.stream.epoch = options_.epoch;
  greeting.stream.flags = options_.may_lack ? format::kMirrorMayLack : 0;
  if (options_.goes_alone) {
    const int64_t millis = std::chrono::duration_cast<std::chrono::milliseconds>(options_.timeout).count();
    greeting.stream.alone_after = static_cast<uint16_t>(std::clamp<int64_t>(millis, 1, UINT16_MAX));
  }
  auto channel = incoming.Accept({queues_[fabric], offer, BytesOf(greeting)});
  if (!channel.ok()) return channel.status();
  link->channel = *std::move(channel);
  link->channel->user = link.get();
  link->feed.emplace(stream_, *link->channel, greeting.stream);
  links_.push_back(std::move(link));
  Settle();
  return {};
}

void Links::EndOthers(const std::function<bool(uint64_t)>& counts) {
  for (const auto& link : links_) {
    if (link->token == 0 || counts(link->token)) continue;
    End(*link, {Code::kPermissionDenied, "its token was removed, or has other rights now"});
  }
  Settle();
}

void Links::End(Link& link, const Status& why) {
  if (std::exchange(link.ended, true)) return;
  Tell(link, "gone: " + std::string(why.message()));
}

void Links::RemoveEnded() {
  if (joined_ != nullptr && joined_->ended) LeaveJoined();
  std::erase_if(links_, [](const std::unique_ptr<Link>& link) { return link->ended; });
}

void Links::LeaveJoined() {
  kept_ = joined_->feed->stored();
  // A mirror may be in sync before the shard has heard that, and not know that its link is lost. So a shard that was
  // alone waits before it is alone again.
  if (in_sync() || options_.goes_alone) {
    state_ = State::kWaiting;
    // The time begins when the channel is destroyed. Until then the mirror may find the link well.
    waiting_since_.reset();
    lost_ = joined_->id;
  }
  joined_ = nullptr;
}

void Links::Tell(const Link& link, std::string_view what) const {
  if (!options_.tell) return;
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "mirror %016llx", static_cast<unsigned long long>(link.id));
  std::string line = name.data();
  if (!link.peer.empty()) line.append(" (").append(link.peer).append(")");
  options_.tell(line.append(", shard ").append(std::to_string(stream_.shard())).append(": ").append(what));
}

// --- Messages

size_t Links::Poll() {
  size_t taken = 0;
  for (fabric::CompletionQueue* const queue : queues_) {
    const size_t count = queue->Poll(completions_);
    for (const fabric::Completion& completion : std::span(completions_).first(count)) Take(completion);
    taken += count;
  }
  if (taken > 0) Settle();
  return taken;
}

void Links::Take(const fabric::Completion& completion) {
  Link& link = *static_cast<Link*>(completion.channel->user);
  if (link.ended) return;
  switch (completion.kind) {
    case OpKind::kConnected:
      link.connected = true;
      return;
    case OpKind::kReceiveImm: {
      const Place before = link.feed->stored();
      if (auto status = link.feed->Take(completion.imm); !status.ok()) return End(link, status);
      if (link.feed->stored() == before) return;
      link.progresses = true;
      if (&link == joined_ && !in_sync()) membership_.Progress();
      return;
    }
    case OpKind::kReceive:
      return End(link, Breach("the mirror", "it sends a message of bytes"));
    case OpKind::kClosed:
      return End(link, completion.channel->error());
    default:  // A Write that failed. A kClosed follows.
      return;
  }
}

void Links::Send() {
  for (const auto& link : links_) {
    if (link->connected && !link->ended) SendTo(*link);
  }
  Settle();
}

void Links::SendTo(Link& link) {
  Feed& feed = *link.feed;
  const bool was_late = feed.is_late();
  if (options_.sync && feed.asks_to_join()) [[unlikely]]
    LetJoin(link);
  if (auto status = feed.Send(); !status.ok()) return End(link, status);
  link.progresses |= !was_late && feed.is_late();
}

void Links::LetJoin(Link& link) {
  EndGivenUp();
  if (joined_ != nullptr) return;
  const Status status = membership_.Join(link.id);
  if (status.code() == Code::kConflict) return;  // It asks for as long as its link lasts.
  if (!status.ok()) return End(link, status);
  joined_ = &link;
  link.feed->Join();
}

void Links::EndGivenUp() {
  if (joined_ == nullptr || membership_.Counts(joined_->id)) return;
  End(*joined_, {Code::kUnavailable, "another shard goes on without it"});
  LeaveJoined();
}

// --- What is held, and what the stream keeps

void Links::Settle() {
  RemoveEnded();
  Place held = held_.load(std::memory_order_relaxed);
  if (joined_ != nullptr) {
    const Feed& feed = *joined_->feed;
    if (state_ != State::kJoined && feed.in_sync()) {
      state_ = State::kJoined;
      began_ = true;
      Tell(*joined_, "in sync");
    }
    // Before that it may not be promoted, whatever it has stored.
    if (state_ == State::kJoined) held = std::max(held, feed.stored());
  } else if (!options_.sync || alone()) {
    held = stream_.end();
  }
  // The shard's thread alone reads it; a pool reads such words of other threads, too.
  held_.store(held, std::memory_order_release);
  if (state_ != State::kWaiting || joined_ != nullptr) kept_.reset();
  if (links_.empty()) return;
  // The channels of links that have ended are destroyed by now: no device reads their bytes any more.
  Place needed = kept_.value_or(stream_.end());
  for (const auto& link : links_) needed = std::min(needed, link->feed->stored());
  if (needed > stream_.released()) stream_.Release(needed);
}

// A mirror that joins may have stored all of this shard. Then it waits until it has stored all of the others.
bool Links::MakesProgress(Link& link) {
  if (std::exchange(link.progresses, false)) return true;
  if (!link.connected || link.feed->is_late()) return false;
  return &link != joined_ || in_sync() || membership_.progress() != progress_;
}

bool Links::Look() {
  const State state = state_;
  const Place held = held_.load(std::memory_order_relaxed);
  LookAtTheTime();
  return state != state_ || held != held_.load(std::memory_order_relaxed);
}

void Links::LookAtTheTime() {
  const Nanoseconds now = options_.clock->Now();
  for (const auto& link : links_) {
    if (MakesProgress(*link)) {
      link->progress = now;
    } else if (now - link->progress >= options_.timeout) {
      End(*link, {Code::kUnavailable, "it has stored nothing for too long"});
    }
  }
  progress_ = membership_.progress();
  EndGivenUp();
  Settle();
  if (!options_.sync || state_ != State::kWaiting) return;
  // After Settle, which destroys the channels of links that have ended.
  if (!waiting_since_) waiting_since_ = options_.clock->Now();
  const bool is_first = options_.goes_alone && !began_;
  const Nanoseconds least = is_first ? std::chrono::milliseconds(format::kMirrorAloneAfterMax) : Nanoseconds(0);
  if (options_.clock->Now() - *waiting_since_ < std::max(options_.timeout, least)) return;
  state_ = options_.goes_alone ? State::kAlone : State::kStopped;
  began_ |= options_.goes_alone;
  // If that mirror has joined again, the time of its link decides.
  if (options_.goes_alone && joined_ == nullptr) membership_.GiveUp(lost_);
  Settle();
}

void Links::AwaitRoom() {
  // Nobody needs what the stream has. A mirror that comes back makes a copy.
  kept_.reset();
  if (links_.empty()) return stream_.Release(stream_.end());
  Turn();
}

Status Links::AwaitHeld() {
  while (held_.load(std::memory_order_relaxed) < stream_.end()) {
    if (stopped()) return {Code::kUnavailable, "no mirror of the pool is in sync"};
    Turn();
  }
  return {};
}

void Links::Turn() {
  if (admit_) admit_();
  Send();
  if (Poll() == 0) {
    options_.wait(queues_);
    (void)Poll();
  }
  (void)Look();
}

}  // namespace erda::mirror
