// A shard on a pool with a journal: what it answers, and what readers see, before the disk holds it and after.
#include <algorithm>
#include <cstring>

#include "server/crash_pool.h"
#include "sim/ports.h"

namespace erda::sim {
namespace {

using client::Engine;
using format::FlushMethod;

class HoldTest : public PortsTest {
 protected:
  static constexpr uint64_t kPoolBytes = 4 << 20;

  void SetUp() override {
    auto made =
        server::FormattedPool::Open({"dram:", kPoolBytes, Nanoseconds(0)}, {kPoolBytes, 1, 64 << 10, 16 << 10, 0});
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    server::CrashPool::Image pool(kPoolBytes / sizeof(uint64_t));
    std::memcpy(pool.data(), (*made)->pool().bytes().data(), kPoolBytes);
    auto medium = std::make_unique<server::CrashPool>(
        server::CrashPool::Images{pool, pool, std::make_shared<server::StreamDisk>(1)}, nvm::Durability::kPowerSafe);
    disk_ = medium.get();
    medium_ = std::move(medium);
    Serve({FlushMethod::kServerFlush, FlushMethod::kServerFlush});
    disk_->HoldAll();
  }

  std::unique_ptr<Engine> Inline(const std::string& name) { return MakeClient(name, 0, PutPath::kInline); }
  std::unique_ptr<Engine> Placing(const std::string& name) {
    client::EngineOptions options;
    options.put_path = PutPath::kInline;
    options.ack = Ack::kPlaced;
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
  using Codes = std::vector<Code>;

  server::CrashPool* disk_ = nullptr;
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

}  // namespace
}  // namespace erda::sim
