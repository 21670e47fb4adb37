// Operations that did not end, or that ended at the wrong time.
#include <algorithm>

#include "regression/fixture.h"

namespace erda {
namespace {

using std::chrono::milliseconds;

class ClientTest : public RegressionTest {};

// A report to the server takes a request slot. When the reply freed the slot, the client did not wake the put that
// waited for a slot, and the put timed out.
TEST_F(ClientTest, PutGetsTheRequestSlotThatAReportFrees) {
  const auto server = Serve(DramOptions());
  const auto writer = Connect();
  ASSERT_TRUE(writer->Put("key", "old").ok());
  ASSERT_TRUE(writer->PutAsync("key", std::string(100'000, 'n'), [](auto) {}).ok());
  ASSERT_TRUE(WaitUntil([&] { return server->stats().puts_reserved == 1; }));
  ClientOptions options;
  options.queue_depth = 1;
  const auto reader = Connect(options);
  // The new value is reserved and nobody writes it, so this get reports it.
  const auto value = reader->Get("key");
  ASSERT_TRUE(value.ok()) << value.status().ToString();
  EXPECT_EQ(*value, "old");
  EXPECT_EQ(reader->stats().requests, 1U);
  const Status put = reader->Put("other", "value");
  EXPECT_TRUE(put.ok()) << put.ToString();
}

// The client refused a value that was too large for an inline put, inside the PutAsync that a callback called. It ran
// the callback of that put there.
TEST_F(ClientTest, ACallbackDoesNotRunInsideTheCallThatACallbackMakes) {
  const auto server = Serve(DramOptions());
  ClientOptions options;
  options.put_path = PutPath::kInline;
  const auto client = Connect(options);
  bool inside = false;
  std::vector<std::string> ends;
  const auto end = [&](const char* what, const Status& status) {
    EXPECT_FALSE(inside) << what;
    ends.push_back(what + std::string(CodeName(status.code())));
  };
  const Status started = client->GetAsync("other", [&](auto) {
    inside = true;
    const std::string large(50'000, 'x');
    EXPECT_TRUE(client->PutAsync("key", large, [&](const Status& put) { end("put: ", put); }).ok());
    EXPECT_TRUE(client->GetAsync("key", [&](const auto& value) { end("get: ", value.status()); }).ok());
    inside = false;
  });
  ASSERT_TRUE(started.ok());
  ASSERT_TRUE(client->Drain().ok());
  EXPECT_EQ(ends, (std::vector<std::string>{"put: invalid argument", "get: not found"}));
}

// Two operations on one key end in the order of their start, also if the first one fails at once, or if all fail.
TEST_F(ClientTest, CallbacksOfOneKeyComeInTheOrderStartedAndInsidePoll) {
  const auto server = Serve(DramOptions());
  ClientOptions options;
  options.put_path = PutPath::kInline;
  const auto client = Connect(options);
  ASSERT_TRUE(client->Put("key", "value").ok());
  const std::vector<std::string> order = {"put", "get", "delete"};
  std::vector<std::string> ends;
  const auto start = [&] {
    ends.clear();
    const std::string large(50'000, 'x');
    ASSERT_TRUE(client->PutAsync("key", large, [&](auto) { ends.emplace_back("put"); }).ok());
    ASSERT_TRUE(client->GetAsync("key", [&](auto) { ends.emplace_back("get"); }).ok());
    ASSERT_TRUE(client->DeleteAsync("key", [&](auto) { ends.emplace_back("delete"); }).ok());
    EXPECT_TRUE(ends.empty()) << "a callback ran outside of Poll";
    ASSERT_TRUE(client->Drain().ok());
  };
  start();
  EXPECT_EQ(ends, order);
  ASSERT_TRUE(server->Stop().ok());
  start();  // this put notices the stop
  EXPECT_EQ(ends, order);
  start();  // no server listens
  EXPECT_EQ(ends, order);
}

// Callbacks must not throw. After one had thrown, the client believed for ever that it was polling. Poll then did
// nothing, and no later operation ended.
TEST_F(ClientTest, ACallbackThatThrowsLeavesTheClientUsable) {
  const auto server = Serve(DramOptions());
  const auto client = Connect();
  ASSERT_TRUE(client->GetAsync("key", [](auto) { throw 1; }).ok());
  EXPECT_THROW((void)client->Drain(), int);
  EXPECT_TRUE(client->Put("key", "value").ok());
  const auto value = client->Get("key");
  ASSERT_TRUE(value.ok()) << value.status().ToString();
  EXPECT_EQ(*value, "value");
}

// A callback threw, and other operations that were to end in the same Poll never ended. Their completions were lost,
// and Drain waited for ever.
TEST_F(ClientTest, OtherOperationsEndWhenACallbackThrows) {
  const auto server = Serve(DramOptions());
  ClientOptions options;
  options.timeout = std::chrono::seconds(60);  // no operation times out during the test
  const auto client = Connect(options);
  int ends = 0;
  const auto start = [&] {
    for (const char* key : {"a", "b", "b", "c", "d"}) {
      ASSERT_TRUE(client
                      ->PutAsync(key, "value",
                                 [&](const Status&) {
                                   ++ends;
                                   throw 1;
                                 })
                      .ok());
    }
  };
  // Drain would wait for the last operation without a limit.
  const auto poll_until = [&](int all) {
    return WaitUntil(
        [&] {
          try {
            client->Poll();
          } catch (int) {
          }
          return ends == all;
        },
        std::chrono::seconds(10));
  };
  start();
  ASSERT_TRUE(poll_until(5)) << "of 5 operations only " << ends << " ended";
  start();
  ASSERT_TRUE(server->Stop().ok());  // the connection ends, and all operations with it
  ASSERT_TRUE(poll_until(10)) << "of 10 operations only " << ends << " ended";
  EXPECT_EQ(client->Poll(), 0U) << "one of them ended twice";
}

// Each operation that waited for its turn had a separate timeout: eight operations took eight timeouts.
TEST_F(ClientTest, OperationsThatWaitForTheirTurnEndWithTheOneThatTimedOut) {
  const ServerProcess server(Address());
  ClientOptions options;
  options.timeout = milliseconds(2000);
  const auto client = Connect(options);
  ASSERT_TRUE(client->Put("key", "value").ok());
  server.Freeze();
  std::vector<Code> ends;
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(client->PutAsync("key", "late", [&](const Status& put) { ends.push_back(put.code()); }).ok());
  }
  ASSERT_TRUE(client->Drain().ok());
  ASSERT_EQ(ends.size(), 8U);
  EXPECT_EQ(ends.front(), Code::kTimeout);
  EXPECT_EQ(std::count(ends.begin(), ends.end(), Code::kUnavailable), 7);
}

// The client looked at timeouts only when nothing completed. Gets need no server, and completed all the time.
TEST_F(ClientTest, AnOperationTimesOutWhileOthersComplete) {
  const ServerProcess server(Address());
  ClientOptions options;
  options.timeout = milliseconds(2000);
  const auto client = Connect(options);
  ASSERT_TRUE(client->Put("key", "value").ok());
  server.Freeze();
  Status outcome;
  bool done = false;
  const Status started = client->PutAsync("other", "late", [&](Status put) {
    outcome = std::move(put);
    done = true;
  });
  ASSERT_TRUE(started.ok());
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!done && std::chrono::steady_clock::now() < limit) {
    (void)client->GetAsync("key", [](auto) {});
    client->Poll();
  }
  ASSERT_TRUE(done);
  EXPECT_EQ(outcome.code(), Code::kTimeout) << outcome.ToString();
}

// The result was the difference of two sizes, and was below zero.
TEST_F(ClientTest, LargestValueForAKeyThatIsTooLongIsZero) {
  const auto server = Serve(DramOptions());
  const auto client = Connect();
  EXPECT_GT(client->max_value_bytes(1024), 0U);
  EXPECT_EQ(client->max_value_bytes(1025), 0U);
  EXPECT_EQ(client->max_value_bytes(size_t{1} << 30), 0U);
  EXPECT_EQ(client->max_value_bytes(SIZE_MAX), 0U);
}

}  // namespace
}  // namespace erda
