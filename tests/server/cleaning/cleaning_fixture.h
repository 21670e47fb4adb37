// The tests of cleaning share this fixture: a small store, with its cleaner and the shard's side of cleaning. Their
// steps and the requests come in turn.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "base/random.h"
#include "format/object.h"
#include "server/store.h"

namespace erda::server {

inline std::string ValueOf(uint64_t number, size_t size) {
  std::string value = std::to_string(number);
  Random random(number);
  while (value.size() < size) value += static_cast<char>(random.Between('a', 'z'));
  return value;
}

// A pool with this number of regions of four segments of 4 KiB, and an index of 2048 slots.
inline format::GeometryWish Wish(uint64_t regions, uint64_t region_size = 16384) {
  return {98304 + 36864 + regions * region_size, 1, region_size, 4096, 2048};
}

class CleaningTest : public testing::Test {
 protected:
  explicit CleaningTest(uint64_t regions = 12) { MakeStore(Wish(regions)); }

  void MakeStore(const format::GeometryWish& wish) {
    StoreOptions options;
    options.wish = wish;
    store_.emplace(options);
    model_.clear();
  }

  static std::string Key(uint64_t i) { return "key" + std::to_string(i); }
  // Puts another value under the key, and makes one step of cleaning.
  void Put(const std::string& key, size_t size = 200) {
    const std::string value = ValueOf(++puts_, size);
    ASSERT_EQ(store_->Put(key, value).code, Code::kOk) << key;
    model_[key] = value;
    store_->CleanStep();
  }
  // Puts other values under each of `keys` keys, `times` times on average.
  void Overwrite(uint64_t keys, uint64_t times) {
    for (uint64_t i = 0; i < keys * times && !HasFailure(); ++i) Put(Key(random_.Uniform(keys)));
  }
  // Puts until this number of regions has been cleaned.
  void Churn(uint64_t regions) {
    const uint64_t until = store_->counter(format::Counter::kCleanRegions) + regions;
    for (int i = 0; store_->counter(format::Counter::kCleanRegions) < until; ++i) {
      ASSERT_LT(i, 100'000);
      Put(Key(random_.Uniform(100)));
    }
  }
  void ExpectAll() {
    for (const auto& [key, value] : model_) ASSERT_EQ(store_->Get(key), value) << key;
    ASSERT_EQ(store_->Violation(), "");
  }

  // Returns the region of a place, as clients see it.
  [[nodiscard]] format::HeadSlot RegionOf(format::LogAddress address) const {
    return store_->Published(0, address.slot());
  }
  [[nodiscard]] std::byte* BytesAt(format::LogAddress address) {
    return store_->pool().view().bytes.data() + store_->geometry().RegionOffset(RegionOf(address).region()) +
           address.offset_in_slot();
  }
  void DamageValue(const std::string& key) {
    BytesAt(store_->WordOf(key).new_address())[format::ValueOffset(key.size()) + 5] ^= std::byte{1};
  }
  void DamageHeader(const std::string& key, size_t field) {
    BytesAt(store_->WordOf(key).new_address())[field] ^= std::byte{1};
  }

  std::optional<Store> store_;
  Random random_{1};
  uint64_t puts_ = 0;
  std::map<std::string, std::string> model_;
};

}  // namespace erda::server
