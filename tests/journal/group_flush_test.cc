#include "journal/group_flush.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace erda::journal {
namespace {

TEST(GroupFlushTest, EachCallInTurnFlushes) {
  GroupFlush group;
  int flushes = 0;
  for (int i = 1; i <= 3; ++i) {
    EXPECT_TRUE(group.Flush([&] { return ++flushes, Status(); }).ok());
    EXPECT_EQ(flushes, i);
  }
}

TEST(GroupFlushTest, FirstFailureIsToldForEver) {
  GroupFlush group;
  EXPECT_EQ(group.Flush([] { return Status(Code::kInternal, "first"); }).message(), "first");
  int flushes = 0;
  EXPECT_EQ(group.Flush([&] { return ++flushes, Status(); }).message(), "first");
  EXPECT_EQ(group.Fail({Code::kInternal, "second"}).message(), "first");
  EXPECT_EQ(group.failure().message(), "first");
  EXPECT_EQ(flushes, 0);
}

TEST(GroupFlushTest, FailureOfAWriteEndsTheFlushThatRuns) {
  GroupFlush group;
  const Status status = group.Flush([&] {
    (void)group.Fail({Code::kInternal, "a write of another thread"});
    return Status();
  });
  EXPECT_EQ(status.message(), "a write of another thread");
  GroupFlush both;
  const Status first = both.Flush([&] {
    (void)both.Fail({Code::kInternal, "a write"});
    return Status(Code::kInternal, "a flush");
  });
  EXPECT_EQ(first.message(), "a write");
}

// Each thread changes its word and flushes. A flush copies all words, as a disk makes all writes durable that came
// before. Then the thread's change must be in the copy.
TEST(GroupFlushTest, FlushCoversAllThatCameBeforeTheCall) {
  constexpr int kThreads = 4;
  constexpr uint64_t kRounds = 500;
  GroupFlush group;
  std::vector<std::atomic<uint64_t>> written(kThreads);
  std::vector<std::atomic<uint64_t>> durable(kThreads);
  std::atomic<int> running{0};
  std::atomic<uint64_t> flushes{0};
  std::atomic<bool> covered{true};
  std::atomic<bool> alone{true};
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (uint64_t round = 1; round <= kRounds; ++round) {
          written[thread] = round;
          const Status status = group.Flush([&] {
            if (++running != 1) alone = false;
            ++flushes;
            for (int i = 0; i < kThreads; ++i) {
              durable[i] = written[i].load();
              std::this_thread::yield();
            }
            --running;
            return Status();
          });
          if (!status.ok() || durable[thread] < round) covered = false;
        }
      });
    }
  }
  EXPECT_TRUE(covered);
  EXPECT_TRUE(alone);
  EXPECT_GE(flushes, kRounds);
  EXPECT_LE(flushes, kThreads * kRounds);
}

// The kernel tells one of them only.
TEST(GroupFlushTest, NoThreadHearsOkAfterAFailure) {
  constexpr int kThreads = 4;
  for (int round = 0; round < 50; ++round) {
    GroupFlush group;
    std::atomic<int> flushes{0};
    std::atomic<bool> failed{false};
    std::atomic<bool> wrong{false};
    {
      std::vector<std::jthread> threads;
      for (int thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&] {
          for (int i = 0; i < 20; ++i) {
            const bool before = failed;
            const Status status = group.Flush([&] {
              if (++flushes != 10) return Status();
              failed = true;
              return Status(Code::kInternal, "a flush");
            });
            if (before && status.ok()) wrong = true;
          }
        });
      }
    }
    EXPECT_FALSE(wrong);
    EXPECT_EQ(flushes, 10);
  }
}

}  // namespace
}  // namespace erda::journal
