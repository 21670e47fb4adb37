// Every call without memory: each allocation of its thread fails in turn, until the call succeeds.
#include <gtest/gtest.h>
#include <poll.h>

#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/temporary_folder.h"
#include "erda/client.h"
#include "erda/erda.h"
#include "erda/server.h"
#include "misuse/failing_new.h"

namespace erda {
namespace {

// Runs the call with the n-th allocation failing, for n = 0, 1, and so on. First that one fails alone, and then with
// all after it. Ends when the call makes fewer allocations. Returns their number.
int64_t EachFails(const char* name, const std::function<Code()>& call, const std::function<void()>& after) {
  int64_t most = 0;
  for (const bool once : {true, false}) {
    for (int64_t n = 0;; ++n) {
      if (n == 100'000) {
        ADD_FAILURE() << name << " never succeeds";
        return n;
      }
      fails_once = once;
      left = n;
      Code code = Code::kInternal;
      try {
        code = call();
      } catch (...) {
        left = -1;
        ADD_FAILURE() << name << " throws without allocation " << n;
        return n;
      }
      const bool failed = once ? left < 0 : left == 0;
      left = -1;
      // A call may return kOk if it lost only something that it can do without. (left == 0: the call may have ended
      // just there.)
      EXPECT_TRUE(code == Code::kOk || (code == Code::kResourceExhausted && failed))
          << name << " without allocation " << n << ": " << CodeName(code);
      after();
      if (testing::Test::HasFailure()) return n;
      if (!failed) {
        most = n;
        break;
      }
      if (!once && code == Code::kOk && n > most) break;
    }
  }
  return most;
}

class NoMemory : public testing::Test {
 protected:
  static constexpr size_t kLarge = 30'000;

  void SetUp() override {
    server_ = *Server::Open(Options());
    ASSERT_TRUE(server_->Start().ok());
    Reconnect();
    for (const char* key : {"key", "other"}) ASSERT_TRUE(client_->Put(key, Value()).ok());
  }
  [[nodiscard]] ServerOptions Options() const {
    ServerOptions options;
    options.pool = "dram:";
    options.pool_size = uint64_t{64} << 20;
    options.shards = 2;
    options.listen = {address_};
    return options;
  }
  void Reconnect() {
    ClientOptions options;
    options.cache_entries = 64;
    options.queue_depth = 8;
    client_ = *Client::Connect(address_, options);
  }
  static std::string Value() { return std::string(kLarge, 'v'); }
  // The client goes on working, also without a connection that it lost.
  void GoesOn() const {
    const auto got = client_->Get("key");
    EXPECT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_EQ(got.ok() ? got->size() : 0, kLarge);
    EXPECT_TRUE(client_->Drain().ok());
  }
  // Runs on a client that has made every call before, and on one that just connected.
  void Try(const char* name, const std::function<Code()>& call) {
    EachFails(name, call, [&] { GoesOn(); });
    if (HasFailure()) return;
    EachFails(name, call, [&] {
      Reconnect();
      GoesOn();
    });
  }

  const TemporaryFolder folder_;
  const std::string address_ = "shm:" + (folder_ / "socket").string();
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(NoMemory, WaitingCallsOfTheClientEndWithAStatus) {
  const std::string value = Value();
  Try("Get", [&] { return client_->Get("key").status().code(); });
  Try("Get into memory", [&] {
    static std::byte out[kLarge];
    return client_->Get("key", out).status().code();
  });
  Try("GetVersioned", [&] { return client_->GetVersioned("key").status().code(); });
  Try("Put", [&] { return client_->Put("key", value).code(); });
  Try("Put of a small one", [&] { return client_->Put("small", "value").code(); });
  Try("Put with options", [&] {
    PutOptions options;
    options.ttl = std::chrono::hours(1);
    return client_->Put("expires", value, options).status().code();
  });
  Try("Delete", [&] {
    const Code code = client_->Delete("small").code();
    return code == Code::kNotFound ? Code::kOk : code;
  });
  Try("Increment", [&] { return client_->Increment("number").status().code(); });
  Try("MakeBuffer", [&] { return client_->MakeBuffer(100).status().code(); });
  Try("Scan", [&] { return client_->Scan().status().code(); });
  Try("Clean", [&] { return client_->Clean().code(); });
  Try("ServerInfo", [&] { return client_->ServerInfo().status().code(); });
  Try("ServerActivity", [&] { return client_->ServerActivity().status().code(); });
}

TEST_F(NoMemory, CallsOfTheClientWithABufferEndWithAStatus) {
  std::optional<Buffer> buffer(*client_->MakeBuffer(kLarge));
  const auto after = [&] { GoesOn(); };
  EachFails(
      "Get", [&] { return client_->Get("key", *buffer).status().code(); }, after);
  EachFails(
      "Put", [&] { return client_->Put("key", *buffer, kLarge).code(); }, after);
}

TEST_F(NoMemory, EachResultOfAMultiGetHasAStatus) {
  const std::string_view keys[] = {"key", "nothing", "", "key"};
  const auto worst = [](const auto& results) {
    if (results.empty()) return Code::kResourceExhausted;
    EXPECT_EQ(results.size(), 4U);
    for (const auto& one : results) {
      const Code code = one.status().code();
      if (code != Code::kOk && code != Code::kNotFound && code != Code::kInvalidArgument) return code;
    }
    return Code::kOk;
  };
  Try("MultiGet", [&] { return worst(client_->MultiGet(keys)); });
  Try("MultiGetVersioned", [&] { return worst(client_->MultiGetVersioned(keys)); });
}

TEST_F(NoMemory, EachResultOfAMultiPutHasAStatus) {
  const std::string value = Value();
  uint64_t number = 0;
  ASSERT_TRUE(client_->Put("small", "0").ok());
  Try("MultiPut", [&] {
    const std::string small = std::to_string(++number);
    const int64_t allocations = std::exchange(left, -1);  // Those of the test do not count.
    const std::string before = *client_->Get("small");
    left = allocations;
    const KeyValue puts[] = {{"small", small}, {"large", value}, {"", "value"}, {"key", value}, {"large", value}};
    const auto results = client_->MultiPut(puts);
    const bool failed = fails_once ? left < 0 : left == 0;
    const int64_t rest = std::exchange(left, -1);
    Code worst = results.empty() ? Code::kResourceExhausted : Code::kOk;
    for (size_t i = 0; i < results.size(); ++i) {
      const Code code = results[i].status().code();
      if (i == 2) {
        EXPECT_TRUE(code == Code::kInvalidArgument || (failed && code == Code::kResourceExhausted)) << CodeName(code);
      } else if (code != Code::kOk) {
        worst = code;
      }
    }
    const std::string after = *client_->Get("small");
    const bool may_be_new = !results.empty();
    const bool may_be_old = results.empty() || !results[0].ok();
    EXPECT_TRUE((after == small && may_be_new) || (after == before && may_be_old)) << after;
    left = rest;
    return worst;
  });
}

// Each operation that began has its callback, once, even if the memory ends at any moment before that.
TEST_F(NoMemory, EachAsynchronousOperationRunsItsCallbackOnce) {
  const std::string value = Value();
  Try("asynchronous operations", [&] {
    int begun = 0;
    int ended = 0;
    Code worst = Code::kOk;
    const auto see = [&](Code code) {
      if (code != Code::kOk && code != Code::kNotFound) worst = code;
    };
    const auto begin = [&](const Status& status) {
      begun += status.ok() ? 1 : 0;
      see(status.code());
    };
    const auto end = [&](const Status& status) {
      ++ended;
      see(status.code());
    };
    for (const char* key : {"key", "other"}) {
      begin(client_->PutAsync(key, value, [&](const Status& status) { end(status); }));
      begin(client_->GetAsync(key, [&](const auto& got) { end(got.status()); }));
      begin(client_->IncrementAsync("number", 1, [&](const auto& sum) { end(sum.status()); }));
    }
    see(client_->Drain().code());
    EXPECT_EQ(ended, begun);
    return worst == Code::kNotFound ? Code::kOk : worst;
  });
}

// The callbacks of the call's gets would come after the call, and use its memory.
TEST_F(NoMemory, MultiGetEndsItsGetsBeforeItThrowsACallbacksException) {
  const std::vector<std::string_view> keys(50, "key");
  for (int i = 0; i < 7; ++i) {
    ASSERT_TRUE(client_->PutAsync("key", Value(), [](const Status&) { throw 1; }).ok());
  }
  EXPECT_THROW((void)client_->MultiGet(keys), int);
  const uint64_t gets = client_->stats().gets;
  EXPECT_TRUE(client_->Drain().ok());
  EXPECT_EQ(client_->stats().gets, gets) << "none was left in flight";
  GoesOn();
}

TEST_F(NoMemory, MultiPutEndsItsPutsBeforeItThrowsACallbacksException) {
  const std::vector<KeyValue> puts(50, KeyValue{"key", "of a MultiPut"});
  for (int i = 0; i < 7; ++i) {
    ASSERT_TRUE(client_->PutAsync("key", "value", [](const Status&) { throw 1; }).ok());
  }
  EXPECT_THROW((void)client_->MultiPut(puts), int);
  const uint64_t ended = client_->stats().puts;
  EXPECT_TRUE(client_->Drain().ok());
  EXPECT_EQ(client_->stats().puts, ended) << "none was left in flight";
  EXPECT_EQ(*client_->Get("key"), "of a MultiPut");
  ASSERT_TRUE(client_->Put("key", Value()).ok());
  GoesOn();
}

// The client connects within the call, or while it waits. It sleeps at once, so that it hears the answer there.
TEST_F(NoMemory, CallsThatConnectAgainEndWithAStatus) {
  ClientOptions options;
  options.cache_entries = 64;
  options.queue_depth = 8;
  options.polling = Polling::kSleep;
  client_ = *Client::Connect(address_, options);
  const auto lose = [&] {
    server_.reset();
    while (client_->Put("key", "value").ok()) continue;  // The server is gone.
    server_ = *Server::Open(Options());
    ASSERT_TRUE(server_->Start().ok());
  };
  lose();
  EachFails(
      "Put", [&] { return client_->Put("key", "value").code(); }, lose);
  EachFails(
      "PutAsync",
      [&] {
        int ended = 0;
        Code code = Code::kOk;
        const Status begun = client_->PutAsync("key", "value", [&](const Status& status) {
          ++ended;
          code = status.code();
        });
        if (!begun.ok()) code = begun.code();
        EXPECT_TRUE(client_->Drain().ok());
        EXPECT_EQ(ended, begun.ok() ? 1 : 0);
        return code;
      },
      lose);
}

// The client hears the answer to its connection when it ends the effect of Arm.
TEST_F(NoMemory, EventLoopsThatConnectAgainEndWithAStatus) {
  ClientOptions options;
  options.queue_depth = 8;
  client_ = *Client::Connect(address_, options);
  EachFails(
      "Poll",
      [&] {
        std::optional<Code> code;
        const Status begun = client_->PutAsync("key", "value", [&](const Status& status) { code = status.code(); });
        if (!begun.ok()) return begun.code();
        while (!code) {
          client_->Poll();
          const auto sleep = client_->Arm();
          if (code || !sleep.ok()) continue;
          pollfd event{client_->descriptor(), POLLIN, 0};
          (void)::poll(&event, 1, static_cast<int>(sleep->count()));
        }
        return *code;
      },
      [&] {
        server_.reset();
        while (client_->Put("key", "value").ok()) continue;  // The server is gone.
        server_ = *Server::Open(Options());
        ASSERT_TRUE(server_->Start().ok());
      });
}

TEST_F(NoMemory, CallThatWaitsForRoomEndsWithAStatus) {
  ClientOptions options;
  options.queue_depth = 1;
  options.wait_for_room = true;
  client_ = *Client::Connect(address_, options);
  bool runs = false;
  ASSERT_TRUE(client_->PutAsync("key", "1", [](const Status&) { throw std::bad_alloc(); }).ok());
  EXPECT_EQ(client_->PutAsync("key", "2", [&](const Status&) { runs = true; }).code(), Code::kResourceExhausted);
  EXPECT_TRUE(client_->PutAsync("key", "3", [](const Status& status) { EXPECT_TRUE(status.ok()); }).ok());
  EXPECT_TRUE(client_->Drain().ok());
  EXPECT_FALSE(runs);
  EXPECT_EQ(*client_->Get("key"), "3");
}

// The client must have a link for each shard that it may name. So it makes the links before it believes in the shards.
TEST_F(NoMemory, CallsThatMeetAPoolWithMoreShardsEndWithAStatus) {
  ClientOptions options;
  options.queue_depth = 8;
  const auto serve = [&](uint32_t shards) {
    server_.reset();
    while (client_->Put("key", "value").ok()) continue;  // The server is gone.
    ServerOptions more = Options();
    more.shards = shards;
    server_ = *Server::Open(more);
    ASSERT_TRUE(server_->Start().ok());
  };
  const auto meet = [&] {
    client_.reset();
    server_.reset();
    ServerOptions one = Options();
    one.shards = 1;
    server_ = *Server::Open(one);
    ASSERT_TRUE(server_->Start().ok());
    client_ = *Client::Connect(address_, options);
    serve(4);
  };
  meet();
  EachFails(
      "Put", [&] { return client_->Put("key", "value").code(); },
      [&] {
        for (int i = 0; i < 20; ++i) EXPECT_TRUE(client_->Put("key" + std::to_string(i), "value").ok()) << i;
        meet();
      });
}

TEST_F(NoMemory, ConnectingEndsWithAStatus) {
  EachFails(
      "Connect", [&] { return Client::Connect(address_).status().code(); }, [&] { GoesOn(); });
}

TEST_F(NoMemory, CallsOfTheCApiEndWithACode) {
  erda_client* client = nullptr;
  const auto go_on = [&] {
    size_t size = 0;
    static char out[kLarge];
    EXPECT_EQ(erda_client_get(client, "key", 3, out, sizeof(out), &size), ERDA_OK) << erda_client_error();
  };
  ASSERT_EQ(erda_client_connect(address_.c_str(), nullptr, &client), ERDA_OK);
  const auto each = [&](const char* name, const std::function<erda_code()>& call) {
    EachFails(
        name, [&] { return static_cast<Code>(call()); }, go_on);
  };
  const std::string value = Value();
  each("connect", [&] {
    erda_client* other = nullptr;
    const erda_code code = erda_client_connect(address_.c_str(), nullptr, &other);
    erda_client_close(other);
    return code;
  });
  each("get_alloc", [&] {
    erda_result* result = nullptr;
    const erda_code code = erda_client_get_alloc(client, "key", 3, &result);
    erda_client_free(result);
    return code;
  });
  each("put", [&] { return erda_client_put(client, "key", 3, value.data(), value.size(), nullptr, nullptr); });
  each("increment", [&] { return erda_client_increment(client, "number", 6, 1, nullptr); });
  each("multi_get", [&] {
    const erda_bytes keys[] = {{"key", 3}, {"nothing", 7}, {"other", 5}};
    erda_result* results = nullptr;
    erda_code code = erda_client_multi_get(client, keys, 3, &results);
    for (int i = 0; results != nullptr && i < 3; ++i) {
      if (results[i].code == ERDA_RESOURCE_EXHAUSTED) code = results[i].code;
    }
    erda_client_free(results);
    return code;
  });
  each("multi_put", [&] {
    const erda_bytes keys[] = {{"key", 3}, {"small", 5}, {"other", 5}};
    const erda_bytes large{value.data(), value.size()};
    const erda_bytes values[] = {large, {"value", 5}, large};
    erda_result* results = nullptr;
    erda_code code = erda_client_multi_put(client, keys, values, nullptr, 3, &results);
    for (int i = 0; results != nullptr && i < 3; ++i) {
      if (results[i].code != ERDA_OK) code = results[i].code;
    }
    erda_client_free(results);
    return code;
  });
  each("scan", [&] {
    erda_scan_page* page = nullptr;
    const erda_code code = erda_client_scan(client, nullptr, &page);
    erda_client_free(page);
    return code;
  });
  each("get_server_info", [&] {
    erda_server_info* info = nullptr;
    const erda_code code = erda_client_get_server_info(client, &info);
    erda_client_free(info);
    return code;
  });
  each("get_async", [&] {
    struct Told {
      int begun = 0;
      int ended = 0;
      erda_code code = ERDA_OK;
    } told;
    const auto done = [](void* user, const erda_result* result) {
      auto* to = static_cast<Told*>(user);
      ++to->ended;
      if (result->code != ERDA_OK) to->code = result->code;
    };
    erda_code code = erda_client_get_async(client, "key", 3, done, &told);
    told.begun += code == ERDA_OK ? 1 : 0;
    if (const erda_code drained = erda_client_drain(client); drained != ERDA_OK) code = drained;
    EXPECT_EQ(told.ended, told.begun);
    return code == ERDA_OK ? told.code : code;
  });
  erda_client_close(client);
}

TEST_F(NoMemory, CallsOfAServerEndWithAStatus) {
  client_.reset();
  server_.reset();
  ServerOptions options = Options();
  EachFails(
      "a server",
      [&] {
        auto server = Server::Open(std::move(options));
        if (!server.ok()) return server.status().code();
        if (auto status = (*server)->Start(); !status.ok()) return status.code();
        auto status = (*server)->Stop();
        EXPECT_TRUE(status.ok() || (*server)->Stop().ok() || left == 0);
        return status.code();
      },
      [&] { options = Options(); });
}

}  // namespace
}  // namespace erda
