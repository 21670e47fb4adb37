#include "bench/floors/measure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/temporary_folder.h"
#include "bench/floors/raw.h"
#include "bench/floors/raw_memory.h"
#include "erda/server.h"
#include "format/log_layout.h"
#include "format/object.h"
#include "format/superblock.h"
#include "paths.h"

namespace erda::floors {
namespace {

class FloorsTest : public testing::Test {
 protected:
  [[nodiscard]] std::string Address() const { return "shm:" + (folder_ / "socket").string(); }
  [[nodiscard]] std::string Pool() const { return folder_ / "pool"; }

  const TemporaryFolder folder_;
};

// --- A whole run

TEST_F(FloorsTest, EachKindIsMeasuredAsOftenAsItWasAsked) {
  for (const uint64_t value_bytes : {0, 64, 5000}) {
    SCOPED_TRACE(value_bytes);
    Settings settings;
    settings.value_bytes = value_bytes;
    settings.ops = 40;
    settings.rounds = 2;
    settings.block_ops = 8;
    const auto report = Measure(settings, BinDir() + "/erda-bench");
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    EXPECT_EQ(report->plan.ops(), 48U) << "whole blocks";
    for (size_t i = 0; i < kFigures; ++i) {
      EXPECT_EQ(report->samples[i].count(), 6U) << NameOf(static_cast<Figure>(i));
      EXPECT_GT(report->samples[i].Percentile(0), 0.0) << NameOf(static_cast<Figure>(i));
    }
    EXPECT_EQ(report->durability, "volatile");
    EXPECT_EQ(report->flush_method, "none");
    EXPECT_GT(report->clock_ns, 0.0);
    EXPECT_GT(report->ratios(settings).get_cold, 0.0);
    EXPECT_NE(report->ib_read_lat_note, "");
  }
}

TEST_F(FloorsTest, RunEndsWhenItsTimeIsOver) {
  Settings settings;
  settings.ops = 2'000'000;  // Enough for many minutes.
  settings.rounds = 200'000;
  settings.block_ops = 4;
  settings.pool_size = 256 << 20;
  settings.seconds = 1;
  const auto report = Measure(settings, BinDir() + "/erda-bench");
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_GE(report->plan.rounds, 3U);
  EXPECT_LT(report->plan.rounds, settings.rounds);
  EXPECT_EQ(report->samples[0].count(), report->plan.rounds * report->plan.blocks);
}

TEST_F(FloorsTest, FailureOfTheServerIsReported) {
  Settings settings;
  settings.pool = Pool();
  settings.pool_size = 5000;
  const auto report = Measure(settings, BinDir() + "/erda-bench");
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), Code::kInvalidArgument);
  EXPECT_NE(report.status().message().find("pool"), std::string_view::npos) << report.status().ToString();
  EXPECT_FALSE(Measure(settings, "/no/such/program").ok());
}

TEST_F(FloorsTest, PoolThatIsTooSmallIsReported) {
  Settings settings;
  settings.pool = Pool();  // The area of the raw operations is in it.
  settings.pool_size = 4 << 20;
  settings.value_bytes = 4096;
  settings.ops = 1000;
  const auto report = Measure(settings, BinDir() + "/erda-bench");
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), Code::kResourceExhausted) << report.status().ToString();
}

// --- The raw operations

class RawTest : public FloorsTest {
 protected:
  static constexpr uint64_t kBytes = 8192;
  static constexpr uint64_t kAreaAt = 4096;
  static constexpr uint64_t kValueBytes = 100;

  void Start(format::FlushMethod flush) {
    auto memory = SharedMemory::Create("erda-test", kBytes);
    ASSERT_TRUE(memory.ok());
    memory_ = *std::move(memory);
    auto server = RawServer::Start(Address(), memory_.view(), {kAreaAt, kBytes - kAreaAt},
                                   [this](uint64_t offset, uint64_t bytes) {
                                     const std::scoped_lock lock(mutex_);
                                     persisted_.emplace_back(offset, bytes);
                                   });
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
    auto client = RawClient::Connect(Address(), kValueBytes, flush);
    ASSERT_TRUE(client.ok()) << client.status().ToString();
    client_ = *std::move(client);
    std::fill(client_->body().begin(), client_->body().end(), std::byte{'v'});
  }
  std::vector<std::pair<uint64_t, uint64_t>> Persisted() {
    const std::scoped_lock lock(mutex_);
    return persisted_;
  }

  SharedMemory memory_;
  std::mutex mutex_;
  std::vector<std::pair<uint64_t, uint64_t>> persisted_;
  std::unique_ptr<RawServer> server_;
  std::unique_ptr<RawClient> client_;
};

TEST_F(RawTest, RawReadReturnsTheBytes) {
  Start(format::FlushMethod::kNone);
  for (size_t i = 0; i < kSmallReadBytes; ++i) memory_.bytes()[kAreaAt + 64 + i] = static_cast<std::byte>(i);
  ASSERT_TRUE(client_->Read(kAreaAt + 64, kSmallReadBytes).ok());
  for (size_t i = 0; i < kSmallReadBytes; ++i) EXPECT_EQ(client_->read_bytes()[i], static_cast<std::byte>(i));
  EXPECT_FALSE(client_->Read(kBytes, kSmallReadBytes).ok()) << "past the end";
}

TEST_F(RawTest, EachPingIsAnswered) {
  Start(format::FlushMethod::kNone);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(client_->PingPong().ok());
  EXPECT_TRUE(Persisted().empty());
}

void ExpectValueAt(std::span<const std::byte> memory, uint64_t object) {
  const auto body = memory.subspan(object + format::ChecksumOffset(kKeyBytes), format::kChecksumBytes + 100);
  EXPECT_TRUE(std::all_of(body.begin(), body.end(), [](std::byte b) { return b == std::byte{'v'}; }));
  EXPECT_EQ(std::count(memory.begin(), memory.end(), std::byte{'v'}), static_cast<std::ptrdiff_t>(body.size()));
}

TEST_F(RawTest, WriteIsPlacedWhenTheReadAfterItCompletes) {
  Start(format::FlushMethod::kNone);
  ASSERT_TRUE(client_->WriteAndFlush(kAreaAt + 256).ok());
  ExpectValueAt(memory_.bytes(), kAreaAt + 256);
  EXPECT_TRUE(Persisted().empty());
}

TEST_F(RawTest, AWriteIsMadePersistentByTheResponder) {
  Start(format::FlushMethod::kServerFlush);
  ASSERT_TRUE(client_->WriteAndFlush(kAreaAt + 256).ok());
  ExpectValueAt(memory_.bytes(), kAreaAt + 256);
  const std::vector<std::pair<uint64_t, uint64_t>> expected = {
      {kAreaAt + 256 + format::ChecksumOffset(kKeyBytes), format::kChecksumBytes + kValueBytes}};
  EXPECT_EQ(Persisted(), expected);
}

TEST_F(RawTest, NothingOutsideTheAreaIsMadePersistent) {
  Start(format::FlushMethod::kServerFlush);
  EXPECT_FALSE(client_->WriteAndFlush(kAreaAt - 1024).ok());
  EXPECT_TRUE(Persisted().empty());
}

TEST_F(RawTest, TheBareWorkOfAPutLeavesAWholeObjectAndAWordThatNamesIt) {
  Start(format::FlushMethod::kNone);
  const std::string key(kKeyBytes, 'k');
  const std::string value(kValueBytes, 'v');
  const uint64_t object = kAreaAt + 256;
  ASSERT_TRUE(client_->PutWork(object, kAreaAt + 64, key, value).ok());
  const std::vector<std::pair<uint64_t, uint64_t>> expected = {{object, ObjectReadBytes(kValueBytes)},
                                                               {kAreaAt + 64, sizeof(uint64_t)}};
  EXPECT_EQ(Persisted(), expected) << "the object first";
  EXPECT_TRUE(client_->PingPong().ok()) << "and no work is done unasked";
  EXPECT_EQ(Persisted(), expected);
  client_.reset();
  server_.reset();  // The server's thread ends before this one looks at its writes.
  EXPECT_EQ(LoadAs<uint64_t>(memory_.bytes().subspan(kAreaAt + 64)), object);
  const auto view = format::InspectObject(kRawPlace, memory_.bytes().subspan(object, ObjectReadBytes(kValueBytes)));
  ASSERT_EQ(view.state, format::ObjectState::kWhole);
  EXPECT_EQ(view.key, key);
  EXPECT_EQ(view.header.key_hash, HashKey(key, kRawHashSeed));
  EXPECT_EQ(AsString(view.value), value);
}

TEST_F(RawTest, NoWorkIsDoneOutsideTheArea) {
  Start(format::FlushMethod::kNone);
  const std::string key(kKeyBytes, 'k');
  const std::string value(kValueBytes, 'v');
  EXPECT_FALSE(client_->PutWork(kAreaAt - 8, kAreaAt, key, value).ok());
  EXPECT_TRUE(Persisted().empty());
  EXPECT_EQ(std::count(memory_.bytes().begin(), memory_.bytes().end(), std::byte{'v'}), 0);
}

TEST_F(RawTest, TheNextClientIsServed) {
  Start(format::FlushMethod::kNone);
  client_.reset();
  auto again = RawClient::Connect(Address(), kValueBytes, format::FlushMethod::kNone);
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_TRUE((*again)->PingPong().ok());
  server_.reset();
  EXPECT_FALSE((*again)->PingPong().ok()) << "the responder is gone";
}

// --- Its memory

TEST_F(FloorsTest, RawMemoryOfAFileLiesWhereTheLogComesLast) {
  ServerOptions options;
  options.pool = Pool();
  options.pool_size = 64 << 20;
  options.listen = {Address()};
  auto server = Server::Open(options);
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  ASSERT_TRUE((*server)->Start().ok());
  auto raw = RawMemory::Open(Pool(), 100'000);
  ASSERT_TRUE(raw.ok()) << raw.status().ToString();
  const auto bytes = (*raw)->view().bytes;
  ASSERT_EQ(bytes.size(), 64U << 20);
  const auto found = format::FindSuperblock(bytes);
  ASSERT_TRUE(found.ok());
  const format::Geometry& geometry = found->superblock.geometry;
  const RawArea area = (*raw)->area();
  EXPECT_EQ(area.offset, geometry.RegionOffset(geometry.regions() - 1) + 4096);
  EXPECT_EQ(area.bytes, 100'000U);
  EXPECT_TRUE((*raw)->untouched());
  (*raw)->Persist(area.offset, area.bytes);

  auto all = RawMemory::Open(Pool(), uint64_t{1} << 40);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ((*all)->area().offset + (*all)->area().bytes, geometry.RegionOffset(geometry.regions()));

  // As if the log had reached the area.
  const uint64_t word_at = format::kRegionTableOffset + (geometry.regions() - 1) * sizeof(uint64_t);
  const uint64_t linked = format::RegionWord::Linked(1, 0, 3).raw();
  std::memcpy(bytes.data() + word_at, &linked, sizeof(linked));
  EXPECT_FALSE((*raw)->untouched());
  EXPECT_EQ(RawMemory::Open(Pool(), 1).status().code(), Code::kResourceExhausted);
  const uint64_t free = 0;
  std::memcpy(bytes.data() + word_at, &free, sizeof(free));
}

TEST_F(FloorsTest, RawMemoryOfAnotherFileIsRefused) { EXPECT_FALSE(RawMemory::Open(Pool(), 1).ok()); }

TEST_F(FloorsTest, RawMemoryOfADramPoolIsSeparate) {
  auto raw = RawMemory::Open("dram:", 100);
  ASSERT_TRUE(raw.ok());
  EXPECT_GE((*raw)->view().bytes.size(), 100U);
  EXPECT_EQ((*raw)->area().offset, 0U);
  EXPECT_EQ((*raw)->area().bytes, 100U);
  EXPECT_TRUE((*raw)->untouched());
}

}  // namespace
}  // namespace erda::floors
