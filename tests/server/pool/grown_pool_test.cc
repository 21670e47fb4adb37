// Grown pools, with more regions than a head has slots in its first layer.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/random.h"
#include "server/machine.h"
#include "server/whole_pool.h"

namespace erda::server {
namespace {

class GrownPoolTest : public testing::Test {
 protected:
  // Each region has one segment with room for one value: first 38 regions, then 358 in three layers.
  static StoreOptions Options() {
    StoreOptions options;
    options.wish = {256 << 10, 1, 4096, 4096, 1024};
    options.grown_to = 3 << 19;
    return options;
  }
  static std::string Key(int i) { return "key" + std::to_string(i); }
  static std::string Value(int i, char kind = 'v') {
    return std::to_string(i) + std::string(static_cast<size_t>(2000 + i % 50), kind);
  }
  static void Fill(Store& store, int from, int to) {
    for (int i = from; i < to; ++i) ASSERT_EQ(store.Inline(Key(i), Value(i)).code, Code::kOk) << i;
  }
  static std::set<uint32_t> Layers(const Store& store, int from, int to) {
    std::set<uint32_t> layers;
    for (int i = from; i < to; ++i) {
      layers.insert(store.geometry().SlotOf(store.WordOf(Key(i)).new_address()) / format::kSlotsPerHead);
    }
    return layers;
  }
};

TEST_F(GrownPoolTest, EachLayerServesRequests) {
  Store store(Options());
  ASSERT_EQ(store.geometry().regions_per_shard, 358U);
  ASSERT_EQ(store.geometry().layers(), 3U);
  int count = 0;
  while (store.Inline(Key(count), Value(count)).code == Code::kOk) ++count;
  EXPECT_EQ(count, 357) << "all regions but the cleaner's";
  EXPECT_EQ(Layers(store, 0, count), (std::set<uint32_t>{0, 1, 2}));
  const auto expect_all = [&](const char* when) {
    for (int i = 0; i < count; ++i) ASSERT_EQ(store.Get(Key(i)), Value(i)) << i << " " << when;
    EXPECT_EQ(store.Violation(), "") << when;
  };
  expect_all("as they were put");
  store.CloseAndReopen();
  expect_all("opened again");
  store.Recover();
  expect_all("recovered");
  for (int i = 0; i < count; ++i) ASSERT_EQ(store.GetAfterCrash(Key(i)), Value(i)) << i;

  store.Close();
  std::vector<std::byte> whole = WholePool(store.Bytes(), true);
  const auto report = inspect::InspectPool(whole, {true, 10});
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_EQ(report->damage_count, 0U) << report->damage[0].what;
  EXPECT_EQ(report->shards[0].verified, 357U);
  EXPECT_EQ(report->shards[0].regions_linked, 357U);
  // Damage in the last layer is found with its key.
  const std::string value = Value(350);
  const auto wanted = std::as_bytes(std::span(value));
  const auto found = std::search(whole.begin(), whole.end(), wanted.begin(), wanted.end());
  ASSERT_NE(found, whole.end());
  *found ^= std::byte{1};
  const auto damaged = inspect::InspectPool(whole, {true, 10});
  ASSERT_EQ(damaged->damage_count, 1U);
  EXPECT_EQ(damaged->damage[0].key, Key(350));
}

TEST_F(GrownPoolTest, EveryLayerIsCleaned) {
  Store store(Options());
  Random random(1);
  std::map<int, char> kinds;
  for (int i = 0; i < 2000; ++i) {
    const int number = static_cast<int>(random.Uniform(330));
    const char kind = static_cast<char>('a' + random.Uniform(26));
    ASSERT_EQ(store.Put(Key(number), Value(number, kind)).code, Code::kOk) << i;
    kinds[number] = kind;
    if (random.Chance(0.01)) store.CloseAndReopen();
    if (random.Chance(0.01)) store.Recover();
  }
  EXPECT_EQ(Layers(store, 0, 330), (std::set<uint32_t>{0, 1, 2}));
  EXPECT_GT(store.counter(format::Counter::kCleanRegions), 0U);
  for (const auto& [number, kind] : kinds) ASSERT_EQ(store.Get(Key(number)), Value(number, kind)) << number;
  EXPECT_EQ(store.Violation(), "");
}

// Requests on versions in the second layer are cut off at each fence, with any part of the bytes that are not durable.
TEST_F(GrownPoolTest, ACrashInALayerIsRecovered) {
  constexpr int kFilled = 135;
  Machine machine(Options());
  Fill(machine.store, 0, kFilled);
  ASSERT_EQ(Layers(machine.store, 130, kFilled), std::set<uint32_t>{1});
  machine.store.Close();
  const CrashPool::Image filled = machine.pool->AfterPowerCut([] { return false; });

  const auto work = [](Store& store) {
    ASSERT_EQ(store.Inline(Key(134), Value(134, 'n')).code, Code::kOk);
    ASSERT_EQ(store.Delete(Key(133)), Code::kOk);
    ASSERT_EQ(store.Inline("new", Value(7)).code, Code::kOk);
    const Reserved reserved = store.Reserve(Key(132), Value(132, 'n'));
    ASSERT_TRUE(store.Finish(reserved));
    store.Reserve("new", Value(8));
  };
  const std::map<std::string, std::set<std::string>> may_be = {{Key(0), {Value(0)}},
                                                               {Key(131), {Value(131)}},
                                                               {Key(132), {Value(132), Value(132, 'n')}},
                                                               {Key(133), {Value(133), std::string(kAbsent)}},
                                                               {Key(134), {Value(134), Value(134, 'n')}},
                                                               {"new", {std::string(kAbsent), Value(7)}}};
  bool ended = false;
  size_t fences = 0;
  for (; !ended; ++fences) {
    Machine cut(Options(), filled, TakeUp::kOpen);
    ended = cut.RunUpTo(fences, [&] { work(cut.store); });
    Choices choices(*cut.pool, fences);
    for (size_t i = 0; i < std::min<size_t>(choices.size(), 10); ++i) {
      Machine next(Options(), choices.At(i));
      for (const auto& [key, values] : may_be) {
        ASSERT_TRUE(values.contains(next.store.Get(key))) << key << ", fence " << fences << ", choice " << i;
      }
      ASSERT_EQ(next.store.Violation(), "") << "fence " << fences << ", choice " << i;
      ASSERT_EQ(next.store.Inline(Key(134), Value(134, 'z')).code, Code::kOk);
      ASSERT_EQ(next.store.Get(Key(134)), Value(134, 'z'));
    }
  }
  EXPECT_GT(fences, 10U);
}

}  // namespace
}  // namespace erda::server
