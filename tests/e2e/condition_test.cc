// Versions, conditions and increments as users have them.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "e2e/fixture.h"
#include "e2e/raw_peer.h"

namespace erda {
namespace {

PutOptions If(uint64_t version) { return {.if_version = version}; }
DeleteOptions IfIs(uint64_t version) { return {.if_version = version}; }

int64_t NumberIn(const Result<std::string>& value) {
  return value.ok() && value->size() == sizeof(int64_t) ? LoadAs<int64_t>(AsBytes(*value)) : INT64_MIN;
}

class Conditions : public EveryPool {};
INSTANTIATE_TEST_SUITE_P(E2e, Conditions, kEveryPool, PoolName);

TEST_P(Conditions, EachPutHasAVersionThatGetsTell) {
  const auto server = Serve();
  for (const PutPath path : {PutPath::kAuto, PutPath::kInline, PutPath::kReserve, PutPath::kDelegate}) {
    SCOPED_TRACE("path " + std::to_string(static_cast<int>(path)));
    const auto writer = Connect({.put_path = path});
    const auto reader = Connect({.cache_entries = 0});
    uint64_t last = 0;
    for (const size_t size : {size_t{10}, size_t{5000}, size_t{10}, size_t{100000}, size_t{0}}) {
      if (path == PutPath::kInline && size > 16000) continue;
      const std::string value = Bytes(size, size);
      const auto version = writer->Put("key", value, PutOptions{});
      ASSERT_TRUE(version.ok()) << version.status().ToString();
      EXPECT_GT(*version, last);
      last = *version;
      for (Client* client : {writer.get(), reader.get(), writer.get()}) {
        const auto got = client->GetVersioned("key");
        ASSERT_TRUE(got.ok()) << got.status().ToString();
        EXPECT_EQ(got->value, value);
        EXPECT_EQ(got->version, last);
      }
      const std::string_view keys[] = {"key", "none"};
      const auto both = reader->MultiGetVersioned(keys);
      ASSERT_EQ(both.size(), 2U);
      EXPECT_EQ(both[0]->value, value);
      EXPECT_EQ(both[0]->version, last);
      EXPECT_EQ(both[1].status().code(), Code::kNotFound);
    }
    EXPECT_EQ(reader->GetVersioned("none").status().code(), Code::kNotFound);
    ASSERT_TRUE(writer->Delete("key").ok());
  }
}

TEST_P(Conditions, APutTakesEffectOnlyIfItsConditionHolds) {
  const auto server = Serve();
  for (const PutPath path : {PutPath::kAuto, PutPath::kInline, PutPath::kReserve, PutPath::kDelegate}) {
    SCOPED_TRACE("path " + std::to_string(static_cast<int>(path)));
    const auto client = Connect({.put_path = path});
    const auto other = Connect();
    const std::string large = Bytes(7, path == PutPath::kInline ? 9000 : 70000);
    const auto first = client->Put("key", "v1", If(kAbsent));
    ASSERT_TRUE(first.ok()) << first.status().ToString();
    ExpectFails(client->Put("key", "v2", If(kAbsent)).status(), Code::kConflict,
                "the key has version " + std::to_string(*first));
    ExpectFails(client->Put("key", large, If(*first + 1)).status(), Code::kConflict, "version");
    EXPECT_EQ(*other->Get("key"), "v1");
    const auto second = client->Put("key", large, If(*first));
    ASSERT_TRUE(second.ok()) << second.status().ToString();
    ExpectFails(other->Put("key", "v3", If(*first)).status(), Code::kConflict, std::to_string(*second));
    EXPECT_EQ(*other->Get("key"), large);
    ExpectFails(client->Delete("key", IfIs(*first)), Code::kConflict, std::to_string(*second));
    EXPECT_TRUE(client->Delete("key", IfIs(*second)).ok());
    EXPECT_EQ(other->Get("key").status().code(), Code::kNotFound);
    ExpectFails(client->Delete("key", IfIs(*second)), Code::kConflict, "absent");
    ExpectFails(client->Put("key", "v4", If(*second)).status(), Code::kConflict, "absent");
    const auto third = client->Put("key", "v5", If(kAbsent));
    ASSERT_TRUE(third.ok());
    EXPECT_GT(*third, *second);
    ASSERT_TRUE(client->Delete("key").ok());
  }
}

TEST_P(Conditions, ConflictCountsAsNoRefusalAndNoViolation) {
  const auto server = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Put("key", "value").ok());
  for (int i = 0; i < 100; ++i) ASSERT_EQ(client->Put("key", "x", If(kAbsent)).status().code(), Code::kConflict);
  const Counters counters = CountersOf(*client);
  EXPECT_EQ(counters.at("refused"), 0U);
  EXPECT_EQ(counters.at("violations"), 0U);
  EXPECT_EQ(client->stats().reconnects, 0U);
}

TEST_P(Conditions, AsynchronousCallsTakeConditions) {
  const auto server = Serve();
  const auto client = Connect();
  std::vector<std::string> happened;
  uint64_t version = 0;
  ASSERT_TRUE(client
                  ->PutAsync("key", "v1", If(kAbsent),
                             [&](const Result<uint64_t>& put) {
                               version = *put;
                               happened.emplace_back("put");
                             })
                  .ok());
  ASSERT_TRUE(client
                  ->PutAsync("key", "v2", If(kAbsent),
                             [&](const Result<uint64_t>& put) {
                               EXPECT_EQ(put.status().code(), Code::kConflict);
                               happened.emplace_back("conflict");
                             })
                  .ok());
  ASSERT_TRUE(client
                  ->GetVersionedAsync("key",
                                      [&](const Result<VersionedView>& got) {
                                        EXPECT_EQ(got->value, "v1");
                                        EXPECT_EQ(got->version, version);
                                        happened.emplace_back("get");
                                      })
                  .ok());
  ASSERT_TRUE(client
                  ->DeleteAsync("key", IfIs(7),
                                [&](const Status& status) {
                                  EXPECT_EQ(status.code(), Code::kConflict);
                                  happened.emplace_back("kept");
                                })
                  .ok());
  ASSERT_TRUE(client->IncrementAsync("sum", 3, [&](const Result<int64_t>& sum) { EXPECT_EQ(*sum, 3); }).ok());
  ASSERT_TRUE(client->Drain().ok());
  EXPECT_EQ(happened, (std::vector<std::string>{"put", "conflict", "get", "kept"}));
  EXPECT_EQ(client->Put("", "v", If(kAbsent)).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(client->Increment(std::string(1025, 'k')).status().code(), Code::kInvalidArgument);
}

TEST_P(Conditions, IncrementNeedsANumber) {
  const auto server = Serve();
  const auto client = Connect();
  EXPECT_EQ(*client->Increment("n"), 1);
  EXPECT_EQ(*client->Increment("n", 41), 42);
  EXPECT_EQ(*client->Increment("n", -50), -8);
  EXPECT_EQ(NumberIn(client->Get("n")), -8);
  ASSERT_TRUE(client->Put("text", "12345").ok());
  ExpectFails(client->Increment("text").status(), Code::kInvalidArgument, "8 bytes");
  EXPECT_EQ(*client->Get("text"), "12345");
  ASSERT_TRUE(client->Increment("large", INT64_MAX).ok());
  ExpectFails(client->Increment("large").status(), Code::kInvalidArgument, "64 bits");
  EXPECT_EQ(NumberIn(client->Get("large")), INT64_MAX);
}

class VersionsOfALastingPool : public EveryPool {};
INSTANTIATE_TEST_SUITE_P(E2e, VersionsOfALastingPool,
                         testing::Values(PoolKind::kFile, PoolKind::kPowerSafe, PoolKind::kJournaled,
                                         PoolKind::kFronted),
                         PoolName);

TEST_P(VersionsOfALastingPool, NeverRepeat) {
  std::set<uint64_t> seen;
  for (int round = 0; round < 3; ++round) {
    const auto server = Serve();
    const auto client = Connect();
    if (round > 0) {
      const auto got = client->GetVersioned("key");
      ASSERT_TRUE(got.ok()) << got.status().ToString();
      EXPECT_EQ(got->value, "round " + std::to_string(round - 1));
      EXPECT_EQ(got->version, *seen.rbegin());
    }
    for (int i = 0; i < 10; ++i) {
      const auto version = client->Put("key", "round " + std::to_string(round), PutOptions{});
      ASSERT_TRUE(version.ok());
      EXPECT_TRUE(seen.empty() || *version > *seen.rbegin());
      seen.insert(*version);
    }
  }
  EXPECT_EQ(seen.size(), 30U);
}

// --- Waiting for a value in flight

TEST_P(Conditions, ConditionWaitsForAValueInFlight) {
  const auto server = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Put("key", "v1").ok());
  const uint64_t before = client->GetVersioned("key")->version;
  RawPeer slow(Address());
  slow.Post(RawPeer::ReserveRequest("key", 5, Ack::kPersisted), "key");
  const auto reserved = slow.Answer();
  ASSERT_TRUE(reserved && reserved->code == 0);

  std::atomic<bool> done = false;
  Result<uint64_t> put = Status(Code::kInternal);
  std::jthread waiter([&] {
    put = Connect()->Put("key", "v3", If(before));
    done = true;
  });
  // The shard serves other requests meanwhile, and gets find the older version.
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(client->Put("other", "value").ok());
    ASSERT_EQ(*client->Get("key"), "v1");
  }
  EXPECT_FALSE(done);
  slow.Write(format::kPoolWriteRegion, slow.BodyOffset(*reserved), slow.Body(*reserved, "slow!"));
  // Without server-flush, no client sends a commit.
  if (slow.hello().flush_method == static_cast<uint8_t>(format::FlushMethod::kServerFlush)) {
    slow.Post(RawPeer::CommitRequest(*reserved), "");
    const auto committed = slow.Answer();
    ASSERT_TRUE(committed && committed->code == 0);
  }
  waiter.join();
  ExpectFails(put.status(), Code::kConflict, std::to_string(reserved->header.version));
  EXPECT_EQ(*client->Get("key"), "slow!");
}

TEST_P(Conditions, WaitingConditionGoesOnWhenTheWriterLeaves) {
  const auto server = Serve();
  const auto client = Connect();
  RawPeer slow(Address());
  slow.Post(RawPeer::ReserveRequest("key", 5, Ack::kPersisted), "key");
  ASSERT_TRUE(slow.Answer().has_value());
  Result<uint64_t> put = Status(Code::kInternal);
  std::jthread waiter([&] { put = Connect()->Put("key", "mine", If(kAbsent)); });
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(client->Put("other", "value").ok());
  slow.Leave();
  waiter.join();
  EXPECT_TRUE(put.ok()) << put.status().ToString();
  EXPECT_EQ(*client->Get("key"), "mine");
}

// A client that reserves and does nothing more delays others for some seconds, but not for ever.
TEST_P(Conditions, ShardEndsAnOverdueWriter) {
  const auto server = Serve();
  RawPeer stuck(Address());
  stuck.Post(RawPeer::ReserveRequest("key", 5, Ack::kPersisted), "key");
  ASSERT_TRUE(stuck.Answer().has_value());
  const auto client = Connect({.timeout = std::chrono::seconds(20)});
  const auto put = client->Put("key", "mine", If(kAbsent));
  EXPECT_TRUE(put.ok()) << put.status().ToString();
  EXPECT_EQ(*client->Increment("n"), 1);
  EXPECT_TRUE(stuck.IsClosed());
  EXPECT_EQ(CountersOf(*client).at("overdue"), 1U);
  EXPECT_EQ(CountersOf(*client).at("violations"), 0U);
}

// A busy shard looks at the time more rarely, and still ends a stuck writer.
TEST_F(E2eTest, ABusyShardEndsAWriterThatIsOverdue) {
  const auto server = Serve(PoolKind::kDram);
  RawPeer stuck(Address());
  stuck.Post(RawPeer::ReserveRequest("key", 5, Ack::kPersisted), "key");
  ASSERT_TRUE(stuck.Answer().has_value());
  std::atomic<bool> ended = false;
  std::thread others([&] {
    const auto client = Connect();
    while (!ended) EXPECT_TRUE(client->Put("other", "v").ok());
  });
  const auto client = Connect({.timeout = std::chrono::minutes(1)});
  const auto put = client->Put("key", "mine", If(kAbsent));
  ended = true;
  others.join();
  EXPECT_TRUE(put.ok()) << put.status().ToString();
  EXPECT_EQ(CountersOf(*client).at("overdue"), 1U);
}

// --- Hostile

// The shard judges the request that stands in the slot when it goes on, not the one that came. It may copy the slot
// while this test writes there, and find a part of each. So the first rewritten request may be answered under either
// number. Each of the others changes one field.
TEST_P(Conditions, RewrittenWaitingRequestIsCheckedAgain) {
  const auto server = Serve();
  const auto client = Connect();
  format::Request good = RawPeer::ReserveRequest("key", 5, Ack::kPersisted);
  good.op = static_cast<uint8_t>(format::RequestOp::kDelete);
  good.condition = 1;
  format::Request other_key = good;
  other_key.condition = 0;
  other_key.id = 77;
  format::Request none = good;
  none.key_size = UINT16_MAX;
  format::Request commit = good;
  commit.op = static_cast<uint8_t>(format::RequestOp::kCommit);
  uint64_t violations = 0;
  for (const format::Request& rewritten : {other_key, none, commit}) {
    RawPeer writer(Address());
    writer.Post(RawPeer::ReserveRequest("key", 5, Ack::kPersisted), "key");
    ASSERT_TRUE(writer.Answer().has_value());
    RawPeer peer(Address());
    peer.Post(good, "key");
    // The shard serves the second of these puts after it has seen the waiting request.
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(client->Put("other", "v").ok());
    peer.Write(format::kRequestRegion, 0, std::string(AsString(BytesOf(rewritten))) + "oth");
    writer.Leave();
    if (rewritten.id == other_key.id) {
      const auto answer = peer.Answer();
      ASSERT_TRUE(answer.has_value());
      EXPECT_TRUE(answer->id == other_key.id || answer->id == good.id) << answer->id;
      EXPECT_EQ(answer->code, static_cast<uint8_t>(Code::kNotFound));
    } else {
      EXPECT_TRUE(peer.IsClosed());
      ++violations;
    }
    EXPECT_EQ(CountersOf(*client).at("violations"), violations);
  }
  EXPECT_EQ(*client->Get("other"), "v");
}

TEST_P(Conditions, InvalidConditionalRequestsEndTheChannel) {
  const auto server = Serve();
  const auto client = Connect();
  using format::RequestOp;
  format::Request good = RawPeer::ReserveRequest("key", 5, Ack::kPersisted);
  good.op = static_cast<uint8_t>(RequestOp::kDelete);
  uint64_t violations = 0;
  const auto expect_violation = [&](const format::Request& request, std::string_view rest) {
    RawPeer peer(Address());
    peer.Post(request, rest);
    EXPECT_TRUE(peer.IsClosed());
    EXPECT_EQ(CountersOf(*client).at("violations"), ++violations);
  };
  format::Request request = good;
  request.condition = 2;
  expect_violation(request, "key");
  request.condition = 1;
  for (const RequestOp op : {RequestOp::kCommit, RequestOp::kReport, RequestOp::kClean, RequestOp::kDelegate,
                             RequestOp::kPutDelegated, RequestOp::kGiveBack, RequestOp::kIncrement}) {
    request.op = static_cast<uint8_t>(op);
    request.value_size = 8;
    expect_violation(request, "key....12345678");
  }
  request.condition = 0;
  request.op = static_cast<uint8_t>(RequestOp::kIncrement);
  for (const uint32_t size : {0U, 7U, 9U, UINT32_MAX}) {
    request.value_size = size;
    expect_violation(request, "key....12345678");
  }
  // Another request in a slot whose request still waits.
  RawPeer writer(Address());
  writer.Post(RawPeer::ReserveRequest("key", 5, Ack::kPersisted), "key");
  ASSERT_TRUE(writer.Answer().has_value());
  RawPeer peer(Address());
  request = good;
  request.condition = 1;
  peer.Post(request, "key");
  peer.Post(request, "key");
  EXPECT_TRUE(peer.IsClosed());
  EXPECT_EQ(CountersOf(*client).at("violations"), ++violations);
}

TEST_P(Conditions, ConflictCountsAsNoFailure) {
  const auto server = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Put("key", "v", If(kAbsent)).ok());
  EXPECT_EQ(client->Put("key", "w", If(kAbsent)).status().code(), Code::kConflict);
  EXPECT_EQ(client->Delete("key", IfIs(1 << 20)).code(), Code::kConflict);
  EXPECT_EQ(client->stats().failures, 0U);
  EXPECT_EQ(CountersOf(*client).at("refused"), 0U);
  EXPECT_EQ(client->Increment("key").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(client->stats().failures, 1U);
  EXPECT_EQ(CountersOf(*client).at("refused"), 1U);
}

// --- Many

// Each client adds to the value that it read. No addition is lost, and none happens twice.
TEST_P(Conditions, ManyClientsSwap) {
  const auto server = Serve();
  constexpr int kClients = 8;
  constexpr int kSteps = 60;
  std::atomic<int> failed = 0;
  AtOnce(kClients, [&](uint32_t i) {
    const auto client =
        Connect({.put_path = i % 2 == 0 ? PutPath::kInline : PutPath::kReserve, .timeout = std::chrono::minutes(1)});
    for (int step = 0; step < kSteps;) {
      const auto got = client->GetVersioned("sum");
      if (!got.ok() && got.status().code() != Code::kNotFound) ++failed;
      const uint64_t version = got.ok() ? got->version : kAbsent;
      const int sum = got.ok() ? std::stoi(got->value) : 0;
      const auto put = client->Put("sum", std::to_string(sum + 1), If(version));
      if (put.ok()) ++step;
      if (!put.ok() && put.status().code() != Code::kConflict) {
        ++failed;
        return;
      }
    }
  });
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(*Connect()->Get("sum"), std::to_string(kClients * kSteps));
}

TEST_P(Conditions, SixteenClientsCount) {
  const auto server = Serve();
  constexpr int kClients = 16;
  constexpr int kEach = 500;
  std::atomic<int> failed = 0;
  AtOnce(kClients, [&](uint32_t /*client*/) {
    const auto client = Connect({.timeout = std::chrono::minutes(1)});
    int64_t last = 0;
    for (int n = 0; n < kEach; ++n) {
      const auto sum = client->Increment("sum");
      if (!sum.ok() || *sum <= last) ++failed;
      if (sum.ok()) last = *sum;
    }
  });
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(NumberIn(Connect()->Get("sum")), kClients * kEach);
}

// Clients are killed in the middle of a call. Each acknowledged increment has happened once. The call that was cut off
// may have happened.
class KilledCounters : public E2eTest {};

TEST_F(KilledCounters, AcknowledgedIncrementsAreAppliedOnce) {
  const auto server = Serve(PoolKind::kPowerSafe);  // in a separate process, so that this one may fork
  struct Tally {
    std::atomic<int64_t> begun = 0;
    std::atomic<int64_t> done = 0;
  };
  constexpr size_t kClients = 16;
  void* const shared =
      mmap(nullptr, kClients * sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* const tallies = new (shared) Tally[kClients];
  const std::string address = Address();
  std::vector<pid_t> children;
  for (size_t i = 0; i < kClients; ++i) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      const auto client = Client::Connect(address);
      while (client.ok() && tallies[i].begun < 100000) {
        ++tallies[i].begun;
        if (!(*client)->Increment("sum").ok()) _exit(1);
        ++tallies[i].done;
      }
      _exit(2);
    }
    children.push_back(pid);
  }
  Random random(4711);
  for (size_t i = 0; i < kClients; ++i) {
    const auto target = static_cast<int64_t>(random.Between(20, 200));
    EXPECT_TRUE(WaitUntil([&] { return tallies[i].done >= target; }));
    kill(children[i], SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(children[i], &status, 0), children[i]);
    EXPECT_TRUE(WIFSIGNALED(status));
  }
  int64_t begun = 0;
  int64_t done = 0;
  for (size_t i = 0; i < kClients; ++i) {
    begun += tallies[i].begun;
    done += tallies[i].done;
  }
  const auto client = Connect();
  EXPECT_TRUE(WaitUntil([&] { return CountersOf(*client).at("clients") == 1; }));
  const int64_t sum = NumberIn(client->Get("sum"));
  EXPECT_GE(sum, done);
  EXPECT_LE(sum, begun);
  EXPECT_LE(begun - done, static_cast<int64_t>(kClients));
  munmap(shared, kClients * sizeof(Tally));
}

}  // namespace
}  // namespace erda
