#include "journal/captured_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "journal/apply.h"
#include "journal/recording_pool.h"
#include "journal/stream_fixture.h"
#include "nvm/writer.h"

namespace erda::journal {
namespace {

class CapturedPoolTest : public testing::Test {
 protected:
  static constexpr uint64_t kPoolBytes = 1 << 20;
  using Entries = std::vector<FoundEntry>;

  void SetUp() override {
    auto image = nvm::Pool::Open({.path = "dram:", .size = kPoolBytes});
    ASSERT_TRUE(image.ok()) << image.status().ToString();
    image_ = *std::move(image);
    auto stream = Stream::Format(memory_.bytes(), Uuid{7}, 0, 0);
    ASSERT_TRUE(stream.ok()) << stream.status().ToString();
    stream_.emplace(*stream);
    const auto wait = [this] {
      ++waits_;
      if (!fails_) return Take();
      health_.Fail({Code::kUnavailable, "the disk is broken"});
    };
    const auto await_held = [this, wait] {
      wait();
      return health_.failure();
    };
    pool_.emplace(
        *image_, *stream_,
        CapturedPool::Medium{&held_place_, &health_, wait, await_held, [this](uint64_t /*waiters*/) { ++asks_; }});
  }

  // Takes what the stream has, and releases it.
  void Take() {
    const Place from = stream_->released();
    const Place to = stream_->end();
    const auto pieces = stream_->Bytes(from, to);
    for (FoundEntry& entry : EntriesIn(pieces, kPoolBytes)) taken_.push_back(std::move(entry));
    for (const auto piece : pieces) EXPECT_TRUE(ApplyToMemory(piece, held_).ok());
    stream_->Release(to);
    held_place_ = to;
  }
  Entries Taken() {
    Take();
    return std::exchange(taken_, {});
  }
  std::unique_ptr<nvm::Pool> image_;
  const SharedPages memory_{Stream::MemoryFor(Stream::kCapacityMin)};
  std::optional<Stream> stream_;
  std::optional<CapturedPool> pool_;
  Entries taken_;
  std::vector<std::byte> held_ = std::vector<std::byte>(kPoolBytes);  // The pool as the disk has it.
  std::atomic<Place> held_place_{0};
  Health health_{[] {}, [](const Status& /*status*/) {}};
  bool fails_ = false;  // The disk, at the next wait.
  int waits_ = 0;
  int asks_ = 0;
};

TEST_F(CapturedPoolTest, ItIsThePoolOfTheImage) {
  EXPECT_EQ(pool_->bytes().data(), image_->bytes().data());
  EXPECT_EQ(pool_->size(), kPoolBytes);
  EXPECT_EQ(pool_->durability(), nvm::Durability::kPowerSafe);
  EXPECT_EQ(pool_->view().fd, image_->view().fd);
  EXPECT_EQ(pool_->view().fd_read_only, image_->view().fd_read_only);
  EXPECT_EQ(pool_->large_pages(), image_->large_pages());
  EXPECT_EQ(pool_->boot(), format::kNoBoot);
  EXPECT_TRUE(pool_->Sync(0, 4096).ok());
  EXPECT_EQ(pool_->Widen(kPoolBytes, 2 * kPoolBytes).code(), Code::kInvalidArgument);
  pool_->Narrow(4096);
  EXPECT_EQ(pool_->view().bytes.size(), 4096U);
}

TEST_F(CapturedPoolTest, StreamHasWhatIsFlushedAndNothingElse) {
  nvm::Writer writer(*pool_);
  writer.Write(1000, AsBytes("written and flushed, written"));
  writer.Write(3000, AsBytes("never flushed"));
  writer.Fence();
  EXPECT_TRUE(Taken().empty());
  writer.Flush(1000, 19);
  writer.Store64(64, 0x3837363534333231);
  writer.Flush(64, 8);
  const Place before_fence = stream_->end();
  writer.Fence();
  EXPECT_EQ(stream_->end(), before_fence);
  EXPECT_EQ(Taken(), (Entries{FoundEntry::Bytes(1000, "written and flushed"), FoundEntry::Bytes(64, "12345678")}));
  EXPECT_EQ(writer.counters().fences, 1U);
  EXPECT_EQ(AsString(image_->bytes().subspan(3000, 13)), "never flushed") << "the image has all stores";
}

TEST_F(CapturedPoolTest, StreamHasTheBytesOfTheMomentOfTheFlush) {
  nvm::Writer writer(*pool_);
  writer.Write(8, AsBytes("old"));
  writer.Flush(8, 3);
  writer.Write(8, AsBytes("new"));
  writer.Flush(8, 3);
  writer.Write(8, AsBytes("---"));
  // A client places these bytes: no store of the writer names them.
  std::memcpy(image_->view().bytes.data() + 100, "placed", 6);
  writer.Persist(100, 6);
  EXPECT_EQ(Taken(),
            (Entries{FoundEntry::Bytes(8, "old"), FoundEntry::Bytes(8, "new"), FoundEntry::Bytes(100, "placed")}));
}

TEST_F(CapturedPoolTest, LongZeroesAreALength) {
  nvm::Writer writer(*pool_);
  writer.Flush(0, 255);
  writer.Flush(0, 256);
  writer.ZeroOut(4096, kPoolBytes - 4096);
  EXPECT_EQ(Taken(), (Entries{FoundEntry::Bytes(0, std::string(255, '\0')), FoundEntry::Zeroes(0, 256),
                              FoundEntry::Zeroes(4096, kPoolBytes - 4096)}));
  writer.Write(300, AsBytes("x"));
  writer.Flush(0, 301);
  EXPECT_EQ(Taken(), (Entries{FoundEntry::Bytes(0, std::string(300, '\0') + "x")}));
  writer.Flush(0, 300);
  EXPECT_EQ(Taken(), (Entries{FoundEntry::Zeroes(0, 300)}));
}

TEST_F(CapturedPoolTest, LongFlushIsSeveralEntries) {
  nvm::Writer writer(*pool_);
  std::string text(kEntryBytesMax + 2000, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7 / 5);
  writer.Write(kEntryBytesMax - 1000, AsBytes(text));
  writer.Flush(kEntryBytesMax - 1000, text.size());
  EXPECT_EQ(Taken(), (Entries{FoundEntry::Bytes(kEntryBytesMax - 1000, text.substr(0, 1000)),
                              FoundEntry::Bytes(kEntryBytesMax, text.substr(1000, kEntryBytesMax)),
                              FoundEntry::Bytes(2 * kEntryBytesMax, text.substr(kEntryBytesMax + 1000))}));
}

TEST_F(CapturedPoolTest, FlushWaitsForRoom) {
  nvm::Writer writer(*pool_);
  const std::string text(kPoolBytes, 'x');
  writer.Write(0, AsBytes(text));
  writer.Flush(0, kPoolBytes);  // Several times what the stream has room for.
  EXPECT_GE(waits_, 3);
  Take();
  EXPECT_EQ(AsString(held_), text);
  // Zeroes wait, too.
  while (stream_->Append(0, AsBytes("x"))) {
  }
  const int before = waits_;
  writer.ZeroOut(0, kPoolBytes);
  EXPECT_EQ(waits_, before + 1);
  EXPECT_EQ(Taken().back(), FoundEntry::Zeroes(0, kPoolBytes));
}

TEST_F(CapturedPoolTest, ItsMediumIsBehind) {
  EXPECT_FALSE(image_->holds_later());
  EXPECT_TRUE(image_->AwaitHeld().ok());
  nvm::Writer writer(*pool_);
  EXPECT_TRUE(writer.holds_later());
  writer.Store64(0, 5);
  EXPECT_EQ(writer.place(), 0);
  writer.Persist(0, 8);
  EXPECT_EQ(writer.place(), stream_->end());
  EXPECT_GT(writer.place(), 0);
  EXPECT_EQ(writer.held(), 0);
  EXPECT_TRUE(writer.AwaitHeld().ok());
  EXPECT_EQ(waits_, 1);
  EXPECT_EQ(writer.held(), writer.place());
  EXPECT_TRUE(writer.AwaitHeld().ok());
  EXPECT_EQ(waits_, 1) << "nothing more is to be held";
  writer.FlushZeroes(4096, 64);
  (void)Taken();
  writer.FlushZeroes(4096, 64);
  EXPECT_EQ(Taken(), Entries{FoundEntry::Zeroes(4096, 64)}) << "short, and known to be zeroes";
}

// Each flush and fence goes to the medium, and the stream tells of each fence once. A process that begins does not know
// whether the one before it had fenced.
TEST_F(CapturedPoolTest, MirroredPoolHasItsOwnMediumAndTellsOfFences) {
  RecordingPool medium{std::vector<std::byte>(kPoolBytes)};
  const auto wait = [this] { Take(); };
  CapturedPool mirrored(medium, *stream_,
                        {.held = &held_place_,
                         .health = &health_,
                         .await_room = wait,
                         .await_held = [] { return Status(); },
                         .ask = [](uint64_t /*waiters*/) {},
                         .mirrored = true});
  nvm::Writer writer(mirrored);
  writer.Store64(8, 0x3837363534333231);
  writer.Flush(8, 8);
  writer.Flush(4096, 512);
  EXPECT_EQ(Taken(), (Entries{FoundEntry::Bytes(8, "12345678").AfterFence(), FoundEntry::Zeroes(4096, 512)}));
  writer.Fence();
  writer.Fence();  // Nothing was flushed since.
  EXPECT_EQ(medium.Taken(), (std::vector<std::string>{"8+8", "4096+512", "fence"}));
  EXPECT_TRUE(Taken().empty());
  writer.FlushZeroes(8192, 64);
  writer.Flush(8, 8);
  writer.Fence();
  writer.Flush(8, 8);
  EXPECT_EQ(Taken(), (Entries{FoundEntry::Zeroes(8192, 64).AfterFence(), FoundEntry::Bytes(8, "12345678"),
                              FoundEntry::Bytes(8, "12345678").AfterFence()}));
  EXPECT_EQ(medium.Taken(), (std::vector<std::string>{"8192+64", "8+8", "fence", "8+8"}));
}

// Otherwise the mirror could hold a store that a power cut takes from the primary, and the shard would rely on it.
TEST_F(CapturedPoolTest, MirroredPoolIsFencedBeforeTheMirrorGetsMore) {
  RecordingPool medium{std::vector<std::byte>(kPoolBytes)};
  std::vector<std::string> before_wait;
  const auto wait = [&] {
    before_wait = medium.Taken();
    Take();
  };
  CapturedPool mirrored(medium, *stream_,
                        {.held = &held_place_,
                         .health = &health_,
                         .await_room = wait,
                         .await_held =
                             [wait] {
                               wait();
                               return Status();
                             },
                         .ask = [wait](uint64_t /*waiters*/) { wait(); },
                         .mirrored = true});
  nvm::Writer writer(mirrored);
  const std::vector<std::string> expected{"8+8", "fence"};
  writer.Flush(8, 8);
  writer.AskHeld(1);
  EXPECT_EQ(before_wait, expected);
  writer.Flush(8, 8);
  EXPECT_TRUE(writer.AwaitHeld().ok());
  EXPECT_EQ(before_wait, expected);
  while (stream_->Append(0, AsBytes("x"))) {
  }
  writer.Flush(8, 8);  // It waits for room.
  EXPECT_EQ(before_wait, expected);
  writer.Flush(8, 8);
  const Entries all = Taken();
  ASSERT_GE(all.size(), 4U);
  EXPECT_TRUE(all[0].fenced && all[1].fenced) << "the stream tells of these fences, too";
  EXPECT_TRUE(all[all.size() - 2].fenced);
  EXPECT_FALSE(all.back().fenced);
}

TEST_F(CapturedPoolTest, AsksOnlyForWhatIsNotHeld) {
  nvm::Writer writer(*pool_);
  writer.AskHeld(1);
  EXPECT_EQ(asks_, 0);
  writer.Store64(0, 5);
  writer.Persist(0, 8);
  writer.AskHeld(1);
  EXPECT_EQ(asks_, 1);
  Take();
  writer.AskHeld(1);
  EXPECT_EQ(asks_, 1);
}

TEST_F(CapturedPoolTest, FailedDiskStopsNobody) {
  nvm::Writer writer(*pool_);
  const std::string text(kPoolBytes, 'x');
  writer.Write(0, AsBytes(text));
  EXPECT_FALSE(writer.failed());
  fails_ = true;
  writer.Flush(0, kPoolBytes);  // Several times what the stream has room for.
  EXPECT_TRUE(writer.failed());
  EXPECT_EQ(waits_, 1) << "the rest is dropped at once";
  EXPECT_EQ(writer.AwaitHeld().code(), Code::kUnavailable);
  writer.FlushZeroes(0, kPoolBytes);
  EXPECT_EQ(AsString(pool_->bytes().first(4)), "xxxx") << "readers go on";
}

// Then a power cut may take the last flushes, and no answer waits for the disk.
TEST_F(CapturedPoolTest, WithoutWaitsAllCountsAsHeld) {
  CapturedPool pool(*image_, *stream_,
                    CapturedPool::Medium{nullptr, &health_, [this] { Take(); }, [] { return Status(); },
                                         [](uint64_t /*waiters*/) {}});
  nvm::Writer writer(pool);
  writer.Store64(0, 5);
  writer.Persist(0, 8);
  EXPECT_TRUE(writer.holds_later()) << "its stream still gets all copies";
  EXPECT_EQ(writer.held(), writer.place());
  EXPECT_GT(writer.place(), held_place_.load());
}

// The disk's pool is always what the flushes of the writer made of it.
TEST_F(CapturedPoolTest, StreamMakesThePoolOfTheFlushes) {
  Random random(1);
  nvm::Writer writer(*pool_);
  std::vector<std::byte> expected(kPoolBytes);
  for (int step = 0; step < 3000; ++step) {
    const uint64_t size = random.Between(1, random.Chance(0.05) ? 3 * kEntryBytesMax : 400);
    const uint64_t offset = random.Uniform(kPoolBytes - size + 1);
    if (random.Chance(0.5)) {
      std::string bytes(size, '\0');
      const bool zeroes = random.Chance(0.3);
      for (char& c : bytes) c = zeroes ? '\0' : static_cast<char>(random.Next());
      writer.Write(offset, AsBytes(bytes));
    } else {
      writer.Flush(offset, size);
      std::memcpy(expected.data() + offset, image_->bytes().data() + offset, size);
    }
    if (random.Chance(0.01)) {
      Take();
      ASSERT_EQ(std::memcmp(held_.data(), expected.data(), kPoolBytes), 0) << step;
    }
  }
  Take();
  EXPECT_EQ(std::memcmp(held_.data(), expected.data(), kPoolBytes), 0);
  EXPECT_NE(std::memcmp(held_.data(), image_->bytes().data(), kPoolBytes), 0) << "some stores were not flushed";
}

}  // namespace
}  // namespace erda::journal
