#include "bench/micro/memory_fabric.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "base/bytes.h"
#include "format/durability.h"

namespace erda::micro {

namespace {

using fabric::Completion;
using fabric::OpKind;

class MemoryRegion final : public fabric::Region {
 public:
  MemoryRegion(std::span<std::byte> bytes, fabric::Access access) : bytes_(bytes), access_(access) {}
  [[nodiscard]] std::span<std::byte> bytes() const override { return bytes_; }
  [[nodiscard]] fabric::Access access() const override { return access_; }

 private:
  const std::span<std::byte> bytes_;
  const fabric::Access access_;
};

class MemoryQueue final : public fabric::CompletionQueue {
 public:
  size_t Poll(std::span<Completion> out) override {
    const size_t n = std::min(out.size(), ready_.size());
    for (size_t i = 0; i < n; ++i) {
      out[i] = ready_.front();
      ready_.pop_front();
    }
    return n;
  }
  void Wait(std::chrono::nanoseconds /*timeout*/) override {}
  bool Arm(std::chrono::nanoseconds* /*at_most*/) override { return false; }
  [[nodiscard]] int descriptor() const override { return -1; }
  void Disarm() override {}
  void Wake() override {}

  void Complete(const Completion& completion) { ready_.push_back(completion); }
  void Forget(const fabric::Channel* channel) {
    std::erase_if(ready_, [channel](const Completion& completion) { return completion.channel == channel; });
  }

 private:
  std::deque<Completion> ready_;
};

class MemoryChannel final : public fabric::Channel {
 public:
  MemoryChannel(MemoryQueue& queue, std::span<const std::span<const std::byte>> memory, const format::HelloReply& hello)
      : queue_(queue), memory_(memory), hello_(hello) {
    for (const auto& region : memory_) regions_.push_back({region.size(), fabric::Access::kRemoteRead});
    Completion connected;
    connected.channel = this;
    connected.kind = OpKind::kConnected;
    queue_.Complete(connected);
  }
  ~MemoryChannel() override { queue_.Forget(this); }

  Status Post(std::span<const fabric::WorkRequest> batch) override {
    for (const fabric::WorkRequest& work : batch) {
      if (work.kind != OpKind::kRead || !ReadNow(work.local, work.remote)) {
        return {Code::kInvalidArgument, "this fabric has only Reads"};
      }
      Completion completion;
      completion.channel = this;
      completion.kind = work.kind;
      completion.id = work.id;
      completion.bytes = static_cast<uint32_t>(work.local.size());
      queue_.Complete(completion);
    }
    return {};
  }
  bool ReadNow(std::span<std::byte> local, fabric::RemoteAddress remote) override {
    if (remote.region >= memory_.size()) return false;
    const std::span<const std::byte> region = memory_[remote.region];
    if (remote.offset > region.size() || local.size() > region.size() - remote.offset) return false;
    std::memcpy(local.data(), region.data() + remote.offset, local.size());
    return true;
  }
  bool Fence() override { return true; }
  [[nodiscard]] bool connected() const override { return true; }
  [[nodiscard]] std::span<const fabric::RemoteRegion> peer_regions() const override { return regions_; }
  [[nodiscard]] std::span<const std::byte> peer_data() const override { return BytesOf(hello_); }
  [[nodiscard]] const Status& error() const override { return error_; }

 private:
  MemoryQueue& queue_;
  const std::span<const std::span<const std::byte>> memory_;
  const format::HelloReply& hello_;
  std::vector<fabric::RemoteRegion> regions_;
  const Status error_;
};

format::HelloReply HelloOf(const server::FormattedPool& pool) {
  format::HelloReply hello{};
  hello.magic = format::kHelloMagic;
  hello.protocol_version = format::kProtocolVersion;
  hello.flush_method = static_cast<uint8_t>(format::FlushMethod::kNone);
  hello.durability = static_cast<uint8_t>(format::Durability::kVolatile);
  hello.pool_uuid = pool.superblock().uuid;
  hello.server_id = 1;
  hello.slots = 1;
  hello.slot_bytes = 4096;
  hello.placing = static_cast<uint8_t>(format::Placing::kNone);
  hello.read_only = 1;
  hello.time = 1;
  hello.geometry = pool.geometry();
  hello.hash_seed = pool.superblock().hash_seed;
  return hello;
}

}  // namespace

MemoryFabric::MemoryFabric(server::FormattedPool& pool, std::span<const std::byte> control)
    : memory_{pool.pool().bytes(), control}, hello_(HelloOf(pool)) {}

Result<std::unique_ptr<fabric::Region>> MemoryFabric::Register(const MemoryView& memory, fabric::Access access) {
  return std::unique_ptr<fabric::Region>(std::make_unique<MemoryRegion>(memory.bytes, access));
}

Result<std::unique_ptr<fabric::CompletionQueue>> MemoryFabric::CreateQueue() {
  return std::unique_ptr<fabric::CompletionQueue>(std::make_unique<MemoryQueue>());
}

Result<std::unique_ptr<fabric::Listener>> MemoryFabric::Listen(std::string_view /*address*/) {
  return Status(Code::kInvalidArgument, "this fabric has only the client's end");
}

Result<std::unique_ptr<fabric::Channel>> MemoryFabric::Connect(std::string_view /*address*/,
                                                               const fabric::ChannelOptions& options) {
  auto& queue = static_cast<MemoryQueue&>(*options.queue);
  return std::unique_ptr<fabric::Channel>(std::make_unique<MemoryChannel>(queue, memory_, hello_));
}

}  // namespace erda::micro
