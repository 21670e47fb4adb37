// A bit of an index entry flips while no server runs. The next server serves requests before it has counted all slots.
// (docs/format.md, "Flipped bits of an entry")
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "base/test_hash.h"
#include "format/object.h"
#include "server/store.h"

namespace erda::server {
namespace {

using format::Counter;
using format::EntryWord;
using format::IndexEntry;

// An index of one block of 128 slots, in regions with two blocks. So splits are due soon.
StoreOptions SmallIndex() {
  StoreOptions options;
  options.wish = {98304 + 120 * 4096, 1, 4096, 4096, 128};
  return options;
}

class RestTest : public testing::Test {
 protected:
  static std::string Key(uint64_t i) { return "key" + std::to_string(i); }
  void Make(uint64_t keys) {
    store_.emplace(SmallIndex());
    model_.clear();
    for (uint64_t i = 0; i < keys; ++i) Put(Key(i), "first");
  }
  void Put(const std::string& key, const std::string& value) {
    ASSERT_EQ(store_->Inline(key, value).code, Code::kOk) << key;
    model_[key] = value;
  }
  void Delete(const std::string& key) {
    ASSERT_EQ(store_->Delete(key), model_.erase(key) > 0 ? Code::kOk : Code::kNotFound) << key;
  }
  [[nodiscard]] index::Slot SlotOf(const std::string& key) {
    return *store_->versions().index().Find(HashKey(key), [&](index::Slot, const IndexEntry& entry) {
      return store_->versions()
                 .log()
                 .InspectHeader(store_->versions().log().HeadOf(entry), entry.entry_word().new_address())
                 .key == key;
    });
  }
  // Stops the server, flips the bit of the slot, and starts the next server.
  void FlipAtRest(index::Slot slot, uint64_t bit) {
    store_->Close();
    const uint64_t at = store_->geometry().FirstSlotOffset(0, slot) + bit / 8;
    store_->pool().view().bytes[at] ^= std::byte{1} << (bit % 8);
    store_->Open();
    told_.clear();
    store_->cleaning().on_damage = [this](std::string_view key) { told_.emplace_back(key); };
  }
  void EndCheck() {
    while (!store_->versions().growth().CountKeys(64)) {
    }
    store_->Clean();
    ASSERT_FALSE(store_->versions().index().mender().rest_is_due());
  }
  void ExpectModel() {
    for (const auto& [key, value] : model_) ASSERT_EQ(store_->Get(key), value) << key;
    for (uint64_t i = 0; i < 200; ++i) {
      if (model_.contains(Key(i))) continue;
      ASSERT_EQ(store_->Get(Key(i)), kAbsent) << Key(i);
    }
    ASSERT_EQ(store_->Keys(), model_.size());
    ASSERT_EQ(store_->Violation(), "");
  }
  // Bits of an entry that decide what a get of its key returns.
  static bool ShowsAnotherVersion(const EntryWord& word, uint64_t bit) {
    const uint64_t new_address = word.new_tag() ? 32 : 1;
    return bit == 63 || (bit >= new_address && bit < new_address + 31);
  }

  std::optional<Store> store_;
  std::map<std::string, std::string> model_;
  std::vector<std::string> told_;
};

// A flipped tag must not hide the key from its requests: the key would get a second entry.
TEST_F(RestTest, RequestsOfTheKeyFindTheFlippedEntry) {
  for (uint64_t bit = 0; bit < 128; ++bit) {
    Make(40);
    Put("key3", "second");
    if (ShowsAnotherVersion(store_->WordOf("key3"), bit)) continue;
    for (int kind = 0; kind < 4; ++kind) {
      SCOPED_TRACE("bit " + std::to_string(bit) + ", kind " + std::to_string(kind));
      FlipAtRest(SlotOf("key3"), bit);
      if (kind == 0) {
        Put("key3", "third");
        Delete("key3");
      } else if (kind == 1) {
        Delete("key3");
      } else if (kind == 2) {
        (void)store_->Reserve("key3", "never arrives", 1);
      } else {
        Put("key3", "third");
      }
      EndCheck();
      if (kind == 2) store_->EndSession(1);
      ExpectModel();
      store_->CloseAndReopen();
      ExpectModel();
      Put("key3", "first");
      Put("key3", "second");
    }
  }
}

// The client's server dies before the reserved value arrives.
TEST_F(RestTest, ACrashAfterAReservationKeepsTheValueBefore) {
  for (uint64_t bit = 96; bit < 128; ++bit) {
    SCOPED_TRACE("bit " + std::to_string(bit));
    Make(40);
    FlipAtRest(SlotOf("key3"), bit);
    (void)store_->Reserve("key3", "never arrives", 1);
    EndCheck();
    store_->Recover();
    ExpectModel();
  }
}

// The tags of these keys differ in one bit, and each is the first object in its head. So both entries have the same
// word. No bit flips here.
TEST_F(RestTest, EntryOfAnotherKeyWithANearTagIsNotTouched) {
  const std::string a = "k287656";
  const std::string b = "k118012";
  for (int kind = 0; kind < 6; ++kind) {
    SCOPED_TRACE(kind);
    Make(0);
    if (kind == 5) Put(b, "value of b");
    Put(a, "old value of a");
    if (kind != 5) {
      Put(b, "value of b");
      ASSERT_EQ(store_->WordOf(a), store_->WordOf(b));
    }
    Delete(a);
    store_->CloseAndReopen();
    ASSERT_TRUE(store_->versions().index().mender().rest_is_due());
    if (kind == 0 || kind == 5) Put(a, "new");
    if (kind == 1) Delete(a);
    if (kind == 2) {
      (void)store_->Reserve(a, "never arrives", 1);
      store_->EndSession(1);
    }
    if (kind == 3) {
      ASSERT_TRUE(store_->Finish(store_->Reserve(a, "reserved", 1)));
      model_[a] = "reserved";
    }
    if (kind == 4) {
      Put(a, "new");
      Put(a, "newer");
      Delete(a);
    }
    EndCheck();
    EXPECT_EQ(store_->versions().index().mender().flips_undone(), 0U);
    ExpectModel();
  }
}

// A put that overwrites the size hint would keep a flipped distance, and the entry would move out of its window later.
TEST_F(RestTest, DistanceIsRightAfterAPutOfAnotherSize) {
  for (uint64_t bit = 80; bit < 88; ++bit) {
    for (uint64_t i = 0; i < 60; i += 3) {
      SCOPED_TRACE("bit " + std::to_string(bit) + ", " + Key(i));
      Make(60);
      FlipAtRest(SlotOf(Key(i)), bit);
      Put(Key(i), std::string(100, 'x'));
      EndCheck();
      EXPECT_TRUE(told_.empty());
      for (uint64_t other = 60; other < 110; ++other) Put(Key(other), "first");
      ExpectModel();
    }
  }
}

// Until the check, a flip looks like damage to the scrubber.
TEST_F(RestTest, ScrubberReportsNothingBeforeTheCheck) {
  for (uint64_t bit = 0; bit < 128; ++bit) {
    SCOPED_TRACE("bit " + std::to_string(bit));
    Make(20);
    FlipAtRest(SlotOf("key3"), bit);
    for (int i = 0; i < 20; ++i) {
      store_->cleaner().Scrub(1 << 20);
      (void)store_->cleaning().Step();
    }
    EndCheck();
    EXPECT_TRUE(told_.empty());
    EXPECT_EQ(store_->versions().index().mender().flips_undone(), 1U);
    ExpectModel();
  }
}

// A put that meets a flipped address or tag waits for the check, so a reservation cannot take the value with it.
TEST_F(RestTest, ReservationThatMeetsAFlippedAddressLosesNothing) {
  for (uint64_t bit = 0; bit < 128; ++bit) {
    if (bit == 63) continue;  // newtag: the reservation goes back to the version before (docs/format.md)
    SCOPED_TRACE("bit " + std::to_string(bit));
    Make(40);
    Put("key3", "second");
    FlipAtRest(SlotOf("key3"), bit);
    (void)store_->Reserve("key3", std::string(100, 'x'), 1);
    store_->EndSession(1);
    EndCheck();
    ExpectModel();
  }
}

// A client may have found the old version by the flipped entry before the check, and remember its location (I12).
TEST_F(RestTest, VersionThatTheFlippedEntryNamedIsLeft) {
  Make(4);
  Put("key3", "second");
  const auto& log = store_->versions().log();
  const uint64_t old = log.OffsetOf(store_->geometry().HeadOf(HashKey("key3")), store_->WordOf("key3").old_address());
  const auto header = [&] { return LoadAs<format::ObjectHeader>(store_->pool().bytes().subspan(old)); };
  store_->pool().view().bytes[old + offsetof(format::ObjectHeader, flags)] &=
      ~std::byte{format::ObjectHeader::kLeft};  // A power cut after the stop may have taken the mark.
  ASSERT_FALSE(header().left());
  FlipAtRest(SlotOf("key3"), 63);
  ASSERT_EQ(store_->Get("key3"), "first");
  EndCheck();
  ExpectModel();
  EXPECT_TRUE(header().left());
}

TEST_F(RestTest, NoBlockIsSplitBeforeTheCheck) {
  for (uint64_t bit = 0; bit < 128; ++bit) {
    SCOPED_TRACE("bit " + std::to_string(bit));
    Make(100);
    FlipAtRest(SlotOf("key3"), bit);
    for (int i = 0; i < 200; ++i) store_->versions().growth().Grow(1);
    EndCheck();
    for (int i = 0; i < 20; ++i) store_->versions().growth().Grow(1);
    EXPECT_GT(store_->versions().index().layout().blocks(), 1U);
    EXPECT_EQ(store_->versions().index().mender().flips_undone(), 1U);
    EXPECT_TRUE(told_.empty());
    ExpectModel();
  }
}

// A put that finds no free slot near its home makes entries move, or splits a block.
TEST_F(RestTest, NoEntryMovesBeforeTheCheck) {
  for (uint64_t bit = 0; bit < 128; ++bit) {
    SCOPED_TRACE("bit " + std::to_string(bit));
    Make(60);
    const auto slot = SlotOf("key3");
    FlipAtRest(slot, bit);
    for (uint64_t i = 60; i < 200; ++i) Put(Key(i), "first");
    EndCheck();
    EXPECT_TRUE(told_.empty());
    ExpectModel();
  }
}

TEST_F(RestTest, NothingExpiresBeforeTheCheck) {
  Make(10);
  store_->PutFor(100);
  ASSERT_EQ(store_->Inline("key3", "expires").code, Code::kOk);
  store_->PutFor(0);
  Put("key3", "stays");
  const auto old = store_->WordOf("key3").old_address();
  store_->PassTime(1000);
  FlipAtRest(SlotOf("key3"), 63);
  EXPECT_FALSE(store_->versions().removing().Expire(store_->versions().PublishPuts(), HashKey("key3"),
                                                    store_->geometry().HeadOf(HashKey("key3")), old));
  EndCheck();
  EXPECT_EQ(store_->counter(Counter::kExpired), 0U);
  ExpectModel();
}

// Requests of all kinds come while the server counts. Those of the flipped key come only if the flip hides no version.
TEST_F(RestTest, NothingIsLostOrComesBackWhileTheServerCounts) {
  uint64_t undone = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Make(random.Between(20, 110));
    for (int i = 0; i < 30; ++i) Put(Key(random.Uniform(110)), "second" + std::to_string(i));
    for (int i = 0; i < 10; ++i) Delete(Key(random.Uniform(110)));
    EndCheck();
    auto flipped = model_.begin();
    std::advance(flipped, random.Uniform(model_.size()));
    const std::string flipped_key = flipped->first;
    const uint64_t bit = random.Uniform(128);
    const bool hides_version = ShowsAnotherVersion(store_->WordOf(flipped_key), bit);
    FlipAtRest(SlotOf(flipped_key), bit);
    for (uint64_t i = random.Uniform(120); i > 0; --i) {
      const std::string key = random.Chance(0.2) ? flipped_key : Key(random.Uniform(180));
      if (key == flipped_key && hides_version) continue;
      const uint64_t kind = random.Uniform(10);
      if (kind < 5) {
        Put(key, "third" + std::to_string(i));
      } else if (kind < 7) {
        Delete(key);
      } else if (kind == 7) {
        (void)store_->Reserve(key, "never arrives", 1);
        store_->EndSession(1);
      } else if (kind == 8) {
        const Reserved reserved = store_->Reserve(key, "reserved", 2);
        ASSERT_TRUE(store_->Finish(reserved));
        model_[key] = "reserved";
      } else {
        store_->versions().growth().Grow(1);
        (void)store_->versions().growth().CountKeys(random.Uniform(64));
        (void)store_->CleanStep();
      }
      if (key == flipped_key) continue;
      ASSERT_EQ(store_->Get(key), model_.contains(key) ? model_[key] : std::string(kAbsent));
    }
    EndCheck();
    undone += store_->versions().index().mender().flips_undone();
    ExpectModel();
    store_->CloseAndReopen();
    ExpectModel();
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  EXPECT_GT(undone, 300U);
}

}  // namespace
}  // namespace erda::server
