// Readers confirm that a key is absent, as clients do, while a writer displaces entries (I6).
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "index/fixture.h"
#include "tests/format/first_blocks.h"

namespace erda::index {
namespace {

using format::EntryMeta;
using format::kNeighbourhood;

constexpr uint64_t kSlots = 256;

// Reads the index as a client does, in words of 8 bytes.
class Reader {
 public:
  Reader(TestIndex& index, uint64_t seed)
      : geometry_(index.geometry()),
        pool_(index.pool().view().bytes),
        displacements_(index.displacements()),
        random_(seed) {
    std::iota(order_.begin(), order_.end(), Slot{0});
  }

  // The reader calls it between two pieces of some of its reads.
  std::function<void()> between_pieces = [] {};

  // Returns true if no slot of the neighbourhood has the key, between two equal, even readings of the counter. Reads
  // the slots in any order.
  bool ConfirmsAbsent(uint64_t key_hash) {
    random_.Shuffle(std::span<Slot>(order_));
    const uint64_t before = displacements();
    const bool seen = Sees(key_hash);
    return displacements() == before && before % 2 == 0 && !seen;
  }
  // Looks without the counter, and against the direction in which entries move.
  bool DoesNotSee(uint64_t key_hash) {
    std::iota(order_.rbegin(), order_.rend(), Slot{0});
    return !Sees(key_hash);
  }

  [[nodiscard]] uint64_t displacements() const { return Load(displacements_); }
  Random& random() { return random_; }

 private:
  // Acquires, since a channel executes its Reads in order.
  static uint64_t Load(uint64_t* word) { return std::atomic_ref<uint64_t>(*word).load(std::memory_order_acquire); }

  bool Sees(uint64_t key_hash) {
    const Slot home = format::FirstHome(geometry_, key_hash);
    const Slot pause = random_.Uniform(8 * kNeighbourhood);
    bool seen = false;
    for (const Slot distance : order_) {
      if (distance == pause) between_pieces();
      auto* slot = reinterpret_cast<uint64_t*>(&pool_[geometry_.FirstSlotOffset(TestIndex::kShard, home + distance)]);
      const uint64_t word = Load(slot);
      const EntryMeta meta(Load(slot + 1));
      if (word != 0 && meta.tag() == EntryMeta::TagOf(key_hash)) seen = true;
    }
    return seen;
  }

  const format::Geometry& geometry_;
  const std::span<std::byte> pool_;
  uint64_t* const displacements_;
  Random random_;
  std::array<Slot, kNeighbourhood> order_{};
};

// One writer frees a key and inserts another, again and again, and keeps the index nine tenths full. Readers look for
// the keys in the index.
class ReadersTest : public testing::Test {
 protected:
  static constexpr uint64_t kSeed = 17;

  void Churn(int operations) {
    for (int i = 0; i < operations; ++i) {
      // The writer announces a key after its insertion, and until it frees the key. 0: no key.
      std::atomic<uint64_t>& cell = cells_[keys_.random().Uniform(cells_.size())];
      const uint64_t old_key = cell.load(std::memory_order_relaxed);
      cell.store(0, std::memory_order_release);
      if (old_key != 0) {
        ASSERT_TRUE(index_.Free(old_key));
      }
      const uint64_t key = keys_.Next();
      if (index_.Insert(key)) cell.store(key, std::memory_order_release);
    }
  }

  // Looks for an announced key. Returns true if the reader missed the key although it was in the index all the time.
  bool MissesAKey(Reader& reader, bool (Reader::*look)(uint64_t)) {
    const std::atomic<uint64_t>& cell = cells_[reader.random().Uniform(cells_.size())];
    const uint64_t key = cell.load(std::memory_order_acquire);
    return key != 0 && (reader.*look)(key) && cell.load(std::memory_order_acquire) == key;
  }

  KeySource keys_{kSeed};
  TestIndex index_{kSlots};
  std::array<std::atomic<uint64_t>, kSlots * 9 / 10> cells_{};
};

// The writer works between two pieces of a read, in the same thread. So the numbers are the same in every run.
TEST_F(ReadersTest, OnlyTheCounterKeepsAReaderFromOvertakingAnEntryThatMoves) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Churn(5000);
  Reader reader(index_, kSeed);
  reader.between_pieces = [this] { Churn(3); };
  int with_counter = 0;
  int without_counter = 0;
  for (int i = 0; i < 100'000; ++i) {
    with_counter += MissesAKey(reader, &Reader::ConfirmsAbsent) ? 1 : 0;
    without_counter += MissesAKey(reader, &Reader::DoesNotSee) ? 1 : 0;
  }
  std::printf("keys missed with the counter: %d, without it: %d\n", with_counter, without_counter);
  EXPECT_EQ(with_counter, 0);
  EXPECT_GT(without_counter, 0);  // So the line above can fail.
}

TEST_F(ReadersTest, AKeyThatIsThereIsNeverConfirmedAbsent) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::atomic<bool> done = false;
  std::atomic<uint64_t> misses = 0;
  std::atomic<uint64_t> looks = 0;
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    threads.emplace_back([&, seed] {
      Reader reader(index_, seed);
      reader.between_pieces = [&reader] {  // Waits for an entry to move.
        const uint64_t counter = reader.displacements();
        for (int i = 0; i < 1000 && reader.displacements() < counter + 2; ++i) {
        }
      };
      for (; !done.load(std::memory_order_relaxed); ++looks)
        misses += MissesAKey(reader, &Reader::ConfirmsAbsent) ? 1 : 0;
    });
  }
  Churn(200'000);
  done = true;
  for (std::thread& thread : threads) thread.join();
  std::printf("%lu looks beside %lu displacements\n", looks.load(), *index_.displacements() / 2);
  EXPECT_EQ(misses, 0U);
  EXPECT_GT(*index_.displacements(), 20'000U);
}

TEST_F(ReadersTest, AKeyThatIsNotThereIsConfirmedAbsentOnceNothingMoves) {
  Churn(10'000);
  Reader reader(index_, kSeed);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(reader.ConfirmsAbsent(keys_.Next()));
  for (const auto& cell : cells_) EXPECT_FALSE(cell != 0 && reader.ConfirmsAbsent(cell));
  // While an entry is on its way, no key is confirmed absent.
  ++*index_.displacements();
  EXPECT_FALSE(reader.ConfirmsAbsent(keys_.Next()));
}

}  // namespace
}  // namespace erda::index
