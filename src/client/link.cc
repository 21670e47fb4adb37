#include "client/link.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "format/durability.h"

namespace erda::client {

using format::HelloRefusal;
using format::HelloReply;
using format::HelloRequest;
using format::Reply;

Status Link::Connect(uint32_t slots_wanted, Nanoseconds now) {
  asked_at = now;
  slots_offered_ = std::min(slots_wanted, format::kSlotsMax);
  if (!reply_region_) {
    auto memory = SharedMemory::Create("erda-replies", slots_offered_ * sizeof(Reply));
    if (!memory.ok()) return memory.status();
    reply_memory_ = *std::move(memory);
    auto region = fabric_.Register(reply_memory_.view(), fabric::Access::kRemoteReadWrite);
    if (!region.ok()) return region.status();
    reply_region_ = *std::move(region);
  }
  HelloRequest hello{};
  hello.magic = format::kHelloMagic;
  hello.protocol_version = format::kProtocolVersion;
  hello.shard = static_cast<uint16_t>(shard_);
  hello.slots = slots_offered_;
  hello.client_id = client_id_;
  fabric::Region* const offer[] = {reply_region_.get()};
  // Twice as deep as there can be answers, and chunks to be taken back (those that it has, and one that it asks for):
  // each end may be slow to report the messages that it has consumed, by up to half the depth, and still the server
  // never finds the channel full.
  auto channel =
      fabric_.Connect(address_, {&queue_, offer, BytesOf(hello), 2 * (slots_offered_ + format::kChunksPerClient + 1)});
  if (!channel.ok()) return channel.status();
  channel_ = *std::move(channel);
  channel_->user = this;
  state_ = State::kConnecting;
  return {};
}

Status Link::OnConnected(Nanoseconds now) {
  const auto data = channel_->peer_data();
  const auto wrong = [&](const char* what) { return Status(Code::kInvalidArgument, address_ + ": " + what); };
  if (data.size() < sizeof(HelloReply)) return wrong("that is no Erda server");
  hello_ = LoadAs<HelloReply>(data);
  if (hello_.magic != format::kHelloMagic) return wrong("that is no Erda server");
  if (hello_.protocol_version != format::kProtocolVersion) return wrong("the server speaks another protocol version");
  const auto regions = channel_->peer_regions();
  // On a power-safe pool a method of none would make every kPersisted put less than it is asked for.
  const bool flush_is_known = hello_.durability <= static_cast<uint8_t>(format::Durability::kPowerSafe) &&
                              hello_.flush_method <= static_cast<uint8_t>(format::FlushMethod::kServerFlush);
  if (!flush_is_known) return wrong("the server has a pool or a flush method that this client does not know");
  const bool flushes = hello_.durability != static_cast<uint8_t>(format::Durability::kPowerSafe) ||
                       flush_method() != format::FlushMethod::kNone;
  const bool holds = flushes && format::CheckGeometry(geometry()).ok() && shard_ < geometry().shards &&
                     hello_.slots >= 1 && hello_.slots <= slots_offered_ &&
                     hello_.slot_bytes >= sizeof(format::Request) && regions.size() >= 3 &&
                     regions[format::kPoolRegion].size >= geometry().pool_size &&
                     regions[format::kControlRegion].size >= format::ControlBytes(geometry().heads_per_shard) &&
                     regions[format::kRequestRegion].size >= uint64_t{hello_.slots} * hello_.slot_bytes &&
                     (hello_.pool_writable == 0 || regions.size() > format::kPoolWriteRegion);
  if (!holds) return wrong("what the server says of itself does not hold together");
  time.Learn(asked_at, now, hello_.time);
  pool_seed_ = format::PoolSeed(hello_.pool_uuid);

  // What may be in use for the first time only when the client has been at work for long.
  gathered_.reserve(2 * kGatheredMax);
  waiting_for_heads.Reserve(slots_offered_);
  owners_.assign(hello_.slots, kFreeSlot);
  free_slots_.clear();
  for (uint32_t slot = hello_.slots; slot > 0; --slot) free_slots_.push_back(slot - 1);
  control_region_.reset();
  control_.assign(format::ControlBytes(geometry().heads_per_shard) + 2 * sizeof(format::Request), std::byte{0});
  delegated.Reset(FirstHead(), geometry().heads_per_shard, format::ChunkBytesMax(geometry()));
  auto region = fabric_.Register(MemoryView{control_, -1, -1}, fabric::Access::kLocal);
  if (!region.ok()) return region.status();
  control_region_ = *std::move(region);
  state_ = State::kLoading;
  return ReadControl();
}

Status Link::ReadControl() {
  if (control_read_pending) return {};
  fabric::WorkRequest work;
  work.kind = fabric::OpKind::kRead;
  work.id = kControlReadId;
  work.local = std::span(control_).first(format::ControlBytes(geometry().heads_per_shard));
  work.remote = {format::kControlRegion, 0};
  auto status = Post({&work, 1});
  control_read_pending = status.ok();
  return status;
}

Status Link::Flush() {
  if (gathered_.empty()) return {};
  auto status = channel_->Post(gathered_);
  gathered_.clear();
  return status;
}

void Link::OnControlRead() {
  control_read_pending = false;
  ++control_reads;
  slots_.resize(uint64_t{geometry().heads_per_shard} * format::kSlotsPerHead);
  const auto from = std::span(control_).subspan(format::kControlHeadsOffset, slots_.size() * sizeof(uint64_t));
  if (std::memcmp(slots_.data(), from.data(), from.size()) != 0) {
    ++slot_changes;
    std::memcpy(slots_.data(), from.data(), from.size());
  }
  if (state_ == State::kLoading) state_ = State::kUp;
}

std::unique_ptr<fabric::Channel> Link::Close() {
  state_ = State::kDown;
  control_read_pending = false;
  asks_time = false;
  gathered_.clear();
  delegated.Reset(0, 0, 0);
  return std::move(channel_);
}

Status Link::CloseReason() const {
  const Status& error = channel_->error();
  const auto data = channel_->peer_data();
  if (state_ == State::kConnecting && data.size() >= sizeof(HelloRefusal)) {
    const auto refusal = LoadAs<HelloRefusal>(data);
    if (refusal.magic == format::kHelloMagic && refusal.code != 0 &&
        refusal.code <= static_cast<uint8_t>(Code::kInternal)) {
      const auto end = std::find(refusal.message.begin(), refusal.message.end(), '\0');
      return {static_cast<Code>(refusal.code), address_ + ": " + std::string(refusal.message.begin(), end)};
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
  return LoadAs<Reply>(reply_memory_.bytes().subspan(slot * sizeof(Reply), sizeof(Reply)));
}

}  // namespace erda::client
