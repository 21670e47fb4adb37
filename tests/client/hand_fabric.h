// A fabric of one client end, by hand. It keeps the requests that the client posts, and the test says what completes
// and arrives. So the test chooses any order that the contract allows.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "fabric/fabric.h"

namespace erda::client {

class HandFabric final : public fabric::Fabric {
 public:
  // The server's words and its offer on the next connection.
  std::vector<std::byte> peer_data;
  std::vector<fabric::RemoteRegion> peer_regions;

  // The requests that the client has posted and no test has taken, in order.
  std::deque<fabric::WorkRequest> posted;
  uint64_t posts = 0;          // The number of calls of Post.
  bool reads_in_order = true;  // The shm fabric reads in order.
  bool fails_posts = false;    // The channel has failed, and has not reported it yet.
  // If set, it is called for a Read without a completion. It returns true if it gave the bytes.
  std::function<bool(std::span<std::byte>, fabric::RemoteAddress)> read_now;
  // Returns null without a connection.
  [[nodiscard]] const fabric::Channel* channel() const { return channel_; }
  // Returns the region that the client offers.
  [[nodiscard]] std::span<std::byte> offered() const { return offered_; }
  // Returns true if these bytes are registered.
  [[nodiscard]] bool Knows(std::span<const std::byte> bytes) const {
    return std::any_of(regions_.begin(), regions_.end(), [&](std::span<const std::byte> region) {
      return region.data() <= bytes.data() && bytes.data() + bytes.size() <= region.data() + region.size();
    });
  }

  // Takes the first posted request.
  fabric::WorkRequest Take() {
    EXPECT_FALSE(posted.empty()) << "nothing is posted";
    if (posted.empty()) return {};
    const fabric::WorkRequest first = posted.front();
    posted.pop_front();
    return first;
  }
  // The completions of these calls come in the client's next Poll, in the order of the calls.
  void Accept() {
    connected_ = true;
    Push(fabric::OpKind::kConnected);
  }
  void Complete(const fabric::WorkRequest& work) { Push(work.kind, work.id); }
  void ReceiveImm(uint32_t imm) { Push(fabric::OpKind::kReceiveImm, 0, imm); }
  void Close() {
    error_ = Status(Code::kUnavailable, "closed by hand");
    Push(fabric::OpKind::kClosed);
  }

  // --- Fabric

  [[nodiscard]] std::string_view scheme() const override { return "hand"; }
  [[nodiscard]] fabric::Capabilities capabilities() const override {
    fabric::Capabilities capabilities;
    capabilities.reads_in_order = reads_in_order;
    return capabilities;
  }
  Result<std::unique_ptr<fabric::Region>> Register(const MemoryView& memory, fabric::Access access) override {
    return std::unique_ptr<fabric::Region>(std::make_unique<Region>(*this, memory.bytes, access));
  }
  Result<std::unique_ptr<fabric::CompletionQueue>> CreateQueue() override {
    return std::unique_ptr<fabric::CompletionQueue>(std::make_unique<Queue>(*this));
  }
  Result<std::unique_ptr<fabric::Listener>> Listen(std::string_view /*address*/) override {
    return Status(Code::kInternal, "nobody listens here");
  }
  Result<std::unique_ptr<fabric::Channel>> Connect(std::string_view /*address*/,
                                                   const fabric::ChannelOptions& options) override {
    if (channel_ != nullptr) return Status(Code::kUnavailable, "there is one connection");
    offered_ = options.offer[0]->bytes();
    connected_ = false;
    error_ = Status();
    auto channel = std::make_unique<Channel>(*this);
    channel_ = channel.get();
    return std::unique_ptr<fabric::Channel>(std::move(channel));
  }

 private:
  class Region final : public fabric::Region {
   public:
    Region(HandFabric& fabric, std::span<std::byte> bytes, fabric::Access access)
        : fabric_(fabric), bytes_(bytes), access_(access) {
      fabric_.regions_.emplace_back(bytes_);
    }
    ~Region() override {
      std::erase_if(fabric_.regions_, [this](std::span<const std::byte> one) { return one.data() == bytes_.data(); });
    }
    [[nodiscard]] std::span<std::byte> bytes() const override { return bytes_; }
    [[nodiscard]] fabric::Access access() const override { return access_; }

   private:
    HandFabric& fabric_;
    const std::span<std::byte> bytes_;
    const fabric::Access access_;
  };

  class Channel final : public fabric::Channel {
   public:
    explicit Channel(HandFabric& fabric) : fabric_(fabric) {}
    ~Channel() override {
      for (const fabric::WorkRequest& work : fabric_.posted) {
        EXPECT_TRUE(work.local.empty() || fabric_.Knows(work.local)) << "memory goes before the channel that uses it";
      }
      fabric_.channel_ = nullptr;
      fabric_.posted.clear();
      fabric_.ready_.clear();
    }
    Status Post(std::span<const fabric::WorkRequest> batch) override {
      ++fabric_.posts;
      if (fabric_.fails_posts) return {Code::kUnavailable, "the channel has failed"};
      for (const fabric::WorkRequest& work : batch) {
        EXPECT_TRUE(work.local.empty() || fabric_.Knows(work.local)) << "local bytes are in no registered region";
        fabric_.posted.push_back(work);
      }
      return {};
    }
    bool ReadNow(std::span<std::byte> local, fabric::RemoteAddress remote) override {
      EXPECT_TRUE(fabric_.Knows(local)) << "local bytes are in no registered region";
      return fabric_.read_now && fabric_.read_now(local, remote);
    }
    bool Fence() override { return true; }
    [[nodiscard]] bool connected() const override { return fabric_.connected_; }
    [[nodiscard]] std::span<const fabric::RemoteRegion> peer_regions() const override { return fabric_.peer_regions; }
    [[nodiscard]] std::span<const std::byte> peer_data() const override { return fabric_.peer_data; }
    [[nodiscard]] const Status& error() const override { return fabric_.error_; }

   private:
    HandFabric& fabric_;
  };

  class Queue final : public fabric::CompletionQueue {
   public:
    explicit Queue(HandFabric& fabric) : fabric_(fabric) {}
    size_t Poll(std::span<fabric::Completion> out) override {
      size_t n = 0;
      for (; n < out.size() && !fabric_.ready_.empty(); ++n) {
        out[n] = fabric_.ready_.front();
        fabric_.ready_.pop_front();
      }
      return n;
    }
    void Wait(std::chrono::nanoseconds /*timeout*/) override {}
    bool Arm(std::chrono::nanoseconds* /*at_most*/) override { return false; }
    [[nodiscard]] int descriptor() const override { return -1; }
    void Disarm() override {}
    void Wake() override {}

   private:
    HandFabric& fabric_;
  };

  void Push(fabric::OpKind kind, uint64_t id = 0, uint32_t imm = 0) {
    fabric::Completion completion;
    completion.channel = channel_;
    completion.kind = kind;
    completion.code = error_.code();
    completion.id = id;
    completion.imm = imm;
    ready_.push_back(completion);
  }

  std::vector<std::span<const std::byte>> regions_;
  std::span<std::byte> offered_;
  fabric::Channel* channel_ = nullptr;
  bool connected_ = false;
  Status error_;
  std::deque<fabric::Completion> ready_;
};

}  // namespace erda::client
