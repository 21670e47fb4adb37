// What the tests of the conformance suite share: two ends with memory, a channel between them, and words to say what
// is posted and what came.
#pragma once

#include <gtest/gtest.h>

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

// A completion, with bytes of its own.
struct Event {
  Channel* channel = nullptr;
  OpKind kind = OpKind::kRead;
  Code code = Code::kOk;
  uint32_t imm = 0;
  uint64_t id = 0;
  uint32_t bytes = 0;
  std::string data;
};

// One end: a process, as it were.
struct End {
  [[nodiscard]] std::span<std::byte> bytes(size_t offset, size_t size) const {
    return memory.bytes().subspan(offset, size);
  }
  [[nodiscard]] std::string text(size_t offset, size_t size) const;
  // Takes all that its queue has, and keeps it in `events`.
  void Poll();
  [[nodiscard]] size_t Count(OpKind kind) const;
  [[nodiscard]] std::vector<Event> Of(const Channel* one) const;

  Fabric* fabric = nullptr;
  SharedMemory memory;
  std::unique_ptr<Region> region;  // all of the memory, to read and write
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

  // A connection between the two ends, which both know of by now: kConnected is not among their events any more. What
  // is not given is filled in. Null channels if it fails.
  ChannelPair Connect(ChannelOptions client, ChannelOptions server);
  // The connection that most tests use: client_.channel and server_.channel, each offering its region.
  void Connect(uint32_t message_depth = 64);
  [[nodiscard]] ChannelOptions Offer(const End& end, std::span<Region* const> regions) const;
  // Whether nobody listens there: it is said at once, or by kClosed.
  testing::AssertionResult Refused(const std::string& address);
  // The next that asks; null if nobody does.
  std::unique_ptr<Incoming> NextIncoming();
  // The end's memory once more.
  static std::unique_ptr<Region> Register(const End& end, Access access);

  void Pump();
  testing::AssertionResult PumpUntil(const std::function<bool()>& done);
  // Until `end` has so many completions and arrivals of that kind.
  testing::AssertionResult PumpUntil(const End& end, OpKind kind, size_t count = 1);
  // Until nothing more is to be expected.
  void Settle();

  std::unique_ptr<World> world_;
  std::unique_ptr<Listener> listener_;
  End server_;
  End client_;
};

// Requests of one end. Remote places are in region 0.
WorkRequest Read(const End& end, size_t local, size_t size, uint64_t remote, uint64_t id = 0);
WorkRequest Write(const End& end, size_t local, size_t size, uint64_t remote, uint64_t id = 0);
WorkRequest WriteImm(const End& end, size_t local, size_t size, uint64_t remote, uint32_t imm, uint64_t id = 0);
WorkRequest Send(const End& end, size_t local, size_t size, uint64_t id = 0);
WorkRequest Unsignaled(WorkRequest request);

Status Post(Channel& channel, const WorkRequest& request);

// Bytes that follow from the seed, and are the same nowhere else.
std::string Pattern(size_t size, uint64_t seed);
void Put(std::span<std::byte> to, std::string_view bytes);

std::string KindName(const testing::TestParamInfo<WorldKind>& info);
void PrintTo(const WorldKind& kind, std::ostream* out);

}  // namespace erda::fabric

namespace erda {
void PrintTo(Code code, std::ostream* out);
void PrintTo(const Status& status, std::ostream* out);
}  // namespace erda
