// A reader in another thread follows the growth of an index (index/read_only_index.h).
#include "index/read_only_index.h"

#include <gtest/gtest.h>

#include <unordered_set>

#include "index/fixture.h"

namespace erda::index {
namespace {

using format::IndexEntry;

class ReadOnlyIndexTest : public testing::Test {
 protected:
  static constexpr uint64_t kSlots = 1024;  // One block.
  static constexpr uint32_t kRun = 3;       // A region, which has the second block.

  void Fill(uint64_t keys) {
    for (uint64_t i = 0; i < keys; ++i) {
      const uint64_t key = source_.Next();
      ASSERT_TRUE(index_.Insert(key));
      keys_.insert(key);
    }
  }
  void Split() {
    ASSERT_TRUE(index_->Count(index_->size()));
    ASSERT_FALSE(index_->splitting().CanSplit());
    index_->shape().AddRun(kRun);
    ASSERT_TRUE(index_->splitting().CanSplit());
    index_->splitting().Split();
  }
  [[nodiscard]] uint64_t FoundKeys() const {
    uint64_t found = 0;
    for (const uint64_t key : keys_) found += reader_.Find(key, [](Slot, const IndexEntry&) { return true; }) ? 1 : 0;
    return found;
  }

  TestIndex index_{kSlots};
  KeySource source_{5};
  std::unordered_set<uint64_t> keys_;
  ReadOnlyIndex reader_{index_.nvm(), index_.geometry(), TestIndex::kShard, index_.published()};
};

TEST_F(ReadOnlyIndexTest, FindsNewEntriesOfKnownBlocksAtOnce) {
  Fill(500);
  EXPECT_EQ(reader_.size(), kSlots);
  EXPECT_EQ(FoundKeys(), 500U);
  EXPECT_TRUE(index_.Free(*keys_.begin()));
  EXPECT_EQ(FoundKeys(), 499U);
}

TEST_F(ReadOnlyIndexTest, FindsMovedEntriesOfANewBlockAfterRefresh) {
  Fill(500);
  EXPECT_FALSE(reader_.Refresh()) << "the index has not grown";
  Split();
  EXPECT_TRUE(index_.IsSound(keys_));
  uint64_t moved = 0;
  for (const uint64_t key : keys_) moved += index_->layout().BlockOf(key) == 1 ? 1 : 0;
  ASSERT_GT(moved, 0U);
  EXPECT_EQ(reader_.size(), kSlots);
  EXPECT_EQ(FoundKeys(), 500 - moved);
  EXPECT_TRUE(reader_.Refresh());
  EXPECT_EQ(reader_.size(), 2 * kSlots);
  EXPECT_EQ(FoundKeys(), 500U);
  EXPECT_FALSE(reader_.Refresh()) << "the index has not grown since";
}

}  // namespace
}  // namespace erda::index
