// An observer hears of each change of an entry, and so of the addresses that entries name.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <type_traits>
#include <vector>

#include "index/fixture.h"

namespace erda::index {
namespace {

using format::EntryWord;
using format::IndexEntry;
using format::LogAddress;

// Only an index begins and ends a batch. Callers can neither keep entries unsettled nor settle them before the fence.
template <class T>
concept Settles = requires(T& publishing) {
  publishing.FenceAndSettle();
};
static_assert(!Settles<Publishing> && !std::is_copy_constructible_v<Publishing>);
static_assert(!std::is_constructible_v<Publishing, nvm::Writer&, Slots&, Census&, EntryNews&>);

// Only TellPublished makes the proof that all is told.
static_assert(!std::is_default_constructible_v<AllTold> && !std::is_aggregate_v<AllTold>);
static_assert(!std::is_copy_constructible_v<AllTold> && !std::is_copy_assignable_v<AllTold>);

// The number of entries that name each address of a head.
using Names = std::map<std::pair<uint32_t, uint32_t>, int>;

void AddNames(uint32_t head, EntryWord word, int change, Names* names) {
  for (const LogAddress address : {word.new_address(), word.needed_old()}) {
    if (address.none()) continue;
    const auto it = names->emplace(std::pair(head, address.raw()), 0).first;
    it->second += change;
    if (it->second == 0) names->erase(it);
  }
}

class Told final : public EntryObserver {
 public:
  struct Change {
    uint32_t head = 0;
    EntryWord before;
    EntryWord after;
    bool operator==(const Change&) const = default;
  };
  void OnEntryChanged(uint32_t head, EntryWord before, EntryWord after) override {
    changes.push_back({head, before, after});
    AddNames(head, before, -1, &names);
    AddNames(head, after, 1, &names);
  }
  void OnEntryStored(uint32_t head, const IndexEntry& before, EntryWord after) override {
    stored.push_back({head, before.entry_word(), after});
  }
  void OnValueLeft(uint64_t offset) override {
    left.push_back(offset);
    if (on_left) on_left();
  }
  void OnValueReplaced(const EntryChange& change) override {
    replaced.push_back(change.left_bytes);
    OnEntryChanged(change.head, change.before, change.after.Settled());
  }
  std::vector<Change> changes;
  std::vector<Change> stored;  // Also of entries that are not counted yet.
  std::function<void()> on_left;
  std::vector<uint64_t> left;
  std::vector<uint32_t> replaced;
  Names names;
};

class ObserverTest : public testing::Test {
 protected:
  void Open(std::optional<uint64_t> used) {
    told_.emplace();
    observed_ =
        std::make_unique<Index>(index_->nvm(), index_->geometry(), TestIndex::kShard, index_->published(), &*told_);
    observed_->Open(used);
  }
  [[nodiscard]] bool Insert(uint64_t key, EntryWord word) {
    const auto slot = observed_->free_slots().MakeRoom(key);
    if (!slot.ok()) return false;
    observed_->Describe(*slot, key, 64);
    observed_->Enter(*slot, word);
    return true;
  }
  [[nodiscard]] std::optional<Slot> Find(uint64_t key) const {
    return observed_->Find(key, [](Slot, const IndexEntry&) { return true; });
  }
  void Publish(Slot slot, const EntryChange& change) {
    observed_->Publish([&](Publishing& publishing) { publishing.Store(slot, change); });
  }
  // Opens an index whose slots are counted, with one entry. The key's head is 1 of 2. Returns the entry's slot.
  Slot OpenWith(EntryWord word) {
    const uint64_t key = 0xb0000077;
    Open(0);
    EXPECT_TRUE(observed_->Count(observed_->size()));
    EXPECT_TRUE(Insert(key, word));
    return Find(key).value();
  }
  // Returns the names in all slots as they are now.
  [[nodiscard]] Names FreshCount() const {
    Names names;
    for (Slot slot = 0; slot < observed_->size(); ++slot) {
      const IndexEntry entry = observed_->At(slot);
      if (entry.word != 0) AddNames(index_->geometry().HeadOf(entry.entry_meta().tag()), entry.entry_word(), 1, &names);
    }
    return names;
  }

  std::unique_ptr<TestIndex> index_ = std::make_unique<TestIndex>(256);
  std::optional<Told> told_;
  std::unique_ptr<Index> observed_;
};

TEST_F(ObserverTest, HearsOfEachChangeOnce) {
  const EntryWord first = WordOf(5);
  const EntryWord second = first.Published(LogAddress(6));
  const Slot slot = OpenWith(first);
  observed_->StoreWord(slot, second);
  observed_->StoreWordLazily(slot, second.Settled());
  observed_->StoreSizeHint(slot, 1000);
  observed_->Free(slot);
  const std::vector<Told::Change> expected = {
      {1, EntryWord(), first}, {1, first, second}, {1, second, second.Settled()}, {1, second.Settled(), EntryWord()}};
  EXPECT_EQ(told_->changes, expected);
  EXPECT_EQ(told_->stored, expected);
}

TEST_F(ObserverTest, HearsOfAPublishedAndSettledChangeOnceAndLater) {
  const EntryWord first = WordOf(5).Settled();
  const Slot slot = OpenWith(first);
  const EntryChange change{1, first, first.Published(LogAddress(6))};
  const EntryWord second = change.after.Settled();
  observed_->Publish([&](Publishing& publishing) {
    publishing.Store(slot, change);
    EXPECT_EQ(observed_->WordAt(slot), change.after) << "not settled before the fence";
  });
  EXPECT_EQ(observed_->WordAt(slot), second);
  const std::vector<Told::Change> stored = {{1, EntryWord(), first}, {1, first, change.after}};
  EXPECT_EQ(told_->stored, stored) << "before each store, except for the one that settles";
  std::vector<Told::Change> changes = {{1, EntryWord(), first}};
  EXPECT_EQ(told_->changes, changes);
  (void)observed_->TellPublished();
  (void)observed_->TellPublished();
  changes.push_back({1, first, second});
  EXPECT_EQ(told_->changes, changes);
  // The observer hears of a later change of the entry after that.
  const EntryChange next{1, second, second.Published(LogAddress(7))};
  Publish(slot, next);
  observed_->Free(slot);
  changes.push_back({1, second, next.after.Settled()});
  changes.push_back({1, next.after.Settled(), EntryWord()});
  EXPECT_EQ(told_->changes, changes);
  EXPECT_TRUE(told_->names.empty());
}

TEST_F(ObserverTest, HearsOfAPublishedChangeOfKnownObjectsByThese) {
  const EntryWord first = WordOf(5).Settled();
  const Slot slot = OpenWith(first);
  const EntryChange change{1, first, first.Published(LogAddress(6)), 4096, 128, 256};
  const size_t stored = told_->stored.size();
  told_->on_left = [&] { EXPECT_EQ(observed_->WordAt(slot), first) << "(I12) the mark comes before the store"; };
  observed_->Publish([&](Publishing& publishing) {
    publishing.Store(slot, change);
    EXPECT_EQ(told_->left, std::vector<uint64_t>{4096});
  });
  EXPECT_EQ(told_->left.size(), 1U);
  EXPECT_EQ(told_->stored.size(), stored);
  EXPECT_TRUE(told_->replaced.empty()) << "not before TellPublished";
  EXPECT_TRUE(observed_->has_untold());
  (void)observed_->TellPublished();
  EXPECT_FALSE(observed_->has_untold());
  EXPECT_EQ(told_->replaced, std::vector<uint32_t>{128});
  EXPECT_EQ(told_->changes.back(), (Told::Change{1, first, change.after.Settled()}));
  EXPECT_TRUE(observed_->mender().Fits(slot));
}

TEST_F(ObserverTest, HearsNothingOfAnEntryThatMoves) {
  Open(0);
  ASSERT_TRUE(observed_->Count(observed_->size()));
  KeySource keys(1);
  uint64_t inserted = 0;
  while (*index_->displacements() == 0 && Insert(keys.Next(), WordOf(static_cast<uint32_t>(inserted + 1)))) {
    ++inserted;
  }
  ASSERT_GT(*index_->displacements(), 0U);
  EXPECT_EQ(told_->changes.size(), inserted);
  EXPECT_EQ(told_->names, FreshCount());
}

TEST_F(ObserverTest, KnowsCountedEntriesAloneAndHearsOfEveryStore) {
  Open(0);
  const uint64_t key = 0xb0000077;  // Its head is 1 of 2.
  ASSERT_TRUE(Insert(key, WordOf(5)));
  const Slot slot = *Find(key);
  EXPECT_FALSE(observed_->Count(slot));
  observed_->StoreWord(slot, WordOf(6));
  EXPECT_TRUE(told_->changes.empty());
  EXPECT_EQ(told_->stored, (std::vector<Told::Change>{{1, EntryWord(), WordOf(5)}, {1, WordOf(5), WordOf(6)}}));
  observed_->Count(1);
  EXPECT_EQ(told_->changes, (std::vector<Told::Change>{{1, EntryWord(), WordOf(6)}}));
  EXPECT_TRUE(observed_->Count(observed_->size()));
  EXPECT_EQ(told_->changes.size(), 1U);
}

// Keys come, change, move and go while the index is counted. The number of used slots is known, or not.
TEST_F(ObserverTest, CountingInStepsGivesTheSameAsAFreshCount) {
  uint64_t moves_while_counting = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    KeySource keys(seed);
    Random& random = keys.random();
    index_ = std::make_unique<TestIndex>(256);
    Open(0);
    std::vector<uint64_t> there;
    const uint64_t fill = 150 + random.Uniform(100);
    uint32_t address = 0;
    const auto change = [&] {
      const uint64_t dice = random.Uniform(10);
      if (dice < 4 || there.empty()) {
        const uint64_t key = keys.Next();
        if (!Insert(key, EntryWord().Published(LogAddress(++address)))) {
          return;
        }
        there.push_back(key);
        return;
      }
      uint64_t& key = there[random.Uniform(there.size())];
      const Slot slot = *Find(key);
      const EntryWord word = observed_->WordAt(slot);
      if (dice < 5) {
        observed_->StoreWord(slot, word.Published(LogAddress(++address)));
      } else if (dice < 6) {
        const EntryChange both{index_->geometry().HeadOf(key), word, word.Published(LogAddress(++address))};
        Publish(slot, both);
      } else if (dice < 8) {
        observed_->StoreWordLazily(slot, word.Settled());
      } else {
        observed_->Free(slot);
        std::swap(key, there.back());
        there.pop_back();
      }
    };
    while (there.size() < fill && address < 1000) change();

    Open(random.Chance(0.5) ? std::optional<uint64_t>(there.size()) : std::nullopt);
    const uint64_t before = *index_->displacements();
    while (!observed_->Count(random.Uniform(20))) change();
    moves_while_counting += (*index_->displacements() - before) / 2;
    (void)observed_->TellPublished();
    EXPECT_EQ(told_->names, FreshCount());
    EXPECT_EQ(observed_->census().used(), there.size());
    for (int i = 0; i < 50; ++i) change();
    (void)observed_->TellPublished();
    EXPECT_EQ(told_->names, FreshCount());
    EXPECT_EQ(observed_->census().used(), there.size());
  }
  EXPECT_GT(moves_while_counting, 100U);
}

// The index tells in the order of the stores. Otherwise the observer would take addresses away before it has added
// them.
TEST_F(ObserverTest, HearsOfAPublishedChangeBeforeItsEntryLeavesTheCountedSlots) {
  Open(0);
  KeySource keys(1);
  const auto key_at = [&](Slot home) {
    uint64_t key = keys.Next();
    while (observed_->layout().HomeOf(key) != home) key = keys.Next();
    return key;
  };
  ASSERT_TRUE(Insert(key_at(0), WordOf(1)));
  const uint64_t moved = key_at(1);
  ASSERT_TRUE(Insert(moved, WordOf(2)));
  for (uint32_t address = 3; address <= format::kNeighbourhood; ++address) {
    ASSERT_TRUE(Insert(key_at(0), WordOf(address)));
  }
  ASSERT_FALSE(observed_->Count(format::kNeighbourhood));
  const uint32_t head = index_->geometry().HeadOf(moved);
  const EntryChange change{head, WordOf(2), WordOf(2).Published(LogAddress(100))};
  Publish(1, change);
  told_->changes.clear();
  ASSERT_TRUE(Insert(key_at(0), WordOf(101)));
  ASSERT_EQ(*Find(moved), Slot{format::kNeighbourhood}) << "a slot that is not counted";
  const EntryWord settled = change.after.Settled();
  ASSERT_GE(told_->changes.size(), 2U);
  EXPECT_EQ(told_->changes[0], (Told::Change{head, WordOf(2), settled}));
  EXPECT_EQ(told_->changes[1], (Told::Change{head, settled, EntryWord()}));
}

}  // namespace
}  // namespace erda::index
