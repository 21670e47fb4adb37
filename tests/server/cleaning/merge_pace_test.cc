#include "server/cleaning/merge_pace.h"

#include <gtest/gtest.h>

#include <string>

#include "server/store.h"

namespace erda::server {
namespace {

constexpr uint64_t kAtOnce = 64 << 10;  // the bytes that the cleaner may walk before puts append anything

class MergePaceTest : public testing::Test {
 protected:
  [[nodiscard]] uint64_t allowance() const { return queues_.allowance.load(); }

  Store store_;
  CleanQueues queues_;
  MergePace pace_{store_.versions().log(), queues_};
};

TEST_F(MergePaceTest, CleanerWalksFasterThanPutsAppend) {
  queues_.walked = 1000;
  pace_.Begin(16384, 4096);  // a gain of one byte for four walked ones
  pace_.Update(false);
  EXPECT_EQ(allowance(), 1000 + kAtOnce);
  const uint64_t before = store_.versions().log().tails().appended();
  for (int i = 0; i < 50; ++i) ASSERT_EQ(store_.Inline("key", std::string(300, 'v')).code, Code::kOk);
  const uint64_t appended = store_.versions().log().tails().appended() - before;
  ASSERT_GT(appended * 6, kAtOnce);
  pace_.Update(false);
  EXPECT_EQ(allowance(), 1000 + kAtOnce + appended * 6) << "four times, and half as much again";
}

TEST_F(MergePaceTest, LittleMoreDoesNotWakeTheCleaner) {
  pace_.Begin(16384, 4096);
  pace_.Update(false);
  const uint32_t rings = queues_.bell.rings();
  ASSERT_EQ(store_.Inline("key", "value").code, Code::kOk);
  pace_.Update(false);
  EXPECT_EQ(queues_.bell.rings(), rings);
  EXPECT_EQ(allowance(), kAtOnce);
}

TEST_F(MergePaceTest, HurryLiftsTheLimitUntilItIsOver) {
  pace_.Begin(16384, 4096);
  pace_.Update(true);
  EXPECT_EQ(allowance(), UINT64_MAX);
  const uint32_t rings = queues_.bell.rings();
  pace_.Update(true);
  EXPECT_EQ(queues_.bell.rings(), rings) << "the cleaner knows it already";
  pace_.Update(false);
  EXPECT_EQ(allowance(), kAtOnce);
}

}  // namespace
}  // namespace erda::server
