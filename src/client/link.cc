#include "client/link.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/printable.h"
#include "format/durability.h"
#include "format/proof.h"

namespace erda::client {

using format::HelloRefusal;
using format::HelloReply;
using format::HelloRequest;
using format::Reply;

namespace {

// A challenge that came too late to be answered in time is followed by another one.
constexpr uint32_t kAnswersMost = 3;

// What the other end said when it refused, if it asks for a proof.
std::optional<format::HelloChallenge> ChallengeIn(std::span<const std::byte> data) {
  if (data.size() < sizeof(format::HelloChallenge)) return std::nullopt;
  const auto challenge = LoadAs<format::HelloChallenge>(data);
  const bool is_one = challenge.magic == format::kHelloMagic && challenge.is_challenge == 1 &&
                      challenge.protocol_version == format::kProtocolVersion && challenge.challenge != 0;
  return is_one ? std::optional(challenge) : std::nullopt;
}

// Who refuses has proved nothing, and says why there is no connection; what only an operation can come to, as that a
// key is absent, he cannot say.
Code CodeOfRefusal(uint8_t said) {
  for (const Code code : {Code::kInvalidArgument, Code::kResourceExhausted, Code::kPermissionDenied}) {
    if (said == static_cast<uint8_t>(code)) return code;
  }
  return Code::kUnavailable;
}

}  // namespace

bool Link::IsChallenged() const {
  return state_ == State::kConnecting && (!answer_ || answer_->number < kAnswersMost) &&
         ChallengeIn(channel()->peer_data()).has_value();
}

Status Link::Prove(std::string token, Connection* before) {
  answer_ = {*ChallengeIn(channel()->peer_data()), std::move(token), answer_ ? answer_->number + 1 : 1};
  *before = std::move(connection_);
  return Ask(slots_offered_);
}

Status Link::Ask(uint32_t slots_wanted) {
  slots_offered_ = std::min(slots_wanted, format::kSlotsMax);
  auto memory = SharedMemory::Create("erda-replies", slots_offered_ * sizeof(Reply));
  if (!memory.ok()) return memory.status();
  connection_.replies = *std::move(memory);
  auto region = fabric_.Register(connection_.replies.view(), fabric::Access::kRemoteReadWrite);
  if (!region.ok()) return region.status();
  connection_.region = *std::move(region);
  HelloRequest hello{};
  hello.magic = format::kHelloMagic;
  hello.protocol_version = format::kProtocolVersion;
  hello.shard = static_cast<uint16_t>(shard_);
  hello.slots = slots_offered_;
  hello.client_id = client_id_;
  if (answer_) {
    hello.challenge = answer_->challenge.challenge;
    hello.proof = format::ClientProof(answer_->token, answer_->challenge.nonce, hello);
  }
  fabric::Region* const offer[] = {connection_.region.get()};
  // Twice as deep as there can be answers, and chunks to be taken back (those that it has, and one that it asks for):
  // each end may be slow to report the messages that it has consumed, by up to half the depth, and still the server
  // never finds the channel full.
  auto channel =
      fabric_.Connect(address_, {&queue_, offer, BytesOf(hello), 2 * (slots_offered_ + format::kChunksPerClient + 1)});
  if (!channel.ok()) return channel.status();
  connection_.channel = *std::move(channel);
  connection_.channel->user = this;
  state_ = State::kConnecting;
  return {};
}

Status Link::CheckHello(const HelloReply& hello, bool has_token) const {
  const auto wrong = [&](const char* what) { return Status(Code::kInvalidArgument, address_ + ": " + what); };
  if (hello.magic != format::kHelloMagic) return wrong("that is no Erda server");
  if (hello.protocol_version != format::kProtocolVersion) return wrong("the server speaks another protocol version");
  if (answer_) {
    const auto proof = format::ServerProof(answer_->token, answer_->challenge.nonce, hello);
    if (!format::SameProof(proof, hello.proof)) {
      return {Code::kPermissionDenied, address_ + ": the server does not prove that it knows the token"};
    }
  } else if (has_token) {
    return {Code::kPermissionDenied, address_ + ": the server does not ask for the token, so it may be another one"};
  }
  // On a power-safe pool a method of none would make every kPersisted put less than it is asked for.
  const bool flush_is_known = hello.durability <= static_cast<uint8_t>(format::Durability::kPowerSafe) &&
                              hello.flush_method <= static_cast<uint8_t>(format::FlushMethod::kServerFlush);
  if (!flush_is_known) return wrong("the server has a pool or a flush method that this client does not know");
  const bool flushes = hello.durability != static_cast<uint8_t>(format::Durability::kPowerSafe) ||
                       hello.flush_method != static_cast<uint8_t>(format::FlushMethod::kNone);
  const auto regions = channel()->peer_regions();
  const auto has = [&regions](uint32_t region, uint64_t bytes) {
    return regions.size() > region && regions[region].size >= bytes;
  };
  const uint64_t slot_bytes = uint64_t{hello.slots} * hello.slot_bytes;
  const bool may_ask = hello.read_only != 0 ? hello.placing == static_cast<uint8_t>(format::Placing::kNone)
                                            : has(format::kRequestRegion, slot_bytes);
  const format::Geometry& geometry = hello.geometry;
  // (A staging buffer that is too small for some value would keep the client waiting for ever.)
  const bool may_place = hello.placing == static_cast<uint8_t>(format::Placing::kNone) ||
                         (hello.placing == static_cast<uint8_t>(format::Placing::kPool) &&
                          has(format::kPoolWriteRegion, geometry.pool_size)) ||
                         ((hello.placing == static_cast<uint8_t>(format::Placing::kStaging) ||
                           hello.placing == static_cast<uint8_t>(format::Placing::kWindow)) &&
                          has(format::kStagingRegion, geometry.segment_size));
  const bool holds = flushes && format::CheckGeometry(geometry).ok() && shard_ < geometry.shards && hello.slots >= 1 &&
                     hello.slots <= slots_offered_ && hello.slot_bytes >= sizeof(format::Request) &&
                     has(format::kPoolRegion, geometry.pool_size) &&
                     has(format::kControlRegion, format::ControlRegionBytes(geometry)) && may_ask && may_place;
  return holds ? Status() : wrong("what the server says of itself does not hold together");
}

Status Link::OnConnected(Nanoseconds now, bool has_token) {
  const auto data = channel()->peer_data();
  if (data.size() < sizeof(HelloReply)) return {Code::kInvalidArgument, address_ + ": that is no Erda server"};
  const auto hello = LoadAs<HelloReply>(data);
  if (auto status = CheckHello(hello, has_token); !status.ok()) return status;
  hello_ = hello;
  time_hint.Learn(now, hello_.time);
  pool_seed_ = format::PoolSeed(hello_.pool_uuid);
  runs_.assign(geometry().runs_max(), 0);
  layout_.emplace(geometry(), shard_, runs_);
  displacements_ = 0;
  time_ = 0;  // of another server, perhaps

  // What may be in use for the first time only when the client has been at work for long.
  gathered_.reserve(2 * kGatheredMax);
  waiting_for_heads.Reserve(slots_offered_);
  waiting_for_staging.Reserve(slots_offered_);
  owners_.assign(hello_.slots, kFreeSlot);
  free_slots_.clear();
  for (uint32_t slot = hello_.slots; slot > 0; --slot) free_slots_.push_back(slot - 1);
  control_region_.reset();
  control_.assign(format::ControlRegionBytes(geometry()) + sizeof(format::Request), std::byte{0});
  delegated.Reset(FirstHead(), geometry().heads_per_shard, format::ChunkBytesMax(geometry()));
  const bool stages = placing() == format::Placing::kStaging || placing() == format::Placing::kWindow;
  staging.Reset(stages ? channel()->peer_regions()[format::kStagingRegion].size : 0, slots_offered_);
  auto region = fabric_.Register(MemoryView{control_, -1, -1}, fabric::Access::kLocal);
  if (!region.ok()) return region.status();
  control_region_ = *std::move(region);
  state_ = State::kLoading;
  return ReadControl();
}

Status Link::ReadControl(bool with_activity) {
  if (control_read_pending) return {};
  fabric::WorkRequest work;
  work.kind = fabric::OpKind::kRead;
  work.id = kControlReadId;
  work.local = std::span(control_).first(with_activity ? format::ControlRegionBytes(geometry())
                                                       : format::ControlBytes(geometry()));
  work.remote = {format::kControlRegion, 0};
  auto status = Post({&work, 1});
  control_read_pending = status.ok();
  return status;
}

Status Link::Flush() {
  if (gathered_.empty()) return {};
  auto status = channel()->Post(gathered_);
  gathered_.clear();
  return status;
}

void Link::OnControlRead() {
  control_read_pending = false;
  ++control_reads;
  slots_.resize(uint64_t{geometry().heads_per_shard} * geometry().slots_per_head());
  const auto from = std::span(control_).subspan(format::kControlHeadsOffset, slots_.size() * sizeof(uint64_t));
  if (std::memcmp(slots_.data(), from.data(), from.size()) != 0) {
    ++slot_changes;
    std::memcpy(slots_.data(), from.data(), from.size());
  }
  const auto runs = std::span(control_).subspan(format::RunsOffset(geometry()));
  std::memcpy(runs_.data(), runs.data(), runs_.size() * sizeof(uint32_t));
  Learn(LoadAs<Reading>(control_));
  if (state_ == State::kLoading) state_ = State::kUp;
}

void Link::Learn(const Reading& reading) {
  displacements_ = std::max(displacements_, reading.displacements);
  LearnTime(reading.time);
  if (reading.blocks > layout_->blocks() && reading.blocks <= geometry().blocks_max()) {
    layout_->SetBlocks(reading.blocks);
  }
  const format::Reaches reaches(reading.reaches);
  if (reaches != layout_->reaches()) layout_->SetReaches(layout_->reaches().With(reaches));
}

Link::Connection Link::Close() {
  state_ = State::kDown;
  control_read_pending = false;
  asks_time = false;
  reports = false;
  gathered_.clear();
  for (Fifo<OpIndex>* waiting : {&waiting_for_link, &waiting_for_slot, &waiting_for_heads, &waiting_for_staging}) {
    waiting->clear();
  }
  delegated.Reset(0, 0, 0);
  staging.Reset(0, 0);
  return std::move(connection_);
}

Status Link::CloseReason() const {
  const Status& error = channel()->error();
  const auto data = channel()->peer_data();
  if (state_ == State::kConnecting && ChallengeIn(data)) {
    return {Code::kPermissionDenied, address_ + ": the server keeps asking for a proof"};
  }
  if (state_ == State::kConnecting && data.size() >= sizeof(HelloRefusal)) {
    const auto refusal = LoadAs<HelloRefusal>(data);
    if (refusal.magic == format::kHelloMagic && refusal.is_challenge == 0) {
      const std::string_view message(refusal.message.begin(), std::ranges::find(refusal.message, '\0'));
      return {CodeOfRefusal(refusal.code), address_ + ": " + Printable(message)};
    }
  }
  if (state_ != State::kConnecting) return {Code::kUnavailable, address_ + ": the server went away"};
  return error;
}

uint32_t Link::TakeSlot(OpIndex owner) {
  if (free_slots_.empty()) return kNoSlot;
  const uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  owners_[slot] = owner;
  return slot;
}

void Link::FreeSlot(uint32_t slot) {
  owners_[slot] = kFreeSlot;
  free_slots_.push_back(slot);
}

format::Reply Link::ReplyIn(uint32_t slot) const {
  return LoadAs<Reply>(connection_.replies.bytes().subspan(slot * sizeof(Reply), sizeof(Reply)));
}

}  // namespace erda::client
