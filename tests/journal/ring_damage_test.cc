// Rings with damaged records and checkpoints, and on disks that fail.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "journal/ring.h"
#include "journal/ring_fixture.h"

namespace erda::journal {
namespace {

class RingDamageTest : public RingTest {};

TEST_F(RingDamageTest, DamagedRecordEndsTheStream) {
  auto ring = Open();
  for (const char* text : {"one ", "two ", "3rd "}) ASSERT_TRUE(AppendTo(*ring, AsBytes(text)).ok());
  disk_.bytes()[part_.offset + 3 * kDiskBlock + sizeof(RecordHeader)] ^= std::byte{1};
  ring = Open();
  EXPECT_EQ(Visited(), "one ");
  EXPECT_EQ(ring->end(), 4U);
  // The third one was written when the second one was held.
  const Status check = ring->CheckEnd();
  EXPECT_EQ(check.code(), Code::kCorruption);
  EXPECT_EQ(check.message(),
            "the ring of shard 3 is damaged: its records end at place 4 in epoch 1, and the one in block 4 says that "
            "the disk "
            "held the stream up to place 8");
}

// The records were acknowledged after the epoch had begun.
TEST_F(RingDamageTest, DamageOfOneCheckpointCopyDoesNotBringAnEpochBack) {
  for (const uint64_t copy : {0, 1}) {
    SCOPED_TRACE(copy);
    ASSERT_TRUE(Ring::Format(disk_, part_, kRingIdentity).ok());
    auto ring = Open();
    ASSERT_TRUE(ring->BeginEpoch(ring->end()).ok());
    ASSERT_TRUE(ring->Write(0, OnePart(AsBytes("one ")), 0).ok());
    ASSERT_TRUE(AppendTo(*ring, AsBytes("two ")).ok());
    disk_.bytes()[part_.offset + copy * kDiskBlock] ^= std::byte{1};
    ring = Open();
    EXPECT_EQ(ring->epoch(), 2U);
    EXPECT_EQ(Visited(), "one two ");
  }
}

// A fuzzer found that: a stream that wrapped around counted as held at once.
TEST_F(RingDamageTest, CheckpointWithNumbersThatNothingReachesDoesNotCount) {
  CheckpointBlock checkpoint = FirstCheckpoint(kRingIdentity);
  checkpoint.generation = 100;
  const AlignedBuffer buffer(kDiskBlock);
  const auto write = [&](uint64_t copy) {
    EncodeCheckpoint(checkpoint, buffer.bytes());
    ASSERT_TRUE(disk_.Write(part_.offset + copy * kDiskBlock, buffer.bytes()).ok());
  };
  checkpoint.place = (Place{1} << 63) - 16;
  write(0);
  EXPECT_EQ(Open()->checkpoint(), checkpoint.place);
  checkpoint.place += 16;
  write(0);
  EXPECT_EQ(Open()->checkpoint(), 0U) << "the other copy counts";
  for (uint64_t CheckpointBlock::*number : {&CheckpointBlock::epoch, &CheckpointBlock::generation}) {
    CheckpointBlock other = FirstCheckpoint(kRingIdentity);
    other.generation = 100;
    other.place = 16;
    other.*number = UINT64_MAX;
    std::swap(other, checkpoint);
    write(0);
    std::swap(other, checkpoint);
    EXPECT_EQ(Open()->checkpoint(), 0U);
  }
  write(1);
  EXPECT_EQ(Ring::Open(disk_, part_, kRingIdentity, [](const Record&) { return Status(); }).status().code(),
            Code::kCorruption);
}

TEST_F(RingDamageTest, RecordOfALaterEpochShowsThatACheckpointIsLost) {
  Plant(2, 0, 5, AsBytes("late"));
  const Status check = Open()->CheckEnd();
  EXPECT_EQ(check.code(), Code::kCorruption);
  EXPECT_EQ(check.message(),
            "the ring of shard 3 is damaged: its records end at place 0 in epoch 1, and the one in block 2 says that "
            "epoch 5 has begun");
}

TEST_F(RingDamageTest, RecordThatIsNotHeldIsMissedByNone) {
  auto ring = Open();
  ASSERT_TRUE(AppendTo(*ring, AsBytes("one ")).ok());
  ASSERT_TRUE(ring->Write(4, OnePart(AsBytes("two ")), 0).ok());
  ASSERT_TRUE(ring->Write(8, OnePart(AsBytes("3rd ")), 0).ok());
  disk_.bytes()[part_.offset + 3 * kDiskBlock] ^= std::byte{1};
  ring = Open();
  EXPECT_EQ(ring->end(), 4U);
  EXPECT_TRUE(ring->CheckEnd().ok());
}

TEST_F(RingDamageTest, BeginningOfARecordAtTheEndOfTheRingIsNoRecord) {
  const auto bytes = SomeBytes(RecordRoom(3), 6);
  const AlignedBuffer buffer(3 * kDiskBlock);
  EncodeRecord(kRingIdentity, {100, 100, 1, 0, {}}, OnePart(bytes), buffer.bytes());
  const uint64_t last = part_.offset + part_.size - kDiskBlock;
  ASSERT_TRUE(disk_.Write(last, buffer.bytes().first(kDiskBlock)).ok());
  const auto ring = Open();
  EXPECT_TRUE(ring->CheckEnd().ok());
}

TEST_F(RingDamageTest, LostCheckpointIsNoticedOnceItsRoomIsUsed) {
  auto ring = Open();
  const auto five = SomeBytes(RecordRoom(5), 5);
  ASSERT_TRUE(AppendTo(*ring, five).ok());
  ASSERT_TRUE(AppendTo(*ring, five).ok());
  ASSERT_TRUE(ring->Checkpoint(five.size()).ok());
  const auto damage = [&] { disk_.bytes()[part_.offset + kDiskBlock] ^= std::byte{1}; };
  damage();
  ring = Open();
  EXPECT_EQ(ring->end(), 2 * five.size());
  EXPECT_TRUE(ring->CheckEnd().ok());
  damage();
  ring = Open();
  ASSERT_TRUE(AppendTo(*ring, AsBytes("over the first")).ok());
  damage();
  ring = Open();
  EXPECT_EQ(ring->end(), 0U);
  EXPECT_EQ(ring->CheckEnd().code(), Code::kCorruption);
}

TEST_F(RingDamageTest, DamagedCopyOfTheCheckpointIsNotUsed) {
  auto ring = Open();
  ASSERT_TRUE(AppendTo(*ring, AsBytes("one ")).ok());
  ASSERT_TRUE(AppendTo(*ring, AsBytes("two ")).ok());
  ASSERT_TRUE(ring->Checkpoint(4).ok());  // Generation 3, in the copy B.
  disk_.bytes()[part_.offset + kDiskBlock + offsetof(CheckpointBlock, place)] ^= std::byte{1};
  ring = Open();
  EXPECT_EQ(Visited(), "one two ");
  disk_.bytes()[part_.offset + offsetof(CheckpointBlock, place)] ^= std::byte{1};
  const auto refused = Ring::Open(disk_, part_, kRingIdentity, [](const Record&) { return Status(); });
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kCorruption);
  EXPECT_EQ(refused.status().message(),
            "the ring of shard 3 is damaged: it has no valid checkpoint (copy 1: wrong checksum; copy 2: wrong "
            "checksum)");
}

TEST_F(RingDamageTest, ErrorOfTheVisitEndsOpen) {
  auto ring = Open();
  ASSERT_TRUE(AppendTo(*ring, AsBytes("one ")).ok());
  ASSERT_TRUE(AppendTo(*ring, AsBytes("two ")).ok());
  int visits = 0;
  const auto failed = Ring::Open(disk_, part_, kRingIdentity, [&](const Record&) {
    ++visits;
    return Status(Code::kInternal, "the visitor has enough");
  });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().message(), "the visitor has enough");
  EXPECT_EQ(visits, 1);
}

TEST_F(RingDamageTest, AfterAFailureEachCallFailsAndNoneReachesTheDisk) {
  // In turn: the write of a record, its flush, the write of a checkpoint, its flush.
  for (const uint64_t failing : {0, 1, 2, 3}) {
    FakeDisk disk(32 * kDiskBlock, 512, failing);
    ASSERT_TRUE(Ring::Format(disk, part_, kRingIdentity).ok());
    auto ring = MustOpenRing(disk, part_);
    ASSERT_TRUE(AppendTo(*ring, AsBytes("one ")).ok());
    disk.FailAt(failing);
    Status status = AppendTo(*ring, AsBytes("two "));
    EXPECT_EQ(status.ok(), failing >= 2);
    if (status.ok()) status = ring->Checkpoint(4);
    ASSERT_EQ(status.code(), Code::kInternal);
    EXPECT_EQ(ring->held(), failing < 2 ? 4U : 8U);
    EXPECT_EQ(ring->checkpoint(), 0U);
    const uint64_t calls = disk.calls();
    const std::string first(status.message());
    for (const Status& later : {AppendTo(*ring, AsBytes("x")), ring->Checkpoint(4), ring->Checkpoint(0),
                                ring->BeginEpoch(ring->end()), ring->Flush(), ring->failure()}) {
      EXPECT_EQ(later.code(), Code::kInternal);
      EXPECT_EQ(later.message(), first);
    }
    EXPECT_EQ(disk.calls(), calls);
    EXPECT_EQ(ring->held(), failing < 2 ? 4U : 8U);
  }
}

// A disk whose reads fail.
class UnreadableDisk final : public Disk {
 public:
  UnreadableDisk(Disk& disk, uint64_t from) : disk_(disk), from_(from) {}
  Status Read(uint64_t offset, std::span<std::byte> to) override {
    if (offset + to.size() > from_) return {Code::kInternal, "a sector cannot be read"};
    return disk_.Read(offset, to);
  }
  Status Write(uint64_t offset, std::span<const std::byte> from) override { return disk_.Write(offset, from); }
  Status Flush() override { return disk_.Flush(); }
  [[nodiscard]] uint64_t size() const override { return disk_.size(); }

 private:
  Disk& disk_;
  const uint64_t from_;
};

TEST_F(RingDamageTest, RecordThatCannotBeReadIsNoEnd) {
  auto ring = Open();
  ASSERT_TRUE(AppendTo(*ring, AsBytes("one ")).ok());
  UnreadableDisk disk(disk_, part_.offset + 2 * kDiskBlock);
  const auto failed = Ring::Open(disk, part_, kRingIdentity, [](const Record&) { return Status(); });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().message(), "a sector cannot be read");
}

}  // namespace
}  // namespace erda::journal
