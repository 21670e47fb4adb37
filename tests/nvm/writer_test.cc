#include "nvm/writer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/bytes.h"
#include "nvm/fixture.h"
#include "server/crash_pool.h"

namespace erda::nvm {
namespace {

using std::chrono::steady_clock;

class WriterTest : public testing::Test {
 protected:
  void SetUp() override {
    pool_ = MustOpen("dram:", 65536);
    ASSERT_NE(pool_, nullptr);
  }

  std::unique_ptr<Pool> pool_;
};

TEST_F(WriterTest, WriteCopiesBytesToTheOffset) {
  Writer writer(*pool_);
  writer.Write(3, AsBytes("abc"));
  EXPECT_EQ(AsString(pool_->bytes().subspan(2, 5)), std::string_view("\0abc\0", 5));
  EXPECT_EQ(AsString(writer.Bytes(3, 3)), "abc");
  EXPECT_EQ(&writer.pool(), pool_.get());
}

TEST_F(WriterTest, TheLastByteOfThePoolCanBeWritten) {
  Writer writer(*pool_);
  writer.Write(65535, AsBytes("z"));
  writer.Store64(65528 - 8, 1);
  writer.Write(65536, {});
  EXPECT_EQ(pool_->bytes().back(), std::byte{'z'});
}

TEST_F(WriterTest, WordsAreWrittenFromAnyByteToAnyOther) {
  Writer writer(*pool_);
  const std::string text = "0123456789abcdefghijklmnop";
  for (uint64_t from = 0; from < 9; ++from) {
    for (uint64_t size = 0; size <= text.size(); ++size) {
      writer.Write(0, AsBytes(std::string(64, '.')));
      const uint64_t before = writer.counters().bytes;
      writer.WriteWords(16 + from, AsBytes(text).first(size));
      std::string expected(64, '.');
      expected.replace(16 + from, size, text, 0, size);
      EXPECT_EQ(AsString(writer.Bytes(0, 64)), expected);
      EXPECT_EQ(writer.counters().bytes - before, size);
    }
  }
}

TEST_F(WriterTest, ZeroingStoresOnlyOverOtherBytes) {
  Writer writer(*pool_);
  const std::string text(3 * 4096, 'x');
  writer.Write(5000, AsBytes(text));
  const uint64_t before = writer.counters().bytes;
  writer.ZeroOut(5001, 60000);
  EXPECT_EQ(pool_->bytes()[5000], std::byte{'x'});
  EXPECT_TRUE(IsZero(pool_->bytes().subspan(5001)));
  EXPECT_FALSE(IsZero(pool_->bytes().subspan(5000)));
  EXPECT_TRUE(IsZero({}));
  EXPECT_LE(writer.counters().bytes - before, 4 * 4096U) << "what is zero is left alone";
  EXPECT_GT(writer.counters().flushes, 0U);
}

// Zeroes of a process that died may be in the caches alone.
TEST_F(WriterTest, ZeroingFlushesBytesThatAreAlreadyZero) {
  server::CrashPool pool(65536);
  Writer first(pool);
  first.Write(5000, AsBytes(std::string(10000, 'x')));
  first.Persist(5000, 10000);
  first.ZeroOut(5000, 10000);
  pool.ProcessDies();
  ASSERT_FALSE(pool.IsDurable(5000, 10000));
  Writer second(pool);
  second.ZeroOut(5000, 10000);
  second.Fence();
  EXPECT_EQ(second.counters().bytes, 0U);
  EXPECT_TRUE(pool.IsDurable(5000, 10000));
}

TEST_F(WriterTest, LoadReturnsTheStoredWord) {
  Writer writer(*pool_);
  writer.Store64(8, 0x0102030405060708);
  EXPECT_EQ(writer.Load64(8), 0x0102030405060708U);
  EXPECT_EQ(LoadAs<uint64_t>(pool_->bytes().subspan(8)), 0x0102030405060708U);
  EXPECT_EQ(writer.Load64(0), 0U);
  EXPECT_EQ(writer.Load64(16), 0U);
}

TEST_F(WriterTest, EveryByteStoredIsCounted) {
  Writer writer(*pool_);
  EXPECT_EQ(writer.counters().bytes, 0U);
  writer.Write(0, AsBytes("12345"));
  EXPECT_EQ(writer.counters().bytes, 5U);
  writer.Write(0, {});
  EXPECT_EQ(writer.counters().bytes, 5U);
  writer.Store64(64, 1);
  EXPECT_EQ(writer.counters().bytes, 13U);
  writer.Store64(64, 1);  // The same word is written again.
  EXPECT_EQ(writer.counters().bytes, 21U);
  static_cast<void>(writer.Load64(64));
  static_cast<void>(writer.Bytes(0, 100));
  writer.Persist(0, 65536);
  EXPECT_EQ(writer.counters().bytes, 21U);  // Flushing stores nothing.
}

TEST_F(WriterTest, FlushesAreCountedByRangeAndFencesByNeed) {
  Writer writer(*pool_);
  writer.Fence();  // Nothing to wait for.
  writer.Flush(0, 0);
  writer.Fence();
  EXPECT_EQ(writer.counters().flushes, 0U);
  EXPECT_EQ(writer.counters().fences, 0U);
  writer.Flush(0, 1);
  writer.Flush(100, 5000);
  EXPECT_EQ(writer.counters().flushes, 2U);
  EXPECT_EQ(writer.counters().fences, 0U);
  writer.Fence();
  writer.Fence();
  EXPECT_EQ(writer.counters().fences, 1U);
  writer.Persist(0, 64);
  EXPECT_EQ(writer.counters().flushes, 3U);
  EXPECT_EQ(writer.counters().fences, 2U);
}

TEST_F(WriterTest, EachWriterCountsItsOwn) {
  Writer first(*pool_);
  Writer second(*pool_);
  first.Store64(0, 1);
  first.Persist(0, 8);
  EXPECT_EQ(second.counters().bytes, 0U);
  EXPECT_EQ(second.counters().flushes, 0U);
  EXPECT_EQ(second.Load64(0), 1U);
}

// A reader that sees the word also sees earlier stores.
TEST_F(WriterTest, ReaderOfAWordSeesEarlierStores) {
  constexpr uint64_t kRounds = 20'000;
  std::thread reader([this] {
    Writer mine(*pool_);
    uint64_t word = 0;
    while (word < kRounds) {
      word = mine.Load64(0);
      ASSERT_GE(mine.Load64(64), word);
    }
  });
  Writer writer(*pool_);
  for (uint64_t round = 1; round <= kRounds; ++round) {
    writer.Store64(64, round);
    writer.Store64(0, round);
  }
  reader.join();
}

TEST_F(WriterTest, AWriteLatencyIsTheLeastThatAFenceTakes) {
  constexpr std::chrono::milliseconds kLatency{3};
  const auto pool = MustOpen("dram:", 65536, kLatency);
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(pool->write_latency(), kLatency);
  Writer writer(*pool);
  const auto begin = steady_clock::now();
  writer.Persist(0, 8);
  EXPECT_GE(steady_clock::now() - begin, kLatency);
  const auto second = steady_clock::now();
  writer.Flush(0, 8);
  writer.Flush(64, 8);
  writer.Fence();
  EXPECT_GE(steady_clock::now() - second, kLatency);
}

TEST_F(WriterTest, AFenceWithNothingToWaitForCostsNoLatency) {
  const auto pool = MustOpen("dram:", 65536, std::chrono::hours(1));
  ASSERT_NE(pool, nullptr);
  Writer writer(*pool);
  writer.Store64(0, 1);
  writer.Fence();  // Nothing was flushed: it would never end.
  EXPECT_EQ(writer.counters().fences, 0U);
}

}  // namespace
}  // namespace erda::nvm
