// A server with a journal, as its users see it. The tests of every kind of pool have it, too.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/writes_fail.h"
#include "e2e/fixture.h"

namespace erda {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class JournalTest : public E2eTest {
 protected:
  [[nodiscard]] ServerOptions Options() const {
    ServerOptions options = E2eTest::Options(PoolKind::kFile);
    options.pool_size = 16 << 20;
    options.journal = Path("journal");
    options.journal_size = 6 << 20;
    options.journal_on_tmpfs = true;
    return options;
  }
  [[nodiscard]] static std::unique_ptr<Server> Start(const ServerOptions& options) {
    auto server = Server::Open(options);
    EXPECT_TRUE(server.ok()) << server.status().ToString();
    if (!server.ok()) return nullptr;
    EXPECT_TRUE((*server)->Start().ok());
    return *std::move(server);
  }
  // The error is that of WritesFail.
  static void ExpectNamesTheError(const Status& status) {
    ExpectFails(status, Code::kUnavailable, "cannot write to the disk of its journal (File too large)");
    EXPECT_EQ(status.error_number(), EFBIG);
  }
};

TEST_F(JournalTest, PoolIsPowerSafeOnAnyDisk) {
  const auto server = Start(Options());
  EXPECT_EQ(server->durability(), "power-safe");
  const auto client = Connect();
  EXPECT_EQ(InfoOf(*client).at("durability"), "power-safe");
  EXPECT_EQ(InfoOf(*client).at("flush_method"), "server-flush");
}

TEST_F(JournalTest, PoolNeedsItsJournal) {
  ASSERT_TRUE(Server::Open(Options()).ok());
  ServerOptions without = Options();
  without.journal.clear();
  ExpectFails(Server::Open(without).status(), Code::kInvalidArgument, "it has a journal");
  fs::rename(Path("journal"), Path("elsewhere"));
  EXPECT_FALSE(Server::Open(Options()).ok());
  fs::rename(Path("elsewhere"), Path("journal"));
  EXPECT_TRUE(Server::Open(Options()).ok());
  // A pool that was made without one.
  without.pool = Path("plain");
  ASSERT_TRUE(Server::Open(without).ok());
  without.journal = Path("journal");
  ExpectFails(Server::Open(without).status(), Code::kInvalidArgument, "made without a journal");
}

TEST_F(JournalTest, JournalThatCannotBeLeavesNoPool) {
  ServerOptions options = Options();
  options.journal = Path("no folder") + "/journal";
  EXPECT_FALSE(Server::Open(options).ok());
  EXPECT_FALSE(fs::exists(Path("pool")));
  options = Options();
  options.journal_size = 4 << 20;  // Each ring has that, and the file has a header.
  ExpectFails(Server::Open(options).status(), Code::kInvalidArgument, "too few");
  EXPECT_FALSE(fs::exists(Path("pool")));
  options = Options();
  options.pool = "dram:";
  ExpectFails(Server::Open(options).status(), Code::kInvalidArgument, "cannot have a journal");
}

TEST_F(JournalTest, ServerThatNeverServedLeavesACleanPool) {
  for (int i = 0; i < 2; ++i) {
    const auto server = Server::Open(Options());
    ASSERT_TRUE(server.ok());
    EXPECT_FALSE((*server)->recovery()) << i;
  }
}

TEST_F(JournalTest, NumbersOfTheJournalAreCounted) {
  const auto server = Start(Options());
  const auto client = Connect();
  const ServerStats before = server->stats();
  EXPECT_GE(before.journal_ring_bytes, uint64_t{5} << 20);
  constexpr uint64_t kPuts = 10;
  for (uint64_t i = 0; i < kPuts; ++i) ASSERT_TRUE(client->Put("key" + std::to_string(i), Bytes(i, 1000)).ok());
  // The settled bits follow the answers.
  EXPECT_TRUE(WaitUntil([&] {
    const ServerStats stats = server->stats();
    return stats.journal_held_bytes == stats.journal_stream_bytes &&
           stats.journal_held_bytes >= before.journal_held_bytes + kPuts * 1000;
  }));
  const ServerStats after = server->stats();
  EXPECT_GE(after.journal_flushes, before.journal_flushes + kPuts) << "each put waited for one";
  EXPECT_GE(after.journal_bytes_written, before.journal_bytes_written + kPuts * 4096);
  // A checkpoint frees the ring.
  EXPECT_TRUE(after.journal_ring_used >= kPuts * 4096 || after.journal_checkpoints > before.journal_checkpoints);
  const Activity activity = server->activity();
  EXPECT_GE(activity.hold.count(), kPuts);
  EXPECT_EQ(activity.hold.count(), client->ServerActivity()->hold.count());
  EXPECT_EQ(after.journals_failed, 0U);
  // Two thirds of the ring need a checkpoint.
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(client->Put("key", Bytes(i, 1000)).ok());
  EXPECT_TRUE(WaitUntil([&] { return server->stats().journal_checkpoints > before.journal_checkpoints; }));
  EXPECT_GT(server->stats().journal_checkpoint_at_ms, uint64_t{1'000'000'000'000});
  EXPECT_GT(InfoOf(*client).count("hold_p99_ns"), 0U);
}

TEST_F(JournalTest, FrontHoldsBeforeTheDisk) {
  ServerOptions options = Options();
  options.journal_front = Path("front");
  std::ofstream(Path("front"), std::ios::binary) << std::string(options.shards * (512 << 10), '\0');
  const auto server = Start(options);
  const auto client = Connect();
  EXPECT_EQ(server->durability(), "power-safe");
  const ServerStats before = server->stats();
  EXPECT_GT(before.journal_front_bytes, options.shards * 500'000ULL);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(client->Put("key", Bytes(i, 100)).ok());
  const ServerStats after = server->stats();
  EXPECT_EQ(after.journal_front_full_times, before.journal_front_full_times);
  EXPECT_LT(after.journal_flushes, before.journal_flushes + 500) << "puts waited for the disk";
  EXPECT_GE(server->activity().hold.count(), 900U);
  // The disk gets it later.
  EXPECT_TRUE(WaitUntil([&] { return server->stats().journal_front_used == 0; }));
}

TEST_F(JournalTest, FrontHasToFit) {
  ServerOptions options = Options();
  options.journal_front = Path("front");
  ExpectFails(Server::Open(options).status(), Code::kNotFound, "front " + Path("front"));
  std::ofstream(Path("front"), std::ios::binary) << std::string(4096, '\0');
  ExpectFails(Server::Open(options).status(), Code::kInvalidArgument, "are needed");
  fs::resize_file(Path("front"), options.shards * (1 << 20));
  options.journal_interval = milliseconds(10);
  ExpectFails(Server::Open(options).status(), Code::kInvalidArgument, "has no purpose");
  options.journal_interval = {};
  EXPECT_TRUE(Server::Open(options).ok());
  options.pool = Path("plain");
  options.journal.clear();
  ExpectFails(Server::Open(options).status(), Code::kInvalidArgument, "needs a journal");
}

// Then no answer waits for the disk, and a power cut takes what came since.
TEST_F(JournalTest, IntervalPromisesLess) {
  ServerOptions options = Options();
  options.journal_interval = milliseconds(10);
  {
    const auto server = Start(options);
    EXPECT_EQ(server->durability(), "process-safe");
    const auto client = Connect();
    EXPECT_EQ(InfoOf(*client).at("durability"), "process-safe");
    EXPECT_EQ(InfoOf(*client).at("journal_interval_ms"), "10");
    ASSERT_TRUE(client->Put("key0", "value").ok());
    EXPECT_EQ(server->activity().hold.count(), 0U) << "nobody asks the disk";
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(client->Put("key" + std::to_string(i), Bytes(i, 1000)).ok());
    for (int i = 0; i < 1000; i += 2) ASSERT_TRUE(client->Delete("key" + std::to_string(i)).ok());
    EXPECT_TRUE(server->Stop().ok());
  }
  const auto server = Start(Options());
  const auto client = Connect();
  for (int i = 0; i < 1000; ++i) {
    const auto value = client->Get("key" + std::to_string(i));
    if (i % 2 == 0) {
      EXPECT_EQ(value.status().code(), Code::kNotFound) << i;
    } else {
      EXPECT_EQ(value.ok() && *value == Bytes(i, 1000), true) << i;
    }
  }
}

// The log goes around several times, so the rings and the streams' memory do, too.
TEST_F(JournalTest, MoreIsPutThanJournalAndPoolHold) {
  {
    const auto server = Start(Options());
    const auto client = Connect();
    for (int i = 0; i < 20'000; ++i) ASSERT_TRUE(client->Put("key" + std::to_string(i % 100), Bytes(i, 2000)).ok());
    EXPECT_TRUE(server->Stop().ok());
  }
  const auto server = Start(Options());
  const auto client = Connect();
  for (int i = 19'900; i < 20'000; ++i)
    EXPECT_EQ(*client->Get("key" + std::to_string(i % 100)) == Bytes(i, 2000), true);
}

TEST_F(JournalTest, FailedDiskRefusesChangesAndServesGets) {
  std::mutex mutex;
  std::string told;
  ServerOptions options = Options();
  options.on_event = [&](std::string_view line) {
    const std::scoped_lock lock(mutex);
    told += line;
  };
  {
    const auto server = Start(options);
    const auto client = Connect();
    const auto placing = Connect({.ack = Ack::kPlaced});
    const auto reserving = Connect({.put_path = PutPath::kReserve});
    const auto delegating = Connect({.put_path = PutPath::kDelegate});
    ASSERT_TRUE(client->Put("key", "value").ok());
    EXPECT_TRUE(server->health().ok());
    for (Client* each : {client.get(), placing.get(), reserving.get(), delegating.get()}) {
      ASSERT_TRUE(each->Put("other", "value").ok());
    }
    EXPECT_EQ(server->stats().journal_error_number, 0U);
    {
      const WritesFail fails;
      ExpectNamesTheError(client->Put("lost", "value"));
    }
    // The disk works again, but nobody knows what it has lost.
    ExpectNamesTheError(client->Put("lost", "value"));
    ExpectNamesTheError(placing->Put("lost", "value"));
    ExpectNamesTheError(reserving->Put("lost", "value"));
    ExpectNamesTheError(delegating->Put("lost", "value"));
    ExpectNamesTheError(client->Put("lost", "value", {.if_version = kAbsent}).status());
    ExpectNamesTheError(client->Delete("key"));
    ExpectNamesTheError(client->Increment("number", 1).status());
    EXPECT_EQ(*client->Get("key"), "value");
    EXPECT_EQ(*Connect()->Get("key"), "value") << "new clients can get, too";
    EXPECT_TRUE(WaitUntil([&] {
      const std::scoped_lock lock(mutex);
      return told.find("the journal has failed") != std::string::npos;
    })) << told;
    ExpectFails(server->health(), Code::kUnavailable, "cannot write");
    EXPECT_EQ(server->health().error_number(), EFBIG);
    EXPECT_TRUE(WaitUntil([&] { return server->stats().journals_failed == 1; }));
    EXPECT_TRUE(WaitUntil([&] { return server->stats().journal_error_number == EFBIG; }));
    ExpectFails(server->Stop(), Code::kUnavailable, "not marked as closed");
  }
  const auto server = Start(Options());
  EXPECT_TRUE(server->recovery());
  const auto client = Connect();
  EXPECT_EQ(*client->Get("key"), "value");
  EXPECT_EQ(*client->Get("other"), "value");
  EXPECT_EQ(client->Get("lost").status().code(), Code::kNotFound);
  EXPECT_TRUE(client->Put("lost", "value").ok());
}

// Requests that wait for the disk, or for other requests, when it fails.
TEST_F(JournalTest, FailureEndsAllThatWaits) {
  const auto server = Start(Options());
  constexpr uint32_t kClients = 8;
  std::vector<std::unique_ptr<Client>> clients;
  for (uint32_t i = 0; i < kClients; ++i) clients.push_back(Connect());
  ASSERT_TRUE(clients[0]->Put("number", std::string(8, '\0')).ok());
  std::atomic<uint32_t> ended = 0;
  std::thread breaks([&] {
    EXPECT_TRUE(WaitUntil([&] { return server->stats().puts > 100; }));
    const WritesFail fails;
    EXPECT_TRUE(WaitUntil([&] { return ended > 0; }));
  });
  AtOnce(kClients, [&](uint32_t i) {
    Status status;
    while (status.ok()) {
      status = i % 4 == 0   ? clients[i]->Increment("number", 1).status()
               : i % 4 == 1 ? clients[i]->Put("key", Bytes(i, 3000))
               : i % 4 == 2 ? clients[i]->Delete("key")
                            : clients[i]->Put("key", Bytes(i, 30));
      if (status.code() == Code::kNotFound) status = {};
    }
    ++ended;
    ExpectNamesTheError(status);
  });
  breaks.join();
}

}  // namespace
}  // namespace erda
