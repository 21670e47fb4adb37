// Connecting a scheme's client.
#include <algorithm>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "bench/schemes/client/schemes.h"

namespace erda::schemes {

Result<std::unique_ptr<SchemeClient>> ConnectScheme(Scheme scheme, const std::string& address,
                                                    const ClientOptions& options) {
  const auto connect = [](auto client) -> Result<std::unique_ptr<SchemeClient>> {
    if (auto status = client->Connect(); !status.ok()) return status;
    return std::unique_ptr<SchemeClient>(std::move(client));
  };
  return scheme == Scheme::kRedoLogging ? connect(std::make_unique<RedoLogging>(address, options))
                                        : connect(std::make_unique<ReadAfterWrite>(address, options));
}

Status SchemeClient::Connect() {
  if (auto status = Prepare(); !status.ok()) return status;
  const Nanoseconds deadline = SteadyClock::Instance().Now() + options_.timeout;
  while (!connected_) {
    Poll();
    if (!broken_.ok()) return broken_;
    if (SteadyClock::Instance().Now() > deadline) {
      return {Code::kTimeout, address_ + ": no answer in " + std::to_string(options_.timeout.count()) + " ms"};
    }
    if (!connected_) queue_->Wait(std::chrono::milliseconds(1));
  }
  return {};
}

Status SchemeClient::Prepare() {
  if (options_.queue_depth < 1 || options_.queue_depth >= kSlotsMax) {
    return {Code::kInvalidArgument, "queue_depth must be 1 to " + std::to_string(kSlotsMax - 1)};
  }
  const uint32_t count = options_.queue_depth + 1;
  ops_.resize(count);
  key_order_.Reset(count);
  auto fabric = fabric::OpenFabric(address_, fabric::Role::kConnect);
  if (!fabric.ok()) return fabric.status();
  fabric_ = *std::move(fabric);
  auto replies = SharedMemory::Create("erda-scheme-replies", uint64_t{count} * kReplySlotBytes);
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
  hello.slots = count;
  fabric::Region* const offer[] = {reply_region_.get()};
  // Twice the number of possible requests, as in Erda's client.
  auto channel = fabric_->Connect(address_, {queue_.get(), offer, BytesOf(hello), 2 * count});
  if (!channel.ok()) return channel.status();
  channel_ = *std::move(channel);
  return {};
}

Status SchemeClient::OnConnected() {
  const auto data = channel_->peer_data();
  const auto regions = channel_->peer_regions();
  const auto wrong = [this] {
    return Status(Code::kInvalidArgument, address_ + ": this is not a server of this scheme");
  };
  if (data.size() < sizeof(HelloReply)) return wrong();
  hello_ = LoadAs<HelloReply>(data);
  const bool writes = scheme_ == Scheme::kReadAfterWrite;
  if (hello_.magic != kMagic || hello_.version != kVersion || hello_.scheme != static_cast<uint8_t>(scheme_))
    return wrong();
  if (hello_.slots < ops_.size() || hello_.slot_bytes < kSlotBytesMin || hello_.slot_bytes > kSlotBytesMax)
    return wrong();
  if (regions.size() < (writes ? 2 : 1) || hello_.log_bytes == 0) return wrong();
  if (regions[kRequestRegion].size < uint64_t{hello_.slots} * hello_.slot_bytes) return wrong();
  if (writes && regions[kPoolRegion].size < hello_.log_offset + hello_.log_bytes) return wrong();

  const size_t stride = kMessageAt + hello_.slot_bytes;
  memory_.resize(ops_.size() * stride);
  auto region = fabric_->Register(MemoryView{memory_, -1, -1}, fabric::Access::kLocal);
  if (!region.ok()) return region.status();
  region_ = *std::move(region);
  for (OpIndex i = 0; i < ops_.size(); ++i) {
    ops_[i].index = i;
    ops_[i].memory = std::span(memory_).subspan(i * stride, stride);
    free_ops_.push_back(i);
  }
  connected_ = true;
  return {};
}

Status SchemeClient::CloseReason() const {
  if (connected_) return {Code::kUnavailable, address_ + ": the server went away"};
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
