// Many operations at once on one client.
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "e2e/fixture.h"

namespace erda {
namespace {

class Asynchronous : public EveryPool {};

TEST_P(Asynchronous, ClientTakesAtMostQueueDepthOperations) {
  const auto server = Serve();
  for (const uint32_t depth : {1, 7, 256}) {
    const auto client = Connect({.queue_depth = depth});
    uint32_t done = 0;
    for (uint32_t i = 0; i < depth; ++i) {
      const Status status = client->PutAsync("key" + std::to_string(i), "value", [&](const Status& put) {
        EXPECT_TRUE(put.ok()) << put.ToString();
        ++done;
      });
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
    EXPECT_EQ(done, 0U) << "a callback ran outside of Poll";
    const auto never = [](auto) { ADD_FAILURE() << "the callback of a call that failed"; };
    ExpectFails(client->PutAsync("more", "value", never), Code::kResourceExhausted, std::to_string(depth));
    ExpectFails(client->GetAsync("more", never), Code::kResourceExhausted, std::to_string(depth));
    ExpectFails(client->DeleteAsync("more", never), Code::kResourceExhausted, std::to_string(depth));
    size_t finished = 0;
    while (done < depth) finished += client->Poll();
    EXPECT_EQ(finished, depth);
    EXPECT_EQ(client->Poll(), 0U);
    EXPECT_EQ(client->Get("more").status().code(), Code::kNotFound);
  }
}

TEST_P(Asynchronous, SynchronousCallsFindRoomBesideAFullQueue) {
  const auto server = Serve();
  const auto client = Connect({.queue_depth = 4});
  uint32_t done = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(client->PutAsync("key" + std::to_string(i), std::to_string(i), [&](auto) { ++done; }).ok());
  }
  ASSERT_TRUE(client->Put("key", "value").ok());
  EXPECT_EQ(*client->Get("key2"), "2");
  ASSERT_TRUE(client->Drain().ok());
  EXPECT_EQ(done, 4U);
}

constexpr std::chrono::minutes kLong{1};
constexpr int kLongMs = 60'000;

TEST_P(Asynchronous, WaitReturnsWhenThatManyHaveFinished) {
  const auto server = Serve();
  for (const Polling polling : {Polling::kAdaptive, Polling::kBusy, Polling::kSleep}) {
    const auto client = Connect({.queue_depth = 16, .polling = polling});
    for (const size_t at_least : {1, 5, 16}) {
      size_t done = 0;
      for (int i = 0; i < 16; ++i) {
        ASSERT_TRUE(client
                        ->PutAsync("key" + std::to_string(i), "value",
                                   [&](const Status& put) {
                                     EXPECT_TRUE(put.ok()) << put.ToString();
                                     ++done;
                                   })
                        .ok());
      }
      const auto finished = client->Wait(kLong, at_least);
      ASSERT_TRUE(finished.ok()) << finished.status().ToString();
      EXPECT_GE(*finished, at_least);
      EXPECT_EQ(*finished, done);
      const auto rest = client->Wait(kLong, 100);
      ASSERT_TRUE(rest.ok());
      EXPECT_EQ(*finished + *rest, 16U) << "a wait ends when none is in flight";
      EXPECT_EQ(done, 16U);
    }
  }
}

TEST_P(Asynchronous, WaitWithoutOperationsReturnsAtOnce) {
  const auto server = Serve();
  const auto client = Connect();
  const auto finished = client->Wait(kLong);
  ASSERT_TRUE(finished.ok());
  EXPECT_EQ(*finished, 0U);
}

TEST_P(Asynchronous, WaitReturnsAfterItsTime) {
  const auto server = Serve();
  const auto client = Connect({.polling = Polling::kSleep});
  ASSERT_TRUE(client->Put("key", "value").ok());
  bool done = false;
  const auto begin = std::chrono::steady_clock::now();
  // Without time for an answer a Wait is a Poll.
  ASSERT_TRUE(client->PutAsync("key", "other", [&](auto) { done = true; }).ok());
  for (const auto timeout : {std::chrono::nanoseconds::min(), std::chrono::nanoseconds(0)}) {
    const auto finished = client->Wait(timeout, 100);
    ASSERT_TRUE(finished.ok());
    EXPECT_LE(*finished, 1U);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kLong);
  ASSERT_TRUE(client->Wait(std::chrono::nanoseconds::max()).ok());
  EXPECT_TRUE(done);
}

TEST_P(Asynchronous, StartsWaitForRoomIfTheOptionsSaySo) {
  const auto server = Serve();
  for (const Polling polling : {Polling::kAdaptive, Polling::kBusy, Polling::kSleep}) {
    const auto client = Connect({.queue_depth = 3, .polling = polling, .wait_for_room = true});
    int done = 0;
    for (int i = 0; i < 100; ++i) {
      const Status started = client->PutAsync("key" + std::to_string(i), "value", [&](const Status& put) {
        EXPECT_TRUE(put.ok()) << put.ToString();
        ++done;
      });
      ASSERT_TRUE(started.ok()) << started.ToString();
      EXPECT_GE(done, i + 1 - 3);
    }
    ASSERT_TRUE(client->Drain().ok());
    EXPECT_EQ(done, 100);
  }
}

TEST_P(Asynchronous, StartInACallbackFailsWithoutRoomAndDoesNotWait) {
  const auto server = Serve();
  const auto client = Connect({.queue_depth = 1, .wait_for_room = true});
  bool done = false;
  ASSERT_TRUE(
      client
          ->PutAsync("key", "value",
                     [&](auto) {
                       // This operation has ended, so one more finds room. A second one does not.
                       EXPECT_TRUE(client->GetAsync("key", [&](auto) { done = true; }).ok());
                       ExpectFails(
                           client->GetAsync("key", [](auto) { ADD_FAILURE() << "the callback of a call that failed"; }),
                           Code::kResourceExhausted, "1");
                     })
          .ok());
  ASSERT_TRUE(client->Drain().ok());
  EXPECT_TRUE(done);
}

// Runs the client as an event loop does, until `done` is true. Sleeps longer than Arm allows: the descriptor must
// become readable all the same, since the server answers.
void RunEventLoop(Client& client, const std::function<bool()>& done) {
  for (;;) {
    client.Poll();
    if (done()) return;
    const auto sleep = client.Arm();
    ASSERT_TRUE(sleep.ok()) << sleep.status().ToString();
    if (sleep->count() == 0) continue;
    pollfd event{client.descriptor(), POLLIN, 0};
    ASSERT_EQ(::poll(&event, 1, kLongMs), 1) << "a wake-up was lost";
  }
}

TEST_P(Asynchronous, DescriptorWakesAnEventLoop) {
  const auto server = Serve();
  const auto client = Connect();
  const int descriptor = client->descriptor();
  EXPECT_GE(descriptor, 0);
  for (int i = 0; i < 300; ++i) {
    bool done = false;
    const Status started = client->PutAsync("key", std::to_string(i), [&](const Status& put) {
      EXPECT_TRUE(put.ok()) << put.ToString();
      done = true;
    });
    ASSERT_TRUE(started.ok());
    RunEventLoop(*client, [&] { return done; });
    EXPECT_EQ(*client->Get("key"), std::to_string(i));
  }
  EXPECT_EQ(client->descriptor(), descriptor);
}

// Operations that start beside others may wait for the next Poll, which sends them together.
TEST_P(Asynchronous, EventLoopSleepsOnlyAfterStartedOperationsAreSent) {
  const auto server = Serve();
  const auto client = Connect({.cache_entries = 0});
  for (int round = 0; round < 100; ++round) {
    int done = 0;
    for (int i = 0; i < 4; ++i) {
      const Status started = client->PutAsync("key" + std::to_string(i), "value", [&, i](const Status&) {
        ++done;
        EXPECT_TRUE(client->GetAsync("key" + std::to_string(i), [&](auto) { ++done; }).ok());
      });
      ASSERT_TRUE(started.ok());
      EXPECT_TRUE(client->Arm().ok());
    }
    RunEventLoop(*client, [&] { return done == 8; });
  }
}

TEST_P(Asynchronous, IdleClientLetsItsEventLoopSleep) {
  const auto server = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Put("key", "value").ok());
  client->Poll();
  const auto sleep = client->Arm();
  ASSERT_TRUE(sleep.ok());
  EXPECT_GT(sleep->count(), 0);
}

TEST_P(Asynchronous, OperationsOnOneKeyTakeEffectInTheirOrder) {
  const auto server = Serve();
  for (const PutPath path : {PutPath::kInline, PutPath::kReserve, PutPath::kDelegate}) {
    for (const Ack ack : {Ack::kPlaced, Ack::kPersisted}) {
      const auto client = Connect({.ack = ack, .put_path = path});
      std::vector<std::string> results;
      const auto got = [&](const Result<std::string_view>& value) {
        results.push_back(value.ok() ? std::string(*value) : std::string(CodeName(value.status().code())));
      };
      const auto done = [&](const Status& status) { results.emplace_back(CodeName(status.code())); };
      ASSERT_TRUE(client->GetAsync("key", got).ok());
      ASSERT_TRUE(client->PutAsync("key", "one", done).ok());
      ASSERT_TRUE(client->PutAsync("key", "two", done).ok());
      ASSERT_TRUE(client->GetAsync("key", got).ok());
      ASSERT_TRUE(client->DeleteAsync("key", done).ok());
      ASSERT_TRUE(client->DeleteAsync("key", done).ok());
      ASSERT_TRUE(client->GetAsync("key", got).ok());
      ASSERT_TRUE(client->PutAsync("key", "three", done).ok());
      ASSERT_TRUE(client->GetAsync("key", got).ok());
      ASSERT_TRUE(client->DeleteAsync("key", done).ok());
      ASSERT_TRUE(client->Drain().ok());
      const std::vector<std::string> expected = {"not found", "ok",        "ok", "two",   "ok",
                                                 "not found", "not found", "ok", "three", "ok"};
      EXPECT_EQ(results, expected);
    }
  }
}

TEST_P(Asynchronous, CallbacksMayStartOperations) {
  const auto server = Serve();
  const auto client = Connect({.queue_depth = 3});
  uint64_t left = 500;
  uint64_t got = 0;
  std::function<void()> next = [&] {
    if (left == 0) return;
    const uint64_t number = left--;
    const std::string key = "key" + std::to_string(number % 5);
    const Status started = client->PutAsync(key, std::to_string(number), [&, key](const Status& put) {
      ASSERT_TRUE(put.ok()) << put.ToString();
      const Status get = client->GetAsync(key, [&](const Result<std::string_view>& value) {
        ASSERT_TRUE(value.ok()) << value.status().ToString();
        ++got;
        next();
      });
      ASSERT_TRUE(get.ok()) << get.ToString();
    });
    ASSERT_TRUE(started.ok()) << started.ToString();
  };
  for (int i = 0; i < 3; ++i) next();
  while (got < 500 && !HasFailure()) client->Poll();
  ASSERT_TRUE(client->Drain().ok());
  EXPECT_EQ(got, 500U);
}

TEST_P(Asynchronous, CallerMayChangeKeyAndValueAfterTheCall) {
  const auto server = Serve();
  const auto client = Connect({.put_path = PutPath::kReserve});
  for (const size_t size : {10, 100'000}) {
    for (int i = 0; i < 20; ++i) {
      std::string key = "key" + std::to_string(i);
      std::string value = Bytes(size + static_cast<size_t>(i), size);
      ASSERT_TRUE(client->PutAsync(key, value, [](const Status& put) { EXPECT_TRUE(put.ok()); }).ok());
      key.assign(key.size(), '?');
      value.assign(value.size(), '?');
    }
    ASSERT_TRUE(client->Drain().ok());
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(*client->Get("key" + std::to_string(i)) == Bytes(size + static_cast<size_t>(i), size), true);
    }
  }
}

TEST_P(Asynchronous, DestroyedClientAbandonsItsOperations) {
  const auto server = Serve();
  const auto other = Connect();
  for (int round = 0; round < 20; ++round) {
    const auto client = Connect({.put_path = round % 2 == 0 ? PutPath::kReserve : PutPath::kInline});
    for (int i = 0; i < 30; ++i) {
      ASSERT_TRUE(client->PutAsync("key" + std::to_string(i), "value", [](auto) { FAIL() << "abandoned"; }).ok());
    }
  }
  for (int i = 0; i < 30; ++i) {
    const auto value = other->Get("key" + std::to_string(i));
    EXPECT_TRUE(value.ok() ? *value == "value" : value.status().code() == Code::kNotFound);
  }
  EXPECT_TRUE(WaitUntil([&] { return CountersOf(*other).at("clients") == 1; }));
  EXPECT_EQ(SettledCountersOf(*other).at("in_flight"), 0U);
  EXPECT_EQ(CountersOf(*other).at("violations"), 0U);
}

TEST_P(Asynchronous, MultiGetAnswersEachKeyInItsPlace) {
  ServerOptions options = Options();
  options.shards = 3;
  const auto server = Serve(options);
  const auto client = Connect({.queue_depth = 8});
  std::vector<std::string> keys;
  for (int i = 0; i < 100; ++i) keys.push_back("key" + std::to_string(i));
  for (size_t i = 0; i < keys.size(); i += 2) ASSERT_TRUE(client->Put(keys[i], Bytes(i, i * 300)).ok());
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  const auto results = client->MultiGet(views);
  ASSERT_EQ(results.size(), keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (i % 2 == 0) {
      ASSERT_TRUE(results[i].ok()) << results[i].status().ToString();
      EXPECT_EQ(*results[i] == Bytes(i, i * 300), true) << i;
    } else {
      EXPECT_EQ(results[i].status().code(), Code::kNotFound) << i;
    }
  }
  EXPECT_TRUE(client->MultiGet({}).empty());
  const std::string_view same[] = {"key0", "key2", "key0", "key1", "key0"};
  const auto repeated = client->MultiGet(same);
  EXPECT_TRUE(repeated[0].ok() && repeated[1].ok() && repeated[2].ok() && repeated[4].ok());
  EXPECT_FALSE(repeated[3].ok());
}

TEST_P(Asynchronous, RandomOperationsGiveTheResultsOfAMap) {
  ServerOptions options = Options();
  options.shards = 2;
  const auto server = Serve(options);
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const auto client = Connect({.ack = random.Chance(0.5) ? Ack::kPlaced : Ack::kPersisted,
                                 .put_path = seed % 2 == 0 ? PutPath::kAuto : PutPath::kReserve,
                                 .queue_depth = static_cast<uint32_t>(random.Between(1, 64))});
    std::map<std::string, std::string> model;
    uint64_t wrong = 0;
    for (int i = 0; i < 1500; ++i) {
      const std::string key = std::to_string(seed) + "/" + std::to_string(random.Uniform(30));
      const auto found = model.find(key);
      const bool there = found != model.end();
      const uint64_t dice = random.Uniform(10);
      const auto start = [&] {
        if (dice < 5) {
          return client->GetAsync(key, [&wrong, there, want = there ? found->second : ""](auto value) {
            if (there ? !value.ok() || *value != want : value.status().code() != Code::kNotFound) ++wrong;
          });
        }
        if (dice < 8) {
          return client->PutAsync(key, Bytes(static_cast<uint64_t>(i), static_cast<size_t>(i) * 13 % 30'000),
                                  [&wrong](const Status& put) { wrong += put.ok() ? 0 : 1; });
        }
        return client->DeleteAsync(key, [&wrong, there](const Status& status) {
          if (status.code() != (there ? Code::kOk : Code::kNotFound)) ++wrong;
        });
      };
      Status started = start();
      while (started.code() == Code::kResourceExhausted) {
        client->Poll();
        started = start();
      }
      ASSERT_TRUE(started.ok()) << started.ToString();
      if (dice >= 8) {
        model.erase(key);
      } else if (dice >= 5) {
        model[key] = Bytes(static_cast<uint64_t>(i), static_cast<size_t>(i) * 13 % 30'000);
      }
    }
    ASSERT_TRUE(client->Drain().ok());
    EXPECT_EQ(wrong, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(E2e, Asynchronous, kEveryPool, PoolName);

}  // namespace
}  // namespace erda
