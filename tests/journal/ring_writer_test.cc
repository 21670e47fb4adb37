#include "journal/ring_writer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/bytes.h"
#include "journal/apply.h"
#include "journal/ring_fixture.h"
#include "journal/stream_fixture.h"

namespace erda::journal {
namespace {

using std::chrono::milliseconds;

constexpr Nanoseconds kNever = std::chrono::hours(1);

class RingWriterTest : public testing::Test {
 protected:
  static constexpr uint64_t kPoolBytes = 1 << 20;

  RingWriterTest() {
    EXPECT_TRUE(Ring::Format(disk_, part_, kRingIdentity).ok());
    stream_.emplace(Stream::Format(memory_.bytes(), kRingIdentity.uuid, kRingIdentity.shard, 0).value());
  }

  // Makes a writer of what the disk has, and starts it.
  void Begin(Nanoseconds lazy = kNever) {
    auto ring = MustOpenRing(disk_, part_);
    ASSERT_TRUE(ring);
    writer_.emplace(
        *stream_, *std::move(ring), lazy, health_,
        RingWriter::Hooks{
            .micros = [] { return uint64_t{7}; }, .held = [this] { ++helds_; }, .full = [this] { ++fulls_; }});
    ASSERT_TRUE(writer_->Start().ok());
  }
  void Put(uint64_t offset, const std::string& text) { ASSERT_TRUE(stream_->Append(offset, AsBytes(text))); }
  // Returns the pool as the disk has it.
  [[nodiscard]] std::string OnDisk() {
    writer_.reset();
    std::vector<std::byte> pool(kPoolBytes);
    std::vector<VisitedRecord> records;
    (void)MustOpenRing(disk_, part_, &records);
    for (const auto& record : records) {
      EXPECT_EQ(record.time_us, 7);
      EXPECT_TRUE(ApplyToMemory(record.bytes, pool).ok());
    }
    return std::string(AsString(std::span<const std::byte>(pool).first(16)));
  }
  // Waits for up to a minute.
  template <class Holds>
  static bool Becomes(Holds&& holds) {
    for (int i = 0; i < 60'000; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return false;
  }

  FakeDisk disk_{(16 << 20), 512, 1};
  const RingPart part_{0, 8 << 20};
  const SharedPages memory_{Stream::MemoryFor(Stream::kCapacityMin)};
  std::optional<Stream> stream_;
  std::atomic<int> helds_{0};
  std::atomic<int> fulls_{0};
  std::atomic<int> failures_{0};
  Health health_{[] {}, [this](const Status& /*status*/) { ++failures_; }};
  std::optional<RingWriter> writer_;
};

TEST_F(RingWriterTest, WhatSomebodyWaitsForIsHeld) {
  Begin();
  Put(0, "abcdefgh");
  ASSERT_TRUE(writer_->AwaitHeld().ok());
  EXPECT_EQ(writer_->held().load(), stream_->end());
  EXPECT_TRUE(Becomes([&] { return helds_ >= 1; })) << "a waiting thread may hear of it before the shard";
  disk_.PowerCut();
  EXPECT_EQ(OnDisk().substr(0, 8), "abcdefgh");
}

TEST_F(RingWriterTest, OneFlushServesAllThatWasAppendedMeanwhile) {
  Begin();
  const uint64_t before = disk_.calls();
  for (uint64_t i = 0; i < 100; ++i) Put(8 * i, "12345678");
  ASSERT_TRUE(writer_->AwaitHeld().ok());
  EXPECT_EQ(disk_.calls() - before, 2) << "a write and a flush";
}

// Three who were answered by one write come again, one after the other. They share the next write, too.
TEST_F(RingWriterTest, WriteWaitsForThoseItHasAnswered) {
  Begin();
  disk_.FlushTakes(milliseconds(20));
  int together = 0;
  for (int round = 0; round < 100 && together == 0; ++round) {
    Put(0, "abcdefgh");
    writer_->Ask(3);
    ASSERT_TRUE(Becomes([&] { return writer_->held().load() == stream_->end(); }));
    const uint64_t before = disk_.calls();
    Put(0, "abcdefgh");
    writer_->Ask(1);
    std::this_thread::sleep_for(milliseconds(2));  // Without the wait, the write would have begun.
    Put(0, "abcdefgh");
    writer_->Ask(3);
    ASSERT_TRUE(Becomes([&] { return writer_->held().load() == stream_->end(); }));
    if (disk_.calls() == before + 2) ++together;
  }
  EXPECT_GT(together, 0);
}

// One of three came while the disk was at work for the two others. The next write is for all three.
TEST_F(RingWriterTest, WriteWaitsAlsoIfSomebodyIsThereAlready) {
  Begin();
  disk_.FlushTakes(milliseconds(20));
  int together = 0;
  for (int round = 0; round < 100 && together == 0; ++round) {
    Put(0, "abcdefgh");
    const Place first = stream_->end();
    writer_->Ask(2);
    std::this_thread::sleep_for(milliseconds(5));
    Put(0, "abcdefgh");
    writer_->Ask(3);
    const uint64_t before = disk_.calls();
    ASSERT_TRUE(Becomes([&] { return writer_->held().load() >= first; }));
    std::this_thread::sleep_for(milliseconds(1));  // Without the wait, the write would have begun.
    Put(0, "abcdefgh");
    writer_->Ask(3);
    ASSERT_TRUE(Becomes([&] { return writer_->held().load() == stream_->end(); }));
    // The first flush, and then a write and a flush.
    if (disk_.calls() <= before + 3) ++together;
  }
  EXPECT_GT(together, 0);
}

// Of three who were answered by one write, the first one comes alone, and is not left waiting.
TEST_F(RingWriterTest, WriterWaitsForOthersAndNotForEver) {
  Begin();
  for (int round = 0; round < 20; ++round) {
    Put(0, "abcdefgh");
    writer_->Ask(3);
    ASSERT_TRUE(Becomes([&] { return writer_->held().load() == stream_->end(); }));
    Put(0, "abcdefgh");
    writer_->Ask(1);
    EXPECT_TRUE(Becomes([&] { return writer_->held().load() == stream_->end(); })) << "nobody else comes";
  }
}

// The settled bit of a version that was answered is such a thing.
TEST_F(RingWriterTest, WhatNobodyWaitsForIsHeldLater) {
  Begin(milliseconds(20));
  Put(0, "abcdefgh");
  EXPECT_TRUE(Becomes([&] { return writer_->held().load() == stream_->end(); }));
}

TEST_F(RingWriterTest, WhatNobodyWaitsForCausesNoWrite) {
  Begin();
  const uint64_t before = disk_.calls();
  Put(0, "abcdefgh");
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(disk_.calls(), before);
  Put(8, "ijklmnop");
  ASSERT_TRUE(writer_->AwaitHeld().ok());
  EXPECT_EQ(disk_.calls(), before + 2) << "it goes together with what somebody waits for";
}

TEST_F(RingWriterTest, AskedThingsAreHeldWithoutAWait) {
  Begin();
  for (int round = 0; round < 200; ++round) {
    Put(0, "abcdefgh");
    writer_->Ask();
    ASSERT_TRUE(Becomes([&] { return writer_->held().load() == stream_->end(); })) << round;
    if (stream_->room() < 1024) stream_->Release(writer_->held().load());
  }
}

TEST_F(RingWriterTest, FailureEndsWaitsAndHoldsNothingMore) {
  Begin();
  Put(0, "abcdefgh");
  ASSERT_TRUE(writer_->AwaitHeld().ok());
  const Place held = writer_->held().load();
  disk_.FailAt(1);  // The flush.
  Put(0, "ijklmnop");
  EXPECT_FALSE(writer_->AwaitHeld().ok());
  EXPECT_EQ(writer_->held().load(), held);
  EXPECT_TRUE(Becomes([&] { return failures_ == 1; })) << "a waiting thread may hear of it first";
  // The disk works again, and the writer does not.
  Put(0, "qrstuvwx");
  EXPECT_FALSE(writer_->AwaitHeld().ok());
  EXPECT_EQ(writer_->held().load(), held);
  EXPECT_FALSE(writer_->Checkpoint(held).ok());
  writer_.reset();
  disk_.Reopen();
  EXPECT_EQ(failures_, 1);
}

// An idle server does not wake its shards.
TEST_F(RingWriterTest, NothingToWriteIsNoNews) {
  Begin(milliseconds(1));
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(helds_, 0);
}

// Short records take whole blocks: the ring fills long before the stream's memory does.
TEST_F(RingWriterTest, RingThatIsHalfFullAsksOnce) {
  Begin();
  int records = 0;
  for (; fulls_ == 0 && records < 2000; ++records) {
    Put(0, "abcdefgh");
    ASSERT_TRUE(writer_->AwaitHeld().ok());
  }
  EXPECT_GT(records, 900);
  EXPECT_LT(records, 1100);
  for (int i = 0; i < 100; ++i) {
    Put(0, "abcdefgh");
    ASSERT_TRUE(writer_->AwaitHeld().ok());
  }
  EXPECT_EQ(fulls_, 1);
  ASSERT_TRUE(writer_->Checkpoint(writer_->held().load()).ok());
}

TEST_F(RingWriterTest, FullRingWaitsForACheckpoint) {
  Begin();
  const std::string large(kEntryBytesMax, 'x');
  Place checkpoint = 0;
  // Several times the size of the ring.
  for (uint64_t round = 0; round < 1000; ++round) {
    while (!stream_->Append(0, AsBytes(large))) {
      writer_->Ask();
      std::this_thread::yield();
      if (fulls_ > 0 && writer_->held().load() > checkpoint) {
        fulls_ = 0;
        checkpoint = writer_->held().load();
        ASSERT_TRUE(writer_->Checkpoint(checkpoint).ok());
      }
      stream_->Release(writer_->held().load());
    }
    writer_->Ask();
  }
  EXPECT_GT(checkpoint, 0U) << "the ring was never full";
  EXPECT_EQ(writer_->checkpoint(), checkpoint);
}

TEST_F(RingWriterTest, WriteWithoutRoomIsCounted) {
  Begin();
  const std::string large(kEntryBytesMax, 'x');
  while (writer_->counts().full_times == 0) {
    if (stream_->Append(0, AsBytes(large))) writer_->Ask();
    stream_->Release(writer_->held().load());
  }
  EXPECT_GT(writer_->counts().ring_used_bytes, writer_->counts().ring_bytes / 4 * 3);
  ASSERT_TRUE(writer_->Checkpoint(writer_->held().load()).ok());
  ASSERT_TRUE(writer_->AwaitHeld().ok()) << "it goes on";
}

// A thread that stops must not leave others waiting for it.
TEST_F(RingWriterTest, StopEndsWaits) {
  Begin();
  disk_.CutAt(0);
  Put(0, "abcdefgh");
  std::thread waits([&] { EXPECT_FALSE(writer_->AwaitHeld().ok()); });
  waits.join();
  writer_->Stop();
  EXPECT_EQ(writer_->Checkpoint(16).code(), Code::kUnavailable);
}

}  // namespace
}  // namespace erda::journal
