#include "bench/schemes/client/scheme_link.h"

#include <algorithm>

#include "base/bytes.h"

namespace erda::schemes {

Status SchemeLink::Open(uint32_t slots) {
  slots_ = slots;
  auto fabric = fabric::OpenFabric(address_, fabric::Role::kConnect);
  if (!fabric.ok()) return fabric.status();
  fabric_ = *std::move(fabric);
  auto replies = SharedMemory::Create("erda-scheme-replies", uint64_t{slots} * kReplySlotBytes);
  if (!replies.ok()) return replies.status();
  reply_memory_ = *std::move(replies);
  auto reply_region = fabric_->Register(reply_memory_.view(), fabric::Access::kRemoteReadWrite);
  if (!reply_region.ok()) return reply_region.status();
  reply_region_ = *std::move(reply_region);
  auto queue = fabric_->CreateQueue();
  if (!queue.ok()) return queue.status();
  queue_ = *std::move(queue);
  Hello hello{};
  hello.magic = kMagic;
  hello.version = kVersion;
  hello.scheme = static_cast<uint8_t>(scheme_);
  hello.slots = slots;
  fabric::Region* const offer[] = {reply_region_.get()};
  // Twice the number of possible requests, as in Erda's client.
  auto channel = fabric_->Connect(address_, {queue_.get(), offer, BytesOf(hello), 2 * slots});
  if (!channel.ok()) return channel.status();
  channel_ = *std::move(channel);
  return {};
}

Status SchemeLink::Accept(size_t extra) {
  const auto data = channel_->peer_data();
  const auto regions = channel_->peer_regions();
  const auto wrong = [this] {
    return Status(Code::kInvalidArgument, address_ + ": this is not a server of this scheme");
  };
  if (data.size() < sizeof(HelloReply)) return wrong();
  const auto hello = LoadAs<HelloReply>(data);
  const bool writes = scheme_ == Scheme::kReadAfterWrite;
  if (hello.magic != kMagic || hello.version != kVersion || hello.scheme != static_cast<uint8_t>(scheme_))
    return wrong();
  if (hello.slots < slots_ || hello.slot_bytes < kSlotBytesMin || hello.slot_bytes > kSlotBytesMax) return wrong();
  if (regions.size() < (writes ? 2 : 1) || hello.log_bytes == 0) return wrong();
  if (regions[kRequestRegion].size < uint64_t{hello.slots} * hello.slot_bytes) return wrong();
  if (writes && regions[kPoolRegion].size < hello.log_offset + hello.log_bytes) return wrong();

  stride_ = extra + hello.slot_bytes;
  memory_.resize(slots_ * stride_);
  auto region = fabric_->Register(MemoryView{memory_, -1, -1}, fabric::Access::kLocal);
  if (!region.ok()) return region.status();
  region_ = *std::move(region);
  hello_ = hello;
  accepted_ = true;
  return {};
}

Status SchemeLink::CloseReason() const {
  if (accepted_) return {Code::kUnavailable, address_ + ": the server went away"};
  const auto data = channel_->peer_data();
  if (data.size() >= sizeof(Refusal)) {
    const auto refusal = LoadAs<Refusal>(data);
    if (refusal.magic == kMagic && refusal.code != 0 && refusal.code <= static_cast<uint8_t>(Code::kInternal)) {
      const auto end = std::find(refusal.message.begin(), refusal.message.end(), '\0');
      return {static_cast<Code>(refusal.code), address_ + ": " + std::string(refusal.message.begin(), end)};
    }
  }
  const Status& error = channel_->error();
  return error.ok() ? Status(Code::kUnavailable, address_ + ": the server went away") : error;
}

}  // namespace erda::schemes
