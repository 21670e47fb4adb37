#include "index/fixture.h"

namespace erda::index {

using format::EntryMeta;
using format::IndexEntry;

TestIndex::TestIndex(uint64_t slots) {
  const uint64_t pool_size = (uint64_t{1} << 20) + 2 * slots * sizeof(IndexEntry);
  auto geometry = format::ChooseGeometry(
      {.pool_size = pool_size, .shards = 2, .region_size = 16384, .segment_size = 4096, .index_entries = 2 * slots});
  EXPECT_TRUE(geometry.ok()) << geometry.status().ToString();
  geometry_ = *geometry;
  EXPECT_EQ(geometry_.index_slots, slots);
  auto pool = nvm::Pool::Open({.path = "dram:", .size = pool_size});
  EXPECT_TRUE(pool.ok()) << pool.status().ToString();
  pool_ = *std::move(pool);
  nvm_.emplace(*pool_);
  Reopen();
}

void TestIndex::Reopen() {
  const uint64_t used = index_ ? index_->census().used() : 0;
  index_ = std::make_unique<Index>(*nvm_, geometry_, kShard, published());
  EXPECT_TRUE(index_->shape().TakeUp({}).ok());
  index_->shape().MendReaches();
  index_->Open(used);
}

bool TestIndex::Insert(uint64_t key_hash, uint32_t address) {
  const auto slot = index_->free_slots().MakeRoom(key_hash);
  if (slot.ok()) Enter(*slot, key_hash, address);
  return slot.ok();
}

bool TestIndex::InsertFar(uint64_t key_hash, uint32_t address) {
  if (Insert(key_hash, address)) return true;
  const auto slot = index_->free_slots().MakeFarRoom(key_hash);
  if (slot) Enter(*slot, key_hash, address);
  return slot.has_value();
}

void TestIndex::Enter(Slot slot, uint64_t key_hash, uint32_t address) {
  index_->Describe(slot, key_hash, 64);
  nvm_->Fence();
  index_->Enter(slot, WordOf(address));
  nvm_->Fence();
}

std::optional<Slot> TestIndex::Find(uint64_t key_hash) const {
  return index_->Find(key_hash, [](Slot, const IndexEntry&) { return true; });
}

bool TestIndex::Free(uint64_t key_hash) {
  const auto slot = Find(key_hash);
  if (slot) index_->Free(*slot);
  return slot.has_value();
}

testing::AssertionResult TestIndex::IsSound(const std::unordered_set<uint64_t>& keys) const {
  std::unordered_set<uint32_t> tags;
  for (Slot slot = 0; slot < index_->size(); ++slot) {
    const IndexEntry entry = index_->At(slot);
    if (entry.word == 0) continue;
    if (!tags.insert(entry.entry_meta().tag()).second) {
      return testing::AssertionFailure() << "the entry in slot " << slot << " is there twice";
    }
  }
  if (tags.size() != index_->census().used() || tags.size() != keys.size()) {
    return testing::AssertionFailure() << tags.size() << " entries for " << keys.size() << " keys, and used() is "
                                       << index_->census().used();
  }
  for (const uint64_t key : keys) {
    const Slot home = index_->layout().HomeOf(key);
    const auto slot = Find(key);
    if (!slot) return testing::AssertionFailure() << "a key with home " << home << " is not found";
    if (!index_->layout().IsPlaceOf(key, *slot, index_->At(*slot).entry_meta().distance())) {
      return testing::AssertionFailure() << "slot " << *slot << " has distance "
                                         << index_->At(*slot).entry_meta().distance() << " from home " << home;
    }
  }
  return testing::AssertionSuccess();
}

uint64_t KeySource::Next() {
  uint64_t key = 0;
  do {
    key = random_.Next();
  } while (!tags_.insert(EntryMeta::TagOf(key)).second);
  return key;
}

}  // namespace erda::index
