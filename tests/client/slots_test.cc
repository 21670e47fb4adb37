// The slots of the heads (I10): a client reads them again before it trusts a place in the log.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/test_hash.h"
#include "client/engine_fixture.h"
#include "format/control_block.h"
#include "format/index_entry.h"
#include "tests/format/first_blocks.h"

namespace erda::client {
namespace {

class SlotsTest : public EngineTest {
 protected:
  // Puts an entry of the key into the Read of a neighbourhood.
  static void GiveEntry(const WorkRequest& read) {
    format::IndexEntry entry{};
    entry.word = format::EntryWord().Published(LogAddress::At(0, 4096)).Settled().raw();
    entry.meta = format::EntryMeta::Make(format::EntryMeta::TagOf(HashKey(kKey)), 0, 0, 4).raw();
    std::memset(read.local.data(), 0, read.local.size());
    std::memcpy(read.local.data(), &entry, sizeof(entry));
  }
};

TEST_F(SlotsTest, GetContinuesIfTheControlBlockTellsNothingNew) {
  ASSERT_TRUE(engine_->Get(kKey, [](const Result<std::string_view>&) {}).ok());
  const WorkRequest entry = fabric_->Take();
  ASSERT_EQ(entry.remote.offset, geometry_.FirstSlotOffset(0, format::FirstHome(geometry_, HashKey(kKey))));
  ASSERT_TRUE(engine_->connections().BeginReadControls().ok());
  TellSlots(1);
  engine_->Poll();
  GiveEntry(entry);
  fabric_->Complete(entry);
  engine_->Poll();
  EXPECT_EQ(fabric_->Take().remote.offset, geometry_.RegionOffset(0) + 4096) << "the version";
}

TEST_F(SlotsTest, GetReadsItsEntryAgainAfterASlotChange) {
  ASSERT_TRUE(engine_->Get(kKey, [](const Result<std::string_view>&) {}).ok());
  const WorkRequest entry = fabric_->Take();
  ASSERT_TRUE(engine_->connections().BeginReadControls().ok());
  TellSlots(2);
  engine_->Poll();
  GiveEntry(entry);
  fabric_->Complete(entry);
  engine_->Poll();
  EXPECT_EQ(fabric_->Take().remote.offset, entry.remote.offset) << "the entry";
}

// The version does not verify, and the entry is the same after it. That is damage only if the slot was the same, too.
class SlotHoldsTest : public SlotsTest {
 protected:
  void SetUp() override {
    SlotsTest::SetUp();
    const Status started =
        engine_->Get(kKey, [this](const Result<std::string_view>& value) { got_ = CodeName(value.status().code()); });
    ASSERT_TRUE(started.ok());
    ReadEntry();
  }
  void ReadEntry() {
    const WorkRequest entry = fabric_->Take();
    ASSERT_EQ(entry.remote.offset, geometry_.FirstSlotOffset(0, format::FirstHome(geometry_, HashKey(kKey))));
    GiveEntry(entry);
    fabric_->Complete(entry);
    engine_->Poll();
  }
  // Answers the Read of the version by zeroes. Then the client looks at the entry again.
  void ReadVersionInVain() {
    const WorkRequest version = fabric_->Take();
    ASSERT_EQ(version.remote.offset, geometry_.RegionOffset(0) + 4096);
    std::memset(version.local.data(), 0, version.local.size());
    fabric_->Complete(version);
    engine_->Poll();
    ReadEntry();
  }
  [[nodiscard]] bool ReadsControl() const {
    return !fabric_->posted.empty() && fabric_->posted.front().remote.region == format::kControlRegion;
  }

  std::string_view got_;
};

TEST_F(SlotHoldsTest, UnverifiedVersionIsDamageIfTheSlotIsTheSameAfterIt) {
  ReadVersionInVain();
  ASSERT_TRUE(ReadsControl());
  TellSlots(1);
  engine_->Poll();
  EXPECT_EQ(got_, CodeName(Code::kCorruption));
}

// In each round the entry leads to the same address, of another use.
TEST_F(SlotHoldsTest, GetStartsAgainEachTimeTheSlotHasChanged) {
  for (uint32_t generation = 2; generation < 6; ++generation) {
    ReadVersionInVain();
    ASSERT_TRUE(ReadsControl());
    TellSlots(generation);
    engine_->Poll();
    ReadEntry();
  }
  ReadVersionInVain();
  TellSlots(5);
  engine_->Poll();
  EXPECT_EQ(got_, CodeName(Code::kCorruption));
}

TEST_F(SlotHoldsTest, ControlBlockRequestedBeforeTheVersionDoesNotCount) {
  const WorkRequest version = fabric_->Take();
  fabric_->Complete(version);  // Its bytes do not matter.
  ASSERT_TRUE(engine_->connections().BeginReadControls().ok());
  engine_->Poll();
  const WorkRequest asked_behind = fabric_->Take();
  ASSERT_EQ(asked_behind.remote.region, format::kControlRegion);
  ReadEntry();
  EXPECT_TRUE(fabric_->posted.empty()) << "it waits for that one";
  fabric_->posted.push_front(asked_behind);
  TellSlots(2);
  engine_->Poll();
  // Another use: the get starts again, with a control block on its way that was asked for before the version.
  ASSERT_TRUE(engine_->connections().BeginReadControls().ok());
  const WorkRequest entry = fabric_->Take();
  const WorkRequest asked_before = fabric_->Take();
  ASSERT_EQ(asked_before.remote.region, format::kControlRegion);
  GiveEntry(entry);
  fabric_->Complete(entry);
  engine_->Poll();
  ReadVersionInVain();
  fabric_->posted.push_front(asked_before);
  TellSlots(2);
  engine_->Poll();
  EXPECT_EQ(got_, "");
  ASSERT_TRUE(ReadsControl());
  TellSlots(2);
  engine_->Poll();
  EXPECT_EQ(got_, CodeName(Code::kCorruption));
}

// In flight together with the version, it may have been read before it.
TEST_F(SlotHoldsTest, ControlBlockRequestedTogetherWithTheVersionDoesNotCount) {
  const WorkRequest version = fabric_->Take();
  ASSERT_TRUE(engine_->connections().BeginReadControls().ok());
  ASSERT_TRUE(ReadsControl());
  std::memset(version.local.data(), 0, version.local.size());
  fabric_->Complete(version);
  TellSlots(1);
  engine_->Poll();
  ReadEntry();
  EXPECT_EQ(got_, "");
  ASSERT_TRUE(ReadsControl()) << "another one, behind the version";
  TellSlots(1);
  engine_->Poll();
  EXPECT_EQ(got_, CodeName(Code::kCorruption));
}

TEST_F(SlotsTest, PutWritesOnlyAfterItsSlotHasTheReservedGeneration) {
  Put(kLargeValue);
  const WorkRequest reserve = TakeReserve();
  fabric_->Complete(reserve);
  // One that is on its way may be older than the reservation, and is not the last word.
  ASSERT_TRUE(engine_->connections().BeginReadControls().ok());
  Reserve(reserve, kLargeValue, 2);
  engine_->Poll();
  TellSlots(1);
  engine_->Poll();
  TellSlots(2);
  engine_->Poll();
  EXPECT_EQ(fabric_->Take().kind, OpKind::kWrite);
  EXPECT_EQ(end_, "");
}

}  // namespace
}  // namespace erda::client
