// The fixture of the conformance suite: two ends with memory, a channel between them, and helpers to post and to check
// events.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/shared_memory.h"
#include "fabric/fabric.h"
#include "fabric/world.h"

namespace erda::fabric {

// A completion, with a copy of its bytes.
struct Event {
  Channel* channel = nullptr;
  OpKind kind = OpKind::kRead;
  Code code = Code::kOk;
  uint32_t imm = 0;
  uint64_t id = 0;
  uint32_t bytes = 0;
  std::string data;
};

// One end. It stands for a process.
struct End {
  [[nodiscard]] std::span<std::byte> bytes(size_t offset, size_t size) const {
    return memory.bytes().subspan(offset, size);
  }
  [[nodiscard]] std::string text(size_t offset, size_t size) const;
  // Takes everything from its queue, and keeps it in `events`.
  void Poll();
  [[nodiscard]] size_t Count(OpKind kind) const;
  [[nodiscard]] std::vector<Event> Of(const Channel* one) const;

  Fabric* fabric = nullptr;
  SharedMemory memory;
  std::unique_ptr<Region> region;  // All of the memory, to read and write.
  std::unique_ptr<CompletionQueue> queue;
  std::vector<Event> events;
  std::unique_ptr<Channel> channel;
};

struct ChannelPair {
  std::unique_ptr<Channel> client;
  std::unique_ptr<Channel> server;
};

class FabricTest : public testing::TestWithParam<WorldKind> {
 protected:
  static constexpr size_t kMemoryBytes = size_t{8} << 20;

  void SetUp() override;

  // Makes a connection between the two ends. Both know of it when this returns, and kConnected is no longer among their
  // events. Fills in missing options. Returns null channels if it fails.
  ChannelPair Connect(ChannelOptions client, ChannelOptions server);
  // Makes the connection for most tests: client_.channel and server_.channel, each offering its region.
  void Connect(uint32_t message_depth = 64);
  [[nodiscard]] ChannelOptions Offer(const End& end, std::span<Region* const> regions) const;
  // Checks that no one listens there. The fabric reports that at once, or by kClosed.
  testing::AssertionResult Refused(const std::string& address);
  // Returns the next peer that asks. Returns null if none does.
  std::unique_ptr<Incoming> NextIncoming();
  // Registers the end's memory once more.
  static std::unique_ptr<Region> Register(const End& end, Access access);

  void Pump();
  testing::AssertionResult PumpUntil(const std::function<bool()>& done);
  // Pumps until `end` has this number of events of that kind.
  testing::AssertionResult PumpUntil(const End& end, OpKind kind, size_t count = 1);
  // Pumps until nothing more can come.
  void Settle();
  // Returns how often two threads meet: over verbs at most so often that a Meeting has each pair of its delays twice.
  // The lab's device takes more than a millisecond for a meeting.
  [[nodiscard]] static uint32_t Rounds(uint32_t usual) {
    return GetParam().name == "verbs" ? std::min(usual, 5'000U) : usual;
  }

  std::unique_ptr<World> world_;
  std::unique_ptr<Listener> listener_;
  End server_;
  End client_;
};

// Make requests of one end. Remote places are in region 0.
WorkRequest Read(const End& end, size_t local, size_t size, uint64_t remote, uint64_t id = 0);
WorkRequest Write(const End& end, size_t local, size_t size, uint64_t remote, uint64_t id = 0);
WorkRequest WriteImm(const End& end, size_t local, size_t size, uint64_t remote, uint32_t imm, uint64_t id = 0);
WorkRequest Send(const End& end, size_t local, size_t size, uint64_t id = 0);
WorkRequest Unsignaled(WorkRequest request);

Status Post(Channel& channel, const WorkRequest& request);

// Returns bytes that follow from the seed, and occur nowhere else.
std::string Pattern(size_t size, uint64_t seed);
void Put(std::span<std::byte> to, std::string_view bytes);

std::string KindName(const testing::TestParamInfo<WorldKind>& info);
void PrintTo(const WorldKind& kind, std::ostream* out);

}  // namespace erda::fabric

namespace erda {
void PrintTo(Code code, std::ostream* out);
void PrintTo(const Status& status, std::ostream* out);
}  // namespace erda
