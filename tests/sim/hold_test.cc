// A shard on a pool with a journal: what it answers, and what readers see, before the disk holds it and after.
#include <algorithm>

#include "server/crash_pool.h"
#include "sim/ports.h"

namespace erda::sim {
namespace {

using client::Engine;

class HoldTest : public PortsTest {
 protected:
  static constexpr uint32_t kSlots = 4;

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ServeWithJournal());
    disk_->HoldAll();
  }

  std::unique_ptr<Engine> Inline(const std::string& name) { return MakeClient(name, 0, PutPath::kInline); }
  std::unique_ptr<Engine> Placing(const std::string& name, PutPath path = PutPath::kInline) {
    client::EngineOptions options;
    options.put_path = path;
    options.ack = Ack::kPlaced;
    options.queue_depth = kSlots;
    auto engine = Engine::Create(network_.CreateFabric(name), "sim:port0", options, network_);
    EXPECT_TRUE(engine.ok());
    return *std::move(engine);
  }
  // Returns true if the operations of the client end although the disk gets nothing.
  bool EndsUnheld(Engine& client) {
    for (int step = 0; step < 500; ++step) {
      if (client.in_flight() == 0) return true;
      Admit();
      shard_->Poll();
      client.Poll();
      if (!network_.Step()) network_.RunUntil(network_.Now() + Nanoseconds(1000));
    }
    return false;
  }
  // The disk gets all that it waits for, until the operations of the clients end.
  bool EndsHeld(const std::vector<Engine*>& clients) {
    return RunUntil(clients, [&] {
      disk_->HoldAll();
      return std::ranges::all_of(clients, [](const Engine* client) { return client->in_flight() == 0; });
    });
  }
  void StartPut(Engine& client, const std::string& key, const std::string& value) {
    ASSERT_TRUE(client.Put(key, value, [this](const Status& status) { codes_.push_back(status.code()); }).ok());
  }
  void StartDelete(Engine& client, const std::string& key) {
    ASSERT_TRUE(client.Delete(key, [this](const Status& status) { codes_.push_back(status.code()); }).ok());
  }
  void PutHeld(Engine& client, const std::string& key, const std::string& value) {
    StartPut(client, key, value);
    ASSERT_TRUE(EndsHeld({&client}));
    ASSERT_EQ(codes_.back(), Code::kOk);
    codes_.clear();
  }
  // Damages the header of the only object whose value has the byte many times.
  void DamageOnly(char byte) {
    const auto pool = pool_->pool().bytes();
    const std::string_view bytes = AsString(pool);
    const size_t value = bytes.find(std::string(100, byte));
    ASSERT_NE(value, std::string_view::npos);
    const size_t header = value - format::ValueOffset(std::string_view("key").size());
    const size_t at = header + offsetof(format::ObjectHeader, version);
    disk_->Damage(at, BytesOf(LoadAs<uint64_t>(pool.subspan(at)) ^ 1));
  }
  using Codes = std::vector<Code>;

  Codes codes_;  // The outcomes, in the order in which they came.
};

TEST_F(HoldTest, PutIsAnsweredAndSeenWhenItIsHeld) {
  const auto writer = Inline("writer");
  const auto reader = Inline("reader");
  PutHeld(*writer, "key", "old");
  StartPut(*writer, "key", "new");
  EXPECT_FALSE(EndsUnheld(*writer));
  EXPECT_EQ(Get(*reader, "key"), "old");
  EXPECT_TRUE(EndsHeld({writer.get()}));
  EXPECT_EQ(codes_, Codes{Code::kOk});
  EXPECT_EQ(Get(*reader, "key"), "new");
}

TEST_F(HoldTest, PlacedPutWaitsForNothing) {
  const auto writer = Placing("writer");
  StartPut(*writer, "key", "value");
  EXPECT_TRUE(EndsUnheld(*writer));
  EXPECT_EQ(codes_, Codes{Code::kOk});
  EXPECT_EQ(Get(*writer, "key"), "value");
}

// Regression: a get went past it to the version before it, which was damaged.
TEST_F(HoldTest, PlacedPutIsFoundThoughNewerOnesWaitAndTheOneBeforeIsDamaged) {
  const auto placing = Placing("placing");
  const auto writer = Inline("writer");
  const auto other = Inline("other");
  const auto reader = Inline("reader");
  PutHeld(*writer, "key", std::string(100, 'x'));
  DamageOnly('x');
  StartPut(*placing, "key", "placed");
  ASSERT_TRUE(EndsUnheld(*placing));
  StartPut(*writer, "key", "newer");
  EXPECT_FALSE(EndsUnheld(*writer));
  StartPut(*other, "key", "newest");
  EXPECT_FALSE(EndsUnheld(*other));
  EXPECT_EQ(Get(*reader, "key"), "placed");
}

// Regression: it waited until something else was held.
TEST_F(HoldTest, AnswerThatNeedsNothingNewComesAtOnce) {
  const auto client = Inline("client");
  PutHeld(*client, "key", "value");
  disk_->HoldAll();
  for (int poll = 0; poll < 10; ++poll) shard_->Poll();
  disk_->HoldAll();  // The shard has stored something to settle the version.
  StartDelete(*client, "absent");
  EXPECT_TRUE(EndsUnheld(*client));
  EXPECT_EQ(codes_, Codes{Code::kNotFound});
}

TEST_F(HoldTest, DeletedValueIsSeenUntilTheDeleteIsHeld) {
  const auto client = Inline("client");
  const auto reader = Inline("reader");
  PutHeld(*client, "key", "value");
  StartDelete(*client, "key");
  EXPECT_FALSE(EndsUnheld(*client));
  EXPECT_EQ(Get(*reader, "key"), "value");
  EXPECT_TRUE(EndsHeld({client.get()}));
  EXPECT_EQ(codes_, Codes{Code::kOk});
  EXPECT_EQ(Get(*reader, "key"), "not found");
}

TEST_F(HoldTest, PutWaitsForADeleteOfItsKey) {
  const auto deleter = Inline("deleter");
  const auto writer = Placing("writer");
  PutHeld(*deleter, "key", "value");
  StartDelete(*deleter, "key");
  EXPECT_FALSE(EndsUnheld(*deleter));
  StartPut(*writer, "key", "after");
  EXPECT_FALSE(EndsUnheld(*writer)) << "otherwise it would wait for nothing";
  EXPECT_TRUE(EndsHeld({deleter.get(), writer.get()}));
  EXPECT_EQ(codes_, Codes({Code::kOk, Code::kOk}));
  EXPECT_EQ(Get(*deleter, "key"), "after");
}

// Both keys are of one head, which has one place for a tombstone.
TEST_F(HoldTest, DeletesOfOneHeadComeOneAfterTheOther) {
  const auto one = Inline("one");
  const auto other = Inline("other");
  for (int key = 0; key < 20; ++key) PutHeld(*one, "key" + std::to_string(key), "value");
  for (int key = 0; key < 20; ++key) StartDelete(key % 2 == 0 ? *one : *other, "key" + std::to_string(key));
  EXPECT_TRUE(EndsHeld({one.get(), other.get()}));
  EXPECT_EQ(codes_, Codes(20, Code::kOk));
  for (int key = 0; key < 20; ++key) EXPECT_EQ(Get(*one, "key" + std::to_string(key)), "not found");
}

TEST_F(HoldTest, ConditionWaitsForAVersionThatIsNotHeld) {
  const auto writer = Placing("writer");
  const auto conditional = Inline("conditional");
  StartPut(*writer, "key", "value");
  ASSERT_TRUE(EndsUnheld(*writer));
  PutOptions absent;
  absent.if_version = kAbsent;
  const auto done = [this](const Result<uint64_t>& version) { codes_.push_back(version.status().code()); };
  ASSERT_TRUE(conditional->Put("key", "mine", absent, done).ok());
  EXPECT_FALSE(EndsUnheld(*conditional));
  EXPECT_TRUE(EndsHeld({conditional.get()}));
  EXPECT_EQ(codes_, Codes({Code::kOk, Code::kConflict}));
}

// --- The order of requests for one key

// A put that was published before them would keep the delete, the condition and the increment waiting once more.
class HoldOrderTest : public HoldTest, public testing::WithParamInterface<PutPath> {};

INSTANTIATE_TEST_SUITE_P(Paths, HoldOrderTest, testing::Values(PutPath::kInline, PutPath::kReserve, PutPath::kDelegate),
                         [](const testing::TestParamInfo<PutPath>& tested) {
                           return tested.param == PutPath::kInline    ? "Inline"
                                  : tested.param == PutPath::kReserve ? "Reserved"
                                                                      : "Delegated";
                         });

TEST_P(HoldOrderTest, PutComesAfterARequestOfItsKeyThatWaits) {
  const auto first = Inline("first");
  const auto waiter = Inline("waiter");
  const auto writer = Placing("writer", GetParam());
  PutHeld(*writer, "other", "value");  // Now the client has its chunk.
  PutOptions absent;
  absent.if_version = kAbsent;
  const auto put = [this](const Result<uint64_t>& version) { codes_.push_back(version.status().code()); };
  const auto incremented = [this](const Result<int64_t>& sum) { codes_.push_back(sum.status().code()); };
  const std::function<Status(const std::string&)> kinds[] = {
      [&](const std::string& key) {
        StartDelete(*waiter, key);
        return Status();
      },
      [&](const std::string& key) { return waiter->Put(key, "value", absent, put); },
      [&](const std::string& key) { return waiter->Increment(key, 1, incremented); }};
  const Code ends[] = {Code::kOk, Code::kConflict, Code::kOk};
  for (size_t kind = 0; kind < std::size(kinds); ++kind) {
    const std::string key = "key" + std::to_string(kind);
    codes_.clear();
    StartPut(*first, key, "12345678");
    ASSERT_FALSE(EndsUnheld(*first));
    ASSERT_TRUE(kinds[kind](key).ok());
    EXPECT_FALSE(EndsUnheld(*waiter));
    StartPut(*writer, key, "after");
    EXPECT_FALSE(EndsUnheld(*writer)) << "the put waits for nothing itself";
    EXPECT_TRUE(EndsHeld({first.get(), waiter.get(), writer.get()}));
    EXPECT_EQ(codes_.size(), 3);
    EXPECT_EQ(std::ranges::count(codes_, ends[kind]), kind == 1 ? 1 : 3);
    EXPECT_EQ(Get(*writer, key), "after");
  }
}

TEST_P(HoldOrderTest, RequestsOfAKeyThatWaitGoOnInTheirOrder) {
  const std::string value = std::string("12345678");
  const auto first = Placing("first");
  const auto deleter = Inline("deleter");
  const auto conditional = Inline("conditional");
  const auto counter = Inline("counter");
  const auto writer = Placing("writer", GetParam());
  PutHeld(*writer, "other", "value");
  PutHeld(*writer, "key", "value");  // Now the client has its chunk.
  StartPut(*first, "key", value);
  ASSERT_TRUE(EndsUnheld(*first));
  codes_.clear();
  StartDelete(*deleter, "key");
  EXPECT_FALSE(EndsUnheld(*deleter));
  PutOptions absent;
  absent.if_version = kAbsent;
  const auto put = [this](const Result<uint64_t>& version) { codes_.push_back(version.status().code()); };
  ASSERT_TRUE(conditional->Put("key", value, absent, put).ok());
  EXPECT_FALSE(EndsUnheld(*conditional));
  int64_t sum = 0;
  ASSERT_TRUE(
      counter->Increment("key", 1, [&](const Result<int64_t>& result) { sum = result.ok() ? *result : 0; }).ok());
  EXPECT_FALSE(EndsUnheld(*counter));
  StartPut(*writer, "key", "after");
  EXPECT_FALSE(EndsUnheld(*writer)) << "the put waits for nothing itself";
  EXPECT_TRUE(EndsHeld({deleter.get(), conditional.get(), counter.get(), writer.get()}));
  EXPECT_EQ(codes_, Codes({Code::kOk, Code::kOk, Code::kOk})) << "the key was deleted before the condition";
  EXPECT_EQ(sum, LoadAs<int64_t>(AsBytes(std::string_view(value))) + 1) << "and the counter came after the condition";
  EXPECT_EQ(Get(*writer, "key"), "after");
}

TEST_F(HoldTest, PutComesAfterADeleteOfItsKeyThatWaitsForItsPlace) {
  const auto one = Inline("one");
  const auto other = Inline("other");
  const auto writer = Placing("writer");
  PutHeld(*one, "deleted", "value");
  PutHeld(*one, "key", "value");
  StartDelete(*one, "deleted");
  EXPECT_FALSE(EndsUnheld(*one));
  StartDelete(*other, "key");
  EXPECT_FALSE(EndsUnheld(*other));
  StartPut(*writer, "key", "after");
  EXPECT_FALSE(EndsUnheld(*writer));
  EXPECT_TRUE(EndsHeld({one.get(), other.get(), writer.get()}));
  EXPECT_EQ(codes_, Codes({Code::kOk, Code::kOk, Code::kOk}));
  EXPECT_EQ(Get(*writer, "key"), "after");
}

TEST_F(HoldTest, PutOfAnotherKeyPassesRequestsThatWait) {
  const auto first = Placing("first");
  const auto deleter = Inline("deleter");
  StartPut(*first, "key", "value");
  ASSERT_TRUE(EndsUnheld(*first));
  StartDelete(*deleter, "key");
  EXPECT_FALSE(EndsUnheld(*deleter));
  StartPut(*first, "other", "value");
  EXPECT_TRUE(EndsUnheld(*first));
}

TEST_F(HoldTest, PutGoesOnIfTheDeleterIsGone) {
  const auto first = Placing("first");
  auto deleter = Inline("deleter");
  StartPut(*first, "key", "value");
  ASSERT_TRUE(EndsUnheld(*first));
  StartDelete(*deleter, "key");
  EXPECT_FALSE(EndsUnheld(*deleter));
  StartPut(*first, "key", "after");
  EXPECT_FALSE(EndsUnheld(*first));
  deleter.reset();
  EXPECT_TRUE(EndsHeld({first.get()}));
  EXPECT_EQ(Get(*first, "key"), "after");
}

// --- Limits

TEST_P(HoldOrderTest, PlacedPutsWaitIfTheMediumDoesNotHoldAsManyAsTheClientHasSlots) {
  const auto writer = Placing("writer", GetParam());
  PutHeld(*writer, "key", "value");  // Now the client has its chunk.
  for (int round = 0; round < 3; ++round) {
    for (uint32_t put = 0; put < kSlots; ++put) {
      StartPut(*writer, "key" + std::to_string(put), "value");
      EXPECT_TRUE(EndsUnheld(*writer)) << put;
    }
    StartPut(*writer, "one more", "value");
    EXPECT_FALSE(EndsUnheld(*writer));
    EXPECT_TRUE(EndsHeld({writer.get()}));
    disk_->HoldAll();
    shard_->Poll();
  }
  EXPECT_EQ(Count(format::Counter::kViolations), 0);
}

// --- Damage

// The medium lets the entry name the version before the newest one. So the newest is published when it is held, and its
// put is answered when that is held, too.
TEST_F(HoldTest, AnswerWaitsForAVersionThatBecomesTheNewOneLate) {
  const auto one = Inline("one");
  const auto other = Inline("other");
  index::Index& index = shard_->data().versions().part().index();
  const auto entry = [&] {
    std::optional<index::Slot> found;
    for (index::Slot slot = 0; slot < index.size(); ++slot) {
      if (!index.WordAt(slot).empty()) found = slot;
    }
    return *found;
  };
  StartPut(*one, "key", "one");
  EXPECT_FALSE(EndsUnheld(*one));
  const format::EntryWord before = index.WordAt(entry());
  StartPut(*other, "key", "other");
  EXPECT_FALSE(EndsUnheld(*other));
  disk_->HoldAll();
  index.StoreWord(entry(), before);
  EXPECT_FALSE(EndsUnheld(*other));
  EXPECT_TRUE(EndsHeld({one.get(), other.get()}));
  EXPECT_EQ(codes_, Codes({Code::kOk, Code::kOk}));
  EXPECT_EQ(Get(*one, "key"), "other");
}

}  // namespace
}  // namespace erda::sim
