// An engine that is connected to a server that answers by hand.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/hand_clock.h"
#include "base/test_hash.h"
#include "client/engine.h"
#include "client/hand_fabric.h"
#include "format/control_block.h"
#include "format/durability.h"
#include "format/hello.h"
#include "format/messages.h"
#include "format/object.h"

namespace erda::client {

class EngineTest : public testing::Test {
 protected:
  using OpKind = fabric::OpKind;
  using WorkRequest = fabric::WorkRequest;
  using LogAddress = format::LogAddress;
  using Reply = format::Reply;
  using Request = format::Request;
  using RequestOp = format::RequestOp;

  static constexpr const char* kKey = "key";
  // The engine keeps a value of this size in memory that it gives back when the operation ends.
  static constexpr size_t kLargeValue = kLargeBytesKept + 1;

  // Connects a client to a power-safe pool that the server flushes.
  void SetUp() override {
    format::HelloReply hello{};
    hello.magic = format::kHelloMagic;
    hello.protocol_version = format::kProtocolVersion;
    hello.flush_method = static_cast<uint8_t>(format::FlushMethod::kServerFlush);
    hello.durability = static_cast<uint8_t>(format::Durability::kPowerSafe);
    hello.slots = 4;
    hello.slot_bytes = 4096;
    hello.placing = static_cast<uint8_t>(placing());
    hello.time = kServerMillis * 1000;
    hello.geometry = *format::ChooseGeometry({64 << 20, 1, 8 << 20, 4 << 20, 0});
    hello.hash_seed = kTestHashSeed;
    geometry_ = hello.geometry;
    const auto data = BytesOf(hello);
    fabric_->peer_data.assign(data.begin(), data.end());
    fabric_->peer_regions.assign(4, {hello.geometry.pool_size, fabric::Access::kRemoteReadWrite});
    EngineOptions options;
    options.timeout = kTimeout;
    options.put_path = path();
    auto engine = Engine::Create(fabric_, "hand:server", options, clock_);
    ASSERT_TRUE(engine.ok()) << engine.status().ToString();
    engine_ = *std::move(engine);
    ASSERT_TRUE(engine_->connections().Connect().ok());
    fabric_->Accept();
    engine_->Poll();
    TellSlots(1);
    engine_->Poll();
    const auto up = engine_->connections().Connect();
    ASSERT_TRUE(up.ok() && *up);
  }

  // Answers the Read of the control block that is posted next: each slot of each head has the first region.
  void TellSlots(uint32_t generation) {
    const WorkRequest control = fabric_->Take();
    ASSERT_EQ(control.kind, OpKind::kRead);
    ASSERT_GT(control.local.size(), format::kControlHeadsOffset);
    const auto slot = format::HeadSlot::Of(0, generation);
    for (size_t at = format::kControlHeadsOffset; at + sizeof(slot) <= control.local.size(); at += sizeof(slot)) {
      std::memcpy(control.local.data() + at, &slot, sizeof(slot));
    }
    fabric_->Complete(control);
  }
  void Put(size_t value_bytes) {
    const Status started =
        engine_->Put(kKey, std::string(value_bytes, 'v'), [this](const Status& status) { End(status); });
    ASSERT_TRUE(started.ok()) << started.ToString();
  }
  [[nodiscard]] virtual PutPath path() const { return PutPath::kAuto; }
  [[nodiscard]] virtual format::Placing placing() const { return format::Placing::kPool; }
  virtual void End(const Status& status) { end_ = CodeName(status.code()); }

  // Returns the answer to a request for a chunk: a chunk of `bytes` bytes.
  [[nodiscard]] static Reply ChunkFor(const WorkRequest& asks, uint64_t bytes) {
    Reply reply{};
    reply.address = LogAddress::At(0, 4096).raw();
    reply.head = LoadAs<Request>(asks.local).head;
    reply.generation = 1;
    reply.header.kind = static_cast<uint8_t>(format::ObjectKind::kChunk);
    reply.header.value_size = static_cast<uint32_t>(format::ChunkValueBytes(bytes));
    return reply;
  }

  // Takes the next posted operation, which must be a request.
  WorkRequest TakeRequest(RequestOp op) {
    const WorkRequest work = fabric_->Take();
    EXPECT_EQ(work.kind, OpKind::kWriteImm);
    EXPECT_EQ(LoadAs<Request>(work.local).op, static_cast<uint8_t>(op));
    return work;
  }
  // Takes the reservation of a put that is too large for a request. If a chunk could hold the value, the put asks for
  // one first, and the server refuses.
  WorkRequest TakeReserve() {
    const bool asks = !fabric_->posted.empty() && fabric_->posted.front().local.size() == sizeof(Request);
    if (asks) Refuse(TakeRequest(RequestOp::kDelegate));
    return TakeRequest(RequestOp::kReserve);
  }
  // Gives the server's answer, which the next Poll finds.
  void Answer(const WorkRequest& request, Reply reply) {
    reply.id = LoadAs<Request>(request.local).id;
    std::memcpy(fabric_->offered().data() + request.imm * sizeof(Reply), &reply, sizeof(reply));
    fabric_->ReceiveImm(request.imm);
  }
  void Refuse(const WorkRequest& request) {
    Reply reply{};
    reply.code = static_cast<uint8_t>(Code::kResourceExhausted);
    Answer(request, reply);
  }
  void Reserve(const WorkRequest& request, size_t value_bytes, uint32_t generation = 1) {
    Reply reply{};
    reply.address = LogAddress::At(0, 4096).raw();
    reply.generation = generation;
    reply.header.key_size = static_cast<uint16_t>(std::string_view(kKey).size());
    reply.header.value_size = static_cast<uint32_t>(value_bytes);
    reply.header.key_hash = HashKey(kKey);
    Answer(request, reply);
  }

  static constexpr Nanoseconds kTimeout{1'000'000'000};
  static constexpr uint64_t kServerMillis = 1'000'000;  // The time that the server tells when it accepts.
  HandClock clock_;
  format::Geometry geometry_{};
  const std::shared_ptr<HandFabric> fabric_ = std::make_shared<HandFabric>();
  std::unique_ptr<Engine> engine_;
  std::string_view end_;  // The outcome of the put. Empty while it goes on.
};

}  // namespace erda::client
