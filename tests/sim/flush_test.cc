// Sessions with different flush methods on one shard: the cost of a put, and the values that readers of each method
// see.
#include "sim/ports.h"

namespace erda::sim {
namespace {

using format::Counter;
using format::FlushMethod;

class FlushTest : public PortsTest {
 protected:
  static constexpr size_t kRead = 0;    // the port whose sessions have read-after-write
  static constexpr size_t kServer = 1;  // the port whose sessions have server flush
  void SetUp() override { Serve({FlushMethod::kReadAfterWrite, FlushMethod::kServerFlush}); }
};

TEST_F(FlushTest, ReservedPutTakesTwoRoundTripsWithEitherMethod) {
  for (const size_t port : {kRead, kServer}) {
    const auto client = MakeClient("client" + std::to_string(port), port);
    ASSERT_EQ(Put(*client, "key", "connects"), Code::kOk);
    const ClientStats before = client->stats();
    const size_t doorbells = Doorbells();
    const uint64_t commits = Count(Counter::kCommits);
    ASSERT_EQ(Put(*client, "key", "value"), Code::kOk);
    EXPECT_EQ(Doorbells(), doorbells + 2) << "the request; then, at once, the value and what flushes it";
    EXPECT_EQ(client->stats().requests, before.requests + (port == kRead ? 1 : 2));
    EXPECT_EQ(client->stats().reads, before.reads + (port == kRead ? 1 : 0));
    EXPECT_EQ(Count(Counter::kCommits), commits + (port == kRead ? 0 : 1));
  }
}

// No idle moment settles the version. The put alone makes it readable.
TEST_F(FlushTest, AcknowledgedPutIsSeenByEveryClient) {
  for (const size_t port : {kRead, kServer}) {
    const auto writer = MakeClient("writer" + std::to_string(port), port);
    const std::string key = "of" + std::to_string(port);
    ASSERT_EQ(Put(*writer, key, "old"), Code::kOk);
    ASSERT_EQ(Put(*writer, key, "new"), Code::kOk);
    for (const size_t reader_port : {kRead, kServer}) {
      const auto reader = MakeClient("reader" + std::to_string(port) + std::to_string(reader_port), reader_port);
      EXPECT_EQ(Get(*reader, key), "new") << "put on port " << port << ", read on port " << reader_port;
    }
  }
}

TEST_F(FlushTest, EachSessionHasTheMethodOfItsPort) {
  const auto read = MakeClient("read", kRead);
  const auto server = MakeClient("server", kServer);
  ASSERT_EQ(Put(*read, "key", "value"), Code::kOk);
  ASSERT_EQ(Put(*server, "key", "value"), Code::kOk);
  EXPECT_EQ(read->connections().links()[0]->flush_method(), FlushMethod::kReadAfterWrite);
  EXPECT_EQ(server->connections().links()[0]->flush_method(), FlushMethod::kServerFlush);
}

}  // namespace
}  // namespace erda::sim
