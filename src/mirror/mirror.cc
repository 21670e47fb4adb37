#include "mirror/mirror.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "mirror/breach.h"

namespace erda::mirror {

using fabric::OpKind;
using format::HelloReply;
using format::MirrorHello;
using journal::Place;

namespace {

constexpr uint64_t kHeartbeat = 1;  // The id of its Reads. Those of the copy have 0.
// The longest wait for messages.
constexpr Nanoseconds kWaitMax = std::chrono::seconds(1);

HelloReply HelloOf(const fabric::Channel& channel) { return LoadAs<HelloReply>(channel.peer_data()); }
MirrorHello StreamOf(const fabric::Channel& channel) {
  return LoadAs<MirrorHello>(channel.peer_data().subspan(sizeof(HelloReply)));
}

}  // namespace

// --- Making one

Result<std::unique_ptr<Mirror>> Mirror::Make(fabric::Fabric& fabric, nvm::Pool& pool,
                                             const format::Superblock& superblock, const Mark& mark, StoreMark store,
                                             MirrorOptions options) {
  std::unique_ptr<Mirror> mirror(new Mirror(fabric, pool, superblock, mark, std::move(store), std::move(options)));
  auto buffer = SharedMemory::Create("erda-copy", Copy::kPieceBytesMax + kCacheLine);
  if (!buffer.ok()) return buffer.status();
  mirror->buffer_ = *std::move(buffer);
  auto region = fabric.Register(mirror->buffer_.view(), fabric::Access::kLocal);
  if (!region.ok()) return region.status();
  mirror->buffer_region_ = *std::move(region);
  auto queue = fabric.CreateQueue();
  if (!queue.ok()) return queue.status();
  mirror->queue_ = *std::move(queue);
  return mirror;
}

Mirror::Mirror(fabric::Fabric& fabric, nvm::Pool& pool, const format::Superblock& superblock, const Mark& mark,
               StoreMark store, MirrorOptions options)
    : fabric_(fabric),
      writer_(pool),
      superblock_(superblock),
      store_(std::move(store)),
      options_(std::move(options)),
      mark_(mark) {}

Mirror::~Mirror() {
  if (copy_) copy_->End();
}

void Mirror::Tell(const std::string& what) const {
  if (options_.tell) options_.tell(what);
}

template <class Rule>
bool Mirror::All(Rule&& rule) const {
  return std::ranges::all_of(links_, [&](const std::unique_ptr<Link>& link) { return rule(*link); });
}

bool Mirror::may_be_promoted() const {
  if (mark_.in_sync) return !mark_failed_;
  return state_ == State::kInSync && All([this](const Link& link) { return !IsSilent(link); });
}

// --- Links that begin and end

size_t Mirror::Poll() {
  Status status;
  size_t count = 0;
  if (links_.empty()) {
    if (options_.clock->Now() < retry_at_) return 0;
    status = Connect();
  } else {
    count = queue_->Poll(completions_);
    for (const fabric::Completion& completion : std::span(completions_).first(count)) {
      if (status.ok()) status = Take(completion);
    }
    if (status.ok() && !All([this](const Link& link) { return !IsSilent(link); })) {
      status = {Code::kUnavailable, "the primary does not answer"};
    }
    if (status.ok() && All([](const Link& link) { return link.connected; })) status = Follow();
  }
  if (!status.ok()) End(status);
  return count;
}

void Mirror::Wait() {
  const Nanoseconds now = options_.clock->Now();
  Nanoseconds due = now + kWaitMax;
  if (state_ == State::kApart) due = std::min(due, retry_at_);
  if (state_ >= State::kCopying) due = std::min(due, look_at_);
  if (state_ == State::kCopying && !copy_->is_reading()) due = std::min(due, copy_->due_at());
  if (due > now) queue_->Wait(due - now);
}

Status Mirror::Connect() {
  state_ = State::kConnecting;
  for (uint32_t shard = 0; shard < superblock_.geometry.shards; ++shard) {
    Link& link = *links_.emplace_back(std::make_unique<Link>());
    link.shard = shard;
    auto ring = SharedMemory::Create("erda-ring", options_.ring_bytes);
    if (!ring.ok()) return ring.status();
    link.ring = *std::move(ring);
    auto region = fabric_.Register(link.ring.view(), fabric::Access::kRemoteReadWrite);
    if (!region.ok()) return region.status();
    link.region = *std::move(region);
    if (auto status = ConnectTo(link); !status.ok()) return status;
  }
  return {};
}

Status Mirror::ConnectTo(Link& link) {
  format::HelloRequest hello{};
  hello.magic = format::kHelloMagic;
  hello.protocol_version = format::kProtocolVersion;
  hello.shard = static_cast<uint16_t>(link.shard);
  hello.role = format::Role::kMirror;
  hello.client_id = options_.id;
  link.answer.Prove(&hello);
  fabric::Region* const offer[] = {link.region.get()};
  link.channel.reset();
  auto channel = fabric_.Connect(options_.address, {queue_.get(), offer, BytesOf(hello), format::kMirrorMessageDepth});
  if (!channel.ok()) return channel.status();
  link.channel = *std::move(channel);
  link.channel->user = &link;
  link.seen = options_.clock->Now();
  return {};
}

// A mirror that has lost one link has none. So its followers are always of one moment, and the primary lets it join all
// shards again.
void Mirror::End(const Status& why) {
  if (copy_) copy_->End();
  for (const auto& link : links_) {
    if (link->follower && !reached_.empty()) reached_[link->shard].place = link->follower->stored();
  }
  links_.clear();
  state_ = State::kApart;
  // Others than the mirror have to do something before such an error ends.
  const bool lasts = why.code() != Code::kUnavailable && why.code() != Code::kCorruption;
  retry_at_ = options_.clock->Now() + (lasts ? 16 : 1) * options_.retry;
  if (why.message() != last_error_.message())
    Tell("the mirror has no link to its primary: " + std::string(why.message()));
  last_error_ = why;
}

// --- Messages

Status Mirror::Take(const fabric::Completion& completion) {
  Link& link = *static_cast<Link*>(completion.channel->user);
  switch (completion.kind) {
    case OpKind::kConnected:
      link.connected = true;
      return {};
    case OpKind::kReceiveImm:
      if (!link.follower) return Breach("the primary", "it sends something before the mirror has begun");
      return link.follower->Take(completion.imm);
    case OpKind::kRead:
      if (completion.id != kHeartbeat) return copy_->Take(completion);
      link.looks = false;
      if (completion.code == Code::kOk) link.seen = link.looked;
      return {};
    case OpKind::kReceive:
      return Breach("the primary", "it sends a message of bytes");
    case OpKind::kClosed:
      return link.connected ? completion.channel->error() : TakeRefusal(link);
    default:  // A WriteImm that failed. A kClosed follows.
      return {};
  }
}

Status Mirror::TakeRefusal(Link& link) {
  const auto refusal = link.channel->peer_data();
  if (!options_.token.empty() && link.answer.IsChallenged(refusal)) {
    link.answer.Answer(refusal, options_.token);
    return ConnectTo(link);
  }
  if (auto reason = format::ChallengeAnswer::ReasonOf(refusal)) return *std::move(reason);
  return link.channel->error();
}

// --- Following

Status Mirror::Follow() {
  if (state_ == State::kConnecting) {
    if (auto status = Begin(); !status.ok()) return status;
  }
  for (const auto& link : links_) {
    if (!copy_->may_store_entries()) break;
    auto status = StoreAll(*link);
    if (status.ok()) status = link->follower->Answer(*link->channel);
    if (!status.ok()) return status;
  }
  if (state_ == State::kCopying) {
    if (auto status = copy_->is_done() ? Ask() : copy_->Step(); !status.ok()) return status;
  }
  if (state_ == State::kJoining && All([](const Link& link) { return link.follower->has_joined(); })) {
    if (auto status = BeInSync(); !status.ok()) return status;
  }
  return LookForPrimary();
}

Status Mirror::StoreAll(Link& link) {
  while (link.follower->has_piece()) {
    // After malformed entries, the mirror makes another copy.
    if (auto status = link.follower->Store(); !status.ok()) {
      reached_.clear();
      return status;
    }
  }
  return {};
}

Status Mirror::Leave() {
  Status status;
  for (const auto& link : links_) {
    // The bytes of a piece of the copy that has not come would be missing below these entries.
    const bool stores = link->follower && copy_->may_store_entries();
    if (status.ok() && stores) status = StoreAll(*link);
  }
  End({Code::kUnavailable, "the mirror has left its primary"});
  retry_at_ = Nanoseconds::max();
  return status;
}

Status Mirror::Begin() {
  for (const auto& link : links_) {
    if (auto status = CheckPrimary(*link); !status.ok()) return status;
  }
  const MirrorHello hello = StreamOf(*links_[0]->channel);
  if (!CanGoOn()) {
    if (auto status = BeginCopy(); !status.ok()) return status;
  } else if (mark_.in_sync && hello.alone_after != 0) {
    // From now on the primary may go on alone whenever a link is lost.
    if (auto status = Remember({false, hello.epoch}); !status.ok()) return status;
  }
  for (const auto& link : links_) {
    // The mirror joins by a message that it posts later, and the primary answers that.
    link->seen = options_.clock->Now();
    link->follower.emplace(link->ring.bytes(), writer_);
    const MirrorHello stream = StreamOf(*link->channel);
    auto status = link->follower->Start(*link->channel, stream, reached_[link->shard].place);
    if (!status.ok()) return status;
  }
  state_ = State::kCopying;
  look_at_ = options_.clock->Now();
  return copy_->is_done() ? Status() : copy_->Begin(*links_[0]->channel);
}

Status Mirror::CheckPrimary(const Link& link) const {
  if (link.channel->peer_data().size() < sizeof(HelloReply) + sizeof(MirrorHello)) {
    return {Code::kInvalidArgument, "that is no Erda server with mirrors"};
  }
  const HelloReply hello = HelloOf(*link.channel);
  const bool is_erda = hello.magic == format::kHelloMagic && hello.protocol_version == format::kProtocolVersion;
  if (!is_erda) return {Code::kInvalidArgument, "that is no Erda server of this mirror's version"};
  if (auto status = link.answer.CheckServer(hello, !options_.token.empty()); !status.ok()) return status;
  const bool is_same = hello.pool_uuid == superblock_.uuid && hello.hash_seed == superblock_.hash_seed &&
                       std::memcmp(&hello.geometry, &superblock_.geometry, sizeof(hello.geometry)) == 0;
  if (!is_same) {
    return {Code::kInvalidArgument,
            "the primary has another pool than the mirror, or its pool was resized: make a new mirror"};
  }
  const MirrorHello stream = StreamOf(*link.channel);
  if (!format::IsSound(stream)) return Breach("the primary", "its stream is at impossible places");
  const MirrorHello first = StreamOf(*links_[0]->channel);
  if (stream.epoch != first.epoch || stream.flags != first.flags || stream.alone_after != first.alone_after) {
    return {Code::kUnavailable, "the primary has started again meanwhile"};
  }
  if (stream.epoch < mark_.epoch) {
    return {Code::kInvalidArgument, "the primary has epoch " + std::to_string(stream.epoch) +
                                        ", and another server was promoted since: the mirror has epoch " +
                                        std::to_string(mark_.epoch)};
  }
  return {};
}

bool Mirror::CanGoOn() const {
  return !reached_.empty() && All([this](const Link& link) {
    const MirrorHello stream = StreamOf(*link.channel);
    const Reached& reached = reached_[link.shard];
    return stream.stream == reached.stream && reached.place >= stream.begin && reached.place <= stream.end;
  });
}

Status Mirror::BeginCopy() {
  const MirrorHello hello = StreamOf(*links_[0]->channel);
  if ((mark_.in_sync || was_in_sync_) && (hello.flags & format::kMirrorMayLack) != 0) {
    return {Code::kConflict,
            "the primary may lack puts that it has answered, since its machine has started again; the mirror has them: "
            "promote the mirror"};
  }
  // Before the first byte is stored.
  if (auto status = Remember({false, hello.epoch}); !status.ok()) return status;
  was_in_sync_ = false;
  reached_.assign(links_.size(), {});
  for (const auto& link : links_) {
    const MirrorHello stream = StreamOf(*link->channel);
    reached_[link->shard] = {stream.stream, stream.end};
  }
  copy_.emplace(buffer_.bytes().first(Copy::kPieceBytesMax), writer_, *options_.clock, options_.copy_bytes_per_second);
  Tell("the mirror copies the primary's pool, " + std::to_string(copy_->bytes_in_all()) + " bytes");
  return {};
}

Status Mirror::Ask() {
  for (const auto& link : links_) {
    if (auto status = link->follower->Join(*link->channel); !status.ok()) return status;
  }
  state_ = State::kJoining;
  return {};
}

Status Mirror::BeInSync() {
  const MirrorHello hello = StreamOf(*links_[0]->channel);
  if (auto status = Remember({hello.alone_after == 0, hello.epoch}); !status.ok()) return status;
  for (const auto& link : links_) {
    if (auto status = link->follower->SayInSync(*link->channel); !status.ok()) return status;
  }
  state_ = State::kInSync;
  was_in_sync_ = true;
  last_error_ = {};
  Tell("the mirror is in sync");
  return {};
}

// A link without traffic does not show that its peer is gone.
Status Mirror::LookForPrimary() {
  const Nanoseconds now = options_.clock->Now();
  if (now < look_at_) return {};
  look_at_ = now + std::min(options_.heartbeat, SilenceMax() / 4);
  for (const auto& link : links_) {
    if (std::exchange(link->looks, true)) continue;
    link->looked = now;
    fabric::WorkRequest work;
    work.kind = OpKind::kRead;
    work.id = kHeartbeat;
    work.local = buffer_.bytes().subspan(Copy::kPieceBytesMax, sizeof(uint64_t));
    work.remote = {format::kPoolRegion, 0};
    if (auto status = link->channel->Post({&work, 1}); !status.ok()) return status;
    ++looks_;
  }
  return {};
}

// The Read was answered after it was posted, so the primary had the link then. It goes on alone later than that by
// alone_after. Both clocks may run at slightly different rates.
Nanoseconds Mirror::SilenceMax() const {
  if (state_ < State::kCopying) return options_.silence;
  const uint16_t alone_after = StreamOf(*links_[0]->channel).alone_after;
  if (alone_after == 0) return options_.silence;
  const Nanoseconds lease = std::chrono::milliseconds(std::min(alone_after, format::kMirrorAloneAfterMax));
  return std::min(options_.silence, lease * 7 / 8);
}

bool Mirror::IsSilent(const Link& link) const { return options_.clock->Now() - link.seen >= SilenceMax(); }

Status Mirror::Remember(const Mark& mark) {
  // A process that died may have left a mark that is in the caches alone.
  if (mark == mark_ && !mark_failed_ && wrote_mark_) return {};
  // A write that fails may reach the medium all the same ("trusts-a-failed-write").
  mark_failed_ = true;
  if (auto status = store_(mark); !status.ok()) return status;
  mark_failed_ = false;
  wrote_mark_ = true;
  mark_ = mark;
  return {};
}

}  // namespace erda::mirror
