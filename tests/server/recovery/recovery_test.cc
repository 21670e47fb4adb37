// Recovery after a power cut or a death at every point of every request, and after another crash during recovery.
// recovery_random_test.cc has long random runs.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "base/test_hash.h"
#include "server/machine.h"
#include "tests/format/first_blocks.h"

namespace erda::server {
namespace {

using format::LogAddress;
using format::SegmentState;
using Image = CrashPool::Image;

using Values = std::map<std::string, std::set<std::string>>;  // by key: the values that may be found
const std::string kNone(kAbsent);

// A request, and the state that it begins with.
struct Scene {
  std::string name;
  std::function<void(Store&)> before;
  std::function<void(Store&)> request;
  Values during;  // the values of the keys while the request is under way
  Values after;   // the values of the keys that it decides, after its answer
  format::GeometryWish wish{229376, 1, 16384, 4096, 128};
};

void PrintTo(const Scene& scene, std::ostream* out) { *out << scene.name; }

// Fills the open segment until less than `room` bytes are left in it.
void FillSegment(Store& store, uint64_t room) {
  constexpr uint64_t kSpace = 128;
  const auto left = [&] {
    return store.geometry().segment_size - store.LogBytesUsed() % store.geometry().segment_size;
  };
  while (left() >= std::max(room, kSpace)) {
    ASSERT_EQ(store.Inline("filler", std::string(kSpace - format::ObjectBytes(6, 0), 'f')).code, Code::kOk);
  }
}

// Fills the open region. The next object of 500 bytes is the first one of another region.
void FillRegion(Store& store) {
  for (;;) {
    FillSegment(store, 512);
    const uint64_t used = AlignUp(store.LogBytesUsed(), store.geometry().segment_size);
    if (used % store.geometry().region_size == 0) return;
    ASSERT_EQ(store.Inline("filler", std::string(500, 'f')).code, Code::kOk);
  }
}

// Returns keys whose home is this slot.
std::vector<std::string> KeysAt(const format::Geometry& geometry, uint64_t home, size_t count) {
  std::vector<std::string> keys;
  for (int i = 0; keys.size() < count; ++i) {
    std::string key = "at" + std::to_string(i);
    if (format::FirstHome(geometry, HashKey(key)) == home) keys.push_back(key);
  }
  return keys;
}

std::vector<Scene> Scenes() {
  const auto put = [](Store& store) { store.Inline("k", "old"); };
  std::vector<Scene> scenes = {
      {"inline, a new key",
       [](Store&) {},
       [](Store& store) { store.Inline("k", "new"); },
       {{"k", {kNone, "new"}}},
       {{"k", {"new"}}}},
      {"inline, over a settled version",
       put,
       [](Store& store) { store.Inline("k", "new"); },
       {{"k", {"old", "new"}}},
       {{"k", {"new"}}}},
      {"inline, over a version that is not there yet",
       [](Store& store) {
         store.Inline("k", "old");
         store.Reserve("k", "between", 1);
       },
       [](Store& store) { store.Inline("k", "new"); },
       {{"k", {"old", "new"}}},
       {{"k", {"new"}}}},
      {"inline, over a whole version that is not settled",
       [](Store& store) {
         store.Inline("k", "old");
         store.Land(store.Reserve("k", "between", 1));
       },
       [](Store& store) { store.Inline("k", "new"); },
       {{"k", {"old", "between", "new"}}},
       {{"k", {"new"}}}},
      {"inline, larger than a cache line",
       put,
       [](Store& store) { store.Inline("k", std::string(700, 'n')); },
       {{"k", {"old", std::string(700, 'n')}}},
       {{"k", {std::string(700, 'n')}}}},
      {"reserve, a new key", [](Store&) {}, [](Store& store) { store.Reserve("k", "new"); }, {{"k", {kNone}}}, {}},
      {"reserve, over a settled version", put, [](Store& store) { store.Reserve("k", "new"); }, {{"k", {"old"}}}, {}},
      {"reserve, over two that are not there yet",
       [](Store& store) {
         store.Reserve("k", "first", 1);
         store.Reserve("k", "second", 2);
       },
       [](Store& store) { store.Reserve("k", "third", 3); },
       {{"k", {kNone}}},
       {}},
      {"reserve and land",
       put,
       [](Store& store) { store.Land(store.Reserve("k", "new")); },
       {{"k", {"old", "new"}}},
       {}},
      {"reserve and land in part",
       put,
       [](Store& store) { store.LandPart(store.Reserve("k", "something new"), 10); },
       {{"k", {"old"}}},
       {}},
      {"commit of the newest",
       put,
       [](Store& store) { EXPECT_TRUE(store.Finish(store.Reserve("k", "new"))); },
       {{"k", {"old", "new"}}},
       {{"k", {"new"}}}},
      {"commit of one before a newer one",
       put,
       [](Store& store) {
         const Reserved first = store.Reserve("k", "first", 1);
         store.Reserve("k", "second", 2);
         EXPECT_TRUE(store.Finish(first));
       },
       {{"k", {"old", "first"}}},
       {{"k", {"first"}}}},
      {"commits in the wrong order",
       [](Store&) {},
       [](Store& store) {
         const Reserved first = store.Reserve("k", "first", 1);
         const Reserved second = store.Reserve("k", "second", 2);
         const Reserved third = store.Reserve("k", "third", 3);
         EXPECT_TRUE(store.Finish(second));
         EXPECT_TRUE(store.Finish(first));
         store.LandPart(third, 3);
       },
       {{"k", {kNone, "first", "second"}}},
       {{"k", {"second"}}}},
      {"delete of a settled version",
       put,
       [](Store& store) { EXPECT_EQ(store.Delete("k"), Code::kOk); },
       {{"k", {"old", kNone}}},
       {{"k", {kNone}}}},
      {"delete of a whole version that is not settled",
       [](Store& store) { store.Land(store.Reserve("k", "whole", 1)); },
       [](Store& store) { EXPECT_EQ(store.Delete("k"), Code::kOk); },
       {{"k", {"whole", kNone}}},
       {{"k", {kNone}}}},
      {"delete with others in flight, which arrive and are committed",
       [](Store& store) { store.Inline("k", "old"); },
       [](Store& store) {
         const Reserved first = store.Reserve("k", "first", 1);
         const Reserved second = store.Reserve("k", "second", 2);
         store.Land(first);
         EXPECT_EQ(store.Delete("k"), Code::kOk);
         store.Land(second);
         EXPECT_EQ(store.Commit(second), Code::kOk);
         EXPECT_EQ(store.Commit(first), Code::kOk);
       },
       {{"k", {"old", "first", kNone}}},
       {{"k", {kNone}}}},
      {"delete, and the next delete of another key",
       [](Store& store) {
         store.Inline("k", "old");
         store.Inline("other", "value");
       },
       [](Store& store) {
         EXPECT_EQ(store.Delete("k"), Code::kOk);
         EXPECT_EQ(store.Delete("other"), Code::kOk);
       },
       {{"k", {"old", kNone}}, {"other", {"value", kNone}}},
       {{"k", {kNone}}, {"other", {kNone}}}},
      {"delete and put again",
       put,
       [](Store& store) {
         store.Delete("k");
         store.Inline("k", "again");
       },
       {{"k", {"old", kNone, "again"}}},
       {{"k", {"again"}}}},
      {"the end of a session that left nothing whole",
       [](Store& store) {
         store.Inline("k", "old");
         store.Reserve("k", "first", 1);
         store.Reserve("k", "second", 1);
         store.Reserve("new", "never", 1);
       },
       [](Store& store) { store.EndSession(1); },
       {{"k", {"old"}}, {"new", {kNone}}},
       {}},
      {"the end of a session, back to a whole one in between",
       [](Store& store) {
         store.Inline("k", "old");
         store.Land(store.Reserve("k", "between", 2));
         store.Reserve("k", "never", 1);
       },
       [](Store& store) { store.EndSession(1); },
       {{"k", {"old", "between"}}},
       {{"k", {"between"}}}},
      {"a sweep",
       [](Store& store) {
         store.Inline("k", "old");
         store.Land(store.Reserve("k", "new", 1, Ack::kPlaced));
       },
       [](Store& store) { store.Sweep(); },
       {{"k", {"old", "new"}}},
       {}},
      {"a report of what will never come",
       [](Store& store) {
         store.Inline("k", "old");
         store.Reserve("k", "never", 1);
       },
       [](Store& store) {
         store.EndSession(1);
         store.Report("k");
       },
       {{"k", {"old"}}},
       {}},
      {"a clean close, with puts in flight",
       [](Store& store) {
         store.Inline("k", "old");
         store.Reserve("k", "never", 1);
         store.Land(store.Reserve("whole", "new", 2));
         FillRegion(store);
       },
       [](Store& store) { store.Close(); },
       {{"k", {"old"}}, {"whole", {kNone, "new"}}},
       {{"whole", {"new"}}}},
      {"the next segment is opened",
       [](Store& store) {
         store.Inline("k", "old");
         FillSegment(store, 512);
       },
       [](Store& store) { store.Inline("k", std::string(500, 'n')); },
       {{"k", {"old", std::string(500, 'n')}}},
       {{"k", {std::string(500, 'n')}}}},
      {"the next region is linked",
       [](Store& store) {
         store.Inline("k", "old");
         FillRegion(store);
       },
       [](Store& store) { store.Inline("k", std::string(500, 'n')); },
       {{"k", {"old", std::string(500, 'n')}}},
       {{"k", {std::string(500, 'n')}}}},
      {"the next region is linked for a reservation, which is in flight over one in the full region",
       [](Store& store) {
         store.Inline("k", "old");
         FillRegion(store);
         store.Land(store.Reserve("k", "a", 1));
       },
       [](Store& store) { store.Reserve("k", std::string(500, 'n'), 2); },
       {{"k", {"old", "a"}}},
       {}},
      {"together, of every path",
       [](Store& store) {
         for (const char* key : {"a", "b", "c"}) store.Inline(key, "old");
         EXPECT_TRUE(store.Delegated("other", "value", 1));  // the session has a chunk
       },
       [](Store& store) {
         store.PutTogether();
         store.Inline("a", "new");
         EXPECT_TRUE(store.Delegated("b", std::string(200, 'n'), 1));
         const Reserved reserved = store.Reserve("c", "new", 2);
         store.PublishTogether();
         EXPECT_TRUE(store.Finish(reserved));
       },
       {{"a", {"old", "new"}}, {"b", {"old", std::string(200, 'n')}}, {"c", {"old", "new"}}},
       {{"a", {"new"}}, {"b", {std::string(200, 'n')}}, {"c", {"new"}}}},
      {"together, new keys, near and far",
       [](Store&) {},
       [](Store& store) {
         store.PutTogether();
         for (const char* key : {"a", "b", "c", "d", "e"}) store.Inline(key, "new");
         store.PublishTogether();
       },
       {{"a", {kNone, "new"}}, {"b", {kNone, "new"}}, {"c", {kNone, "new"}}, {"d", {kNone, "new"}}},
       {{"a", {"new"}}, {"b", {"new"}}, {"c", {"new"}}, {"d", {"new"}}, {"e", {"new"}}},
       {229376, 1, 16384, 4096, 512}},
      {"together, one key again and again, and its delete",
       put,
       [](Store& store) {
         store.PutTogether();
         store.Inline("k", "first");
         const Reserved never = store.Reserve("k", "never");
         store.Inline("k", "second");
         EXPECT_EQ(store.Delete("k"), Code::kOk);
         store.Inline("k", "last");
         store.PublishTogether();
       },
       {{"k", {"old", "first", "second", kNone, "last"}}},
       {{"k", {"last"}}}},
      {"together, over the end of a segment, with the marks that this moves",
       [](Store& store) {
         for (const char* key : {"a", "b", "c"}) store.Inline(key, "old");
         FillSegment(store, 512);
       },
       [](Store& store) {
         store.PutTogether();
         for (const char* key : {"a", "b", "c"}) store.Inline(key, std::string(240, 'n'));
         store.PublishTogether();
       },
       {{"a", {"old", std::string(240, 'n')}},
        {"b", {"old", std::string(240, 'n')}},
        {"c", {"old", std::string(240, 'n')}}},
       {{"a", {std::string(240, 'n')}}, {"b", {std::string(240, 'n')}}, {"c", {std::string(240, 'n')}}}},
  };
  // Many keys have one home. A key of another home must move, to make room for the last one.
  Scene move{"an entry moves", nullptr, nullptr, {}, {}};
  const format::Geometry geometry = format::ChooseGeometry(move.wish).value();
  const std::vector<std::string> crowd = KeysAt(geometry, 10, 50);
  const std::vector<std::string> others = KeysAt(geometry, 40, 14);
  const std::string last = KeysAt(geometry, 10, 51).back();
  move.before = [crowd, others](Store& store) {
    for (const auto& key : others) store.Inline(key, key);
    for (const auto& key : crowd) store.Inline(key, key);
    store.Reserve(others[0], "never", 1);
  };
  move.request = [last](Store& store) {
    EXPECT_EQ(store.Inline(last, "new").code, Code::kOk);
    EXPECT_GT(store.displacements(), 0U);
  };
  for (const auto& key : crowd) move.during[key] = {key};
  for (const auto& key : others) move.during[key] = {key};
  move.during[last] = {kNone, "new"};
  move.after[last] = {"new"};
  scenes.push_back(move);
  return scenes;
}

class SceneTest : public testing::TestWithParam<Scene> {
 protected:
  [[nodiscard]] static StoreOptions Options() {
    StoreOptions options;
    options.wish = GetParam().wish;
    return options;
  }

  // Runs the request on the machine up to a fence. Returns false if the request ended before that fence, with its
  // answer.
  static bool CutAt(size_t fence, Machine* machine) {
    GetParam().before(machine->store);
    return !machine->RunUpTo(fence, [&] { GetParam().request(machine->store); });
  }
  [[nodiscard]] static Values Allowed(bool answered) {
    Values values = GetParam().during;
    if (answered) {
      for (const auto& [key, after] : GetParam().after) values[key] = after;
    }
    return values;
  }

  using Found = std::map<std::string, std::string>;
  static Found Contents(const Store& store) {
    Found found;
    for (const auto& [key, ignored] : GetParam().during) found[key] = store.Get(key);
    return found;
  }
  // Returns the values on the medium, before recovery.
  static Found ContentsOf(const Store& layout, const Image& image) {
    Found found;
    const PoolBytes bytes = layout.BytesOfImage(std::as_bytes(std::span(image)));
    for (const auto& [key, ignored] : GetParam().during) found[key] = ReadAfterCrash(bytes, key);
    return found;
  }

  static void ExpectWell(Store& store, const Values& allowed) {
    EXPECT_EQ(store.Violation(), "");
    EXPECT_EQ(FindUnrest(store.Bytes()), "");
    for (const auto& [key, values] : allowed) {
      const std::string value = store.Get(key);
      EXPECT_TRUE(values.contains(value)) << key << " is " << value;
    }
  }

  // Expects that the pool works on, to the last byte of the log, and through a clean close.
  static void ExpectToWorkOn(Store& store) {
    Found contents = Contents(store);
    EXPECT_EQ(store.Inline("k", "afterwards").code, Code::kOk);
    EXPECT_TRUE(store.Finish(store.Reserve("reserved", "value")));
    EXPECT_EQ(store.Inline("gone", "value").code, Code::kOk);
    EXPECT_EQ(store.Delete("gone"), Code::kOk);
    EXPECT_EQ(store.Delete("gone"), Code::kNotFound);
    contents["k"] = "afterwards";
    contents["reserved"] = "value";
    contents["gone"] = kNone;
    while (store.Inline("reserved", std::string(200, 'r')).code == Code::kOk)
      contents["reserved"] = std::string(200, 'r');
    const format::Geometry& g = store.geometry();
    ASSERT_EQ(g.heads_per_shard, 1U);
    EXPECT_GT(store.LogBytesUsed(), (g.regions_per_shard - 1) * g.region_size - 256) << "space of the log is lost";
    const uint64_t used = store.LogBytesUsed();
    const uint64_t keys = store.Keys();
    store.CloseAndReopen();
    EXPECT_EQ(store.LogBytesUsed(), used);
    EXPECT_EQ(store.Keys(), keys);
    for (const auto& [key, value] : contents) EXPECT_EQ(store.Get(key), value) << key;
    EXPECT_EQ(FindUnrest(store.Bytes()), "");
  }

  // Calls visit(machine, answered) for each fence at which the request can be cut off, and for its end.
  template <class Visit>
  static void AtEveryFence(Visit&& visit) {
    for (size_t fence = 0;; ++fence) {
      Machine machine(Options());
      const bool answered = !CutAt(fence, &machine);
      SCOPED_TRACE(GetParam().name + ", at fence " + std::to_string(fence) + (answered ? " (answered)" : ""));
      visit(machine, answered);
      if (answered || testing::Test::HasFailure()) return;
    }
  }
};
std::string NameOfScene(const testing::TestParamInfo<Scene>& tested) {
  std::string name;
  for (const char c : tested.param.name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
  }
  return name;
}
INSTANTIATE_TEST_SUITE_P(Scenes, SceneTest, testing::ValuesIn(Scenes()), NameOfScene);

TEST_P(SceneTest, PowerCutLeavesTheNewestWholeVersion) {
  AtEveryFence([&](Machine& cut, bool answered) {
    Choices choices(*cut.pool, 1);
    for (size_t i = 0; i < choices.size() && !HasFailure(); ++i) {
      SCOPED_TRACE("choice " + std::to_string(i));
      const Image image = choices.At(i);
      Machine next(Options(), image);
      ExpectWell(next.store, Allowed(answered));
      EXPECT_EQ(Contents(next.store), ContentsOf(cut.store, image));
      // No space is lost. The bytes of a segment's header may be counted already.
      EXPECT_LE(next.store.LogBytesUsed(), cut.store.LogBytesUsed() + format::FirstObjectOffset(0));
      if (i % 8 == 0) ExpectToWorkOn(next.store);
    }
  });
}

// Recovery is cut off once, twice or three times, at each of its fences.
TEST_P(SceneTest, ARecoveryThatIsCutOffIsDoneAgain) {
  AtEveryFence([&](Machine& cut, bool answered) {
    Choices choices(*cut.pool, 2);
    for (size_t i = 0; i < choices.size() && !HasFailure(); i += 3) {
      const Image image = choices.At(i);
      const auto expected = ContentsOf(cut.store, image);
      for (size_t fence = 0; !HasFailure(); ++fence) {
        SCOPED_TRACE("choice " + std::to_string(i) + ", recovery cut off at fence " + std::to_string(fence));
        Machine recovering(Options(), image, TakeUp::kNotYet);
        const bool ended = recovering.RunUpTo(fence, [&] { recovering.store.Recover(); });
        Choices again(*recovering.pool, i + fence);
        for (size_t j = 0; j < again.size() && !HasFailure(); j += 1 + again.size() / 4) {
          Machine last(Options(), again.At(j));
          ExpectWell(last.store, Allowed(answered));
          EXPECT_EQ(Contents(last.store), expected);
          if (j == 0 && fence % 3 == 0) ExpectToWorkOn(last.store);
        }
        if (ended) break;
      }
    }
  });
}

// The server's process dies, and the machine stays up. The next server finds all of its stores, on the medium or only
// in the caches. Its answers must outlive a power cut, and so must its use of the places that it found free.
class RecoveredScene : public SceneTest {
 protected:
  // Recovers, with and without a look through the whole index.
  static void Check(bool damaged_moves);
};
INSTANTIATE_TEST_SUITE_P(Scenes, RecoveredScene, testing::ValuesIn(Scenes()), NameOfScene);

void RecoveredScene::Check(bool damaged_moves) {
  AtEveryFence([&](Machine& machine, bool answered) {
    machine.pool->ProcessDies();
    if (damaged_moves) {
      constexpr uint64_t kNoMove = UINT64_MAX;
      std::memcpy(machine.pool->view().bytes.data() + format::kShardRecordsOffset + offsetof(format::ShardRecord, move),
                  &kNoMove, sizeof(kNoMove));
    }
    machine.store.Recover();
    if (damaged_moves) {
      EXPECT_NE(machine.store.recovery().index_slots, 0U);
    }
    ExpectWell(machine.store, Allowed(answered));
    auto contents = Contents(machine.store);
    for (const bool later : {false, true}) {
      if (later) {
        ASSERT_EQ(machine.store.Inline("another", "value").code, Code::kOk);
        ASSERT_EQ(machine.store.Delete("another"), Code::kOk);
        ASSERT_EQ(machine.store.Inline("another", "again").code, Code::kOk);
        contents["another"] = "again";
      }
      Choices choices(*machine.pool, 3);
      for (size_t i = 0; i < choices.size() && !HasFailure(); ++i) {
        SCOPED_TRACE("choice " + std::to_string(i) + (later ? ", later" : ""));
        Machine next(Options(), choices.At(i));
        for (const auto& [key, value] : contents) EXPECT_EQ(next.store.Get(key), value) << key;
        EXPECT_EQ(FindUnrest(next.store.Bytes()), "");
      }
    }
    ExpectToWorkOn(machine.store);
  });
}

TEST_P(RecoveredScene, RecoveredAnswersArePersistent) { Check(false); }
TEST_P(RecoveredScene, RecoveredAnswersArePersistentAfterAWalkThroughTheIndex) { Check(true); }

// --- Single cases

class RecoveryTest : public testing::Test {
 protected:
  // The server's process dies, and the next one recovers the pool.
  void Restart() {
    machine_.pool->ProcessDies();
    store_.Recover();
  }
  [[nodiscard]] const RecoveryReport& report() const { return store_.recovery(); }
  [[nodiscard]] uint64_t SlotOf(std::string_view key) const {
    return *store_.versions().index().Find(HashKey(key), [](index::Slot, const format::IndexEntry&) { return true; });
  }
  [[nodiscard]] std::byte* EntryOf(std::string_view key) const {
    return bytes() + store_.geometry().FirstSlotOffset(0, SlotOf(key));
  }
  // Returns an object of the only head. Its regions are linked in their order.
  [[nodiscard]] std::byte* ObjectAt(LogAddress address) const {
    return bytes() + store_.geometry().RegionOffset(address.slot()) + address.offset_in_slot();
  }
  [[nodiscard]] std::byte* bytes() const { return machine_.pool->view().bytes.data(); }
  [[nodiscard]] std::vector<std::byte> AllBytes() const {
    return {machine_.pool->bytes().begin(), machine_.pool->bytes().end()};
  }
  // Expects that recovery refuses the pool, names the place, and changes nothing.
  void ExpectRefused(const std::string& place) {
    const auto before = AllBytes();
    nvm::Writer writer(*machine_.pool);
    std::vector<uint64_t> control(format::ControlBytes(store_.geometry()) / sizeof(uint64_t));
    Versions versions(writer, store_.geometry(), Store::kPoolSeed, 0, std::as_writable_bytes(std::span(control)), {});
    const Status status = versions.part().Look();
    EXPECT_EQ(status.code(), Code::kCorruption) << status.ToString();
    EXPECT_NE(status.message().find(place), std::string_view::npos) << status.ToString();
    EXPECT_TRUE(AllBytes() == before);
  }

  Machine machine_{StoreOptions()};
  Store& store_ = machine_.store;
};

TEST_F(RecoveryTest, AnEmptyPoolStaysEmpty) {
  Restart();
  EXPECT_EQ(store_.Keys(), 0U);
  EXPECT_EQ(report().index_slots, 0U);
  EXPECT_EQ(report().objects, 0U);
  EXPECT_EQ(store_.LogBytesUsed(), 0U);
  EXPECT_EQ(store_.Inline("k", "v").code, Code::kOk);
}

TEST_F(RecoveryTest, CleanPoolIsNotChanged) {
  for (int i = 0; i < 20; ++i) store_.Inline("key" + std::to_string(i), std::string(300, 'v'));
  store_.Delete("key3");
  store_.Close();
  const auto before = AllBytes();
  Restart();
  EXPECT_TRUE(AllBytes() == before);
  EXPECT_EQ(store_.Keys(), 19U);
  EXPECT_EQ(report().unsettled, 0U);
}

TEST_F(RecoveryTest, ReportCountsTheRecoveredVersions) {
  store_.Inline("settled", "v");
  store_.Land(store_.Reserve("whole", "v"));
  store_.Land(store_.Reserve("whole too", "v", 0, Ack::kPlaced));
  store_.Inline("torn", "old");
  store_.LandPart(store_.Reserve("torn", "new"), 5);
  store_.Reserve("nothing", "v");
  store_.Reserve("nothing", "w");
  Restart();
  EXPECT_EQ(report().unsettled, 4U);
  EXPECT_EQ(report().settled, 2U);
  EXPECT_EQ(report().taken_back, 1U);
  EXPECT_EQ(report().dropped, 1U);
  EXPECT_EQ(store_.Keys(), 4U);
  EXPECT_EQ(report().deletes_finished + report().damaged + report().moves_undone + report().regions_unlinked, 0U);
  EXPECT_EQ(store_.counter(format::Counter::kKeys), 4U);
  EXPECT_EQ(FindUnrest(store_.Bytes()), "");
}

TEST_F(RecoveryTest, VersionsNeverRepeat) {
  uint64_t last = 0;
  for (int round = 0; round < 4; ++round) {
    const uint64_t version = store_.Inline("k", "v").header.version;
    EXPECT_GT(version, last);
    last = store_.Reserve("k", "v").version();
    Restart();
  }
}

TEST_F(RecoveryTest, LogContinuesAfterUnfinishedReservations) {
  const LogAddress first = store_.Inline("k", "v").address;
  const LogAddress dead = store_.Reserve("dead", std::string(100, 'x')).outcome.address;
  Restart();
  const LogAddress next = store_.Inline("k", "w").address;
  EXPECT_LT(first.raw(), dead.raw());
  EXPECT_LT(dead.raw(), next.raw()) << "its writer may be alive, and write there";
}

// The header of the last object was only in the caches, and the log went on after it. A power cut then left a hole
// before the later objects. The next server took the hole for the end, and overwrote them.
TEST_F(RecoveryTest, LastHeaderIsPersistentBeforeTheLogContinues) {
  store_.Inline("a", "value");
  EXPECT_FALSE(machine_.RunUpTo(0, [&] { store_.Inline("b", "value"); }));
  Restart();
  ASSERT_EQ(store_.Inline("c", "value").code, Code::kOk);
  Random random(1);
  Machine next(StoreOptions(), machine_.pool->AfterPowerCut(random, 0));
  EXPECT_EQ(next.store.LogBytesUsed(), store_.LogBytesUsed());
  ASSERT_EQ(next.store.Inline("d", "value").code, Code::kOk);
  EXPECT_EQ(next.store.Get("c"), "value");
}

TEST_F(RecoveryTest, LogWritesOverTheTornEnd) {
  store_.Inline("a", "value");
  const LogAddress torn = store_.Reserve("b", "value").outcome.address;
  std::memset(EntryOf("b"), 0, sizeof(uint64_t));  // the cut came before the entry was published
  *ObjectAt(torn) ^= std::byte{1};
  Restart();
  EXPECT_EQ(report().index_slots, store_.geometry().index_slots) << "it could be damage";
  EXPECT_EQ(store_.Keys(), 1U);
  EXPECT_EQ(store_.Inline("c", "value").address, torn);
}

// The mark does not change here, so recovery has no other reason for a fence.
TEST_F(RecoveryTest, CutOffObjectIsPersistentlyGone) {
  store_.Inline("a", "value");
  store_.CloseAndReopen();
  const LogAddress torn = store_.Reserve("b", "value").outcome.address;
  std::memset(EntryOf("b"), 0, sizeof(uint64_t));
  *ObjectAt(torn) ^= std::byte{1};
  Restart();
  const format::Geometry& g = store_.geometry();
  EXPECT_TRUE(machine_.pool->IsDurable(g.RegionOffset(0), g.region_size));
}

TEST_F(RecoveryTest, CutOffObjectIsNotTheEndOfTheLogAfterACleanClose) {
  store_.Inline("a", "value");
  const LogAddress torn = store_.Reserve("b", "value").outcome.address;
  std::memset(EntryOf("b"), 0, sizeof(uint64_t));
  *ObjectAt(torn) ^= std::byte{1};
  Restart();
  const uint64_t used = store_.LogBytesUsed();
  store_.CloseAndReopen();
  EXPECT_EQ(store_.LogBytesUsed(), used);
  EXPECT_EQ(store_.Inline("c", "value").address, torn);
}

TEST_F(RecoveryTest, DamagedObjectAndLaterOnesAreNotOverwritten) {
  for (const bool zeroed : {false, true}) {
    const LogAddress first = store_.Inline("a", "value").address;
    const LogAddress second = store_.Inline("b", "value").address;
    std::memset(ObjectAt(first), zeroed ? 0 : 0xee, sizeof(format::ObjectHeader));
    Restart();
    EXPECT_EQ(store_.Get("b"), "value");
    EXPECT_EQ(store_.Get("a"), kDamaged);
    EXPECT_GT(store_.Inline("c", "value").address.raw(), second.raw());
    EXPECT_EQ(store_.Get("b"), "value");
  }
}

// (I3) says that no crash leaves such an entry.
TEST_F(RecoveryTest, AnUnsettledEntryWhoseHeaderIsDamagedIsNotTakenBack) {
  store_.Inline("k", "old");
  const LogAddress address = store_.Reserve("k", "new").outcome.address;
  *(ObjectAt(address) + offsetof(format::ObjectHeader, version)) ^= std::byte{1};
  Restart();
  EXPECT_EQ(report().damaged, 1U);
  EXPECT_EQ(report().taken_back, 0U);
  EXPECT_EQ(store_.Get("k"), kDamaged);
  EXPECT_EQ(store_.Inline("k", "repaired").code, Code::kOk);
  EXPECT_EQ(store_.Get("k"), "repaired");
}

TEST_F(RecoveryTest, AnEntryThatNamesAnotherKeysTombstoneIsDamage) {
  store_.Inline("k", "old");
  store_.Inline("other", "value");
  ASSERT_EQ(store_.Delete("other"), Code::kOk);
  const auto word = format::EntryWord::Make(true, LogAddress::At(0, format::kTombstoneSlotOffset), LogAddress(), false);
  const uint64_t raw = word.raw();
  std::memcpy(EntryOf("k"), &raw, sizeof(raw));
  Restart();
  EXPECT_EQ(report().damaged, 1U);
  EXPECT_EQ(report().deletes_finished, 0U);
  EXPECT_EQ(store_.Get("k"), kDamaged);
  EXPECT_EQ(store_.Delete("k"), Code::kCorruption);
  EXPECT_EQ(store_.Inline("k", "repaired").code, Code::kOk);
  EXPECT_EQ(store_.Get("k"), "repaired");
  EXPECT_EQ(store_.Keys(), 1U);
}

// A repaired entry may have led anywhere. That place stays in it as the old version.
TEST_F(RecoveryTest, EarlierAddressOfARepairedEntryDoesNotMatter) {
  store_.Inline("k", "old");
  const auto never_opened = LogAddress::At(0, 3 * store_.geometry().segment_size + 64);
  const uint64_t word = format::EntryWord::Make(true, never_opened, LogAddress(), true).raw();
  std::memcpy(EntryOf("k"), &word, sizeof(word));
  EXPECT_EQ(store_.Get("k"), kDamaged);
  EXPECT_EQ(store_.Inline("k", "repaired").code, Code::kOk);
  EXPECT_EQ(store_.WordOf("k").old_address(), never_opened);
  Restart();
  EXPECT_EQ(store_.Get("k"), "repaired");
}

// --- Repairs by a put

// A damaged entry of a key, by three kinds of damage.
class DamageTest : public RecoveryTest, public testing::WithParamInterface<int> {
 protected:
  static constexpr int kHeader = 0;    // the header of its newest version
  static constexpr int kOtherKey = 1;  // it names another key's version
  static constexpr int kNowhere = 2;   // it leads out of the log

  // Works with any pool of one head that has the keys "k" and "other".
  static void Damage(Machine& machine) {
    Store& store = machine.store;
    std::byte* bytes = machine.pool->view().bytes.data();
    const auto slot_of = [&](std::string_view key) {
      const auto any = [](index::Slot, const format::IndexEntry&) { return true; };
      return bytes + store.geometry().FirstSlotOffset(0, *store.versions().index().Find(HashKey(key), any));
    };
    auto entry = LoadAs<format::IndexEntry>(std::span<const std::byte>(slot_of("k"), sizeof(format::IndexEntry)));
    const LogAddress address = entry.entry_word().new_address();
    if (GetParam() == kHeader) {
      bytes[store.geometry().RegionOffset(address.slot()) + address.offset_in_slot() +
            offsetof(format::ObjectHeader, key_hash)] ^= std::byte{1};
    } else if (GetParam() == kOtherKey) {
      entry.word = store.WordOf("other").raw();
    } else {
      entry.word = format::EntryWord::Make(true, LogAddress::At(31, 4096), {}, true).raw();
    }
    std::memcpy(slot_of("k"), &entry, sizeof(entry));
    machine.pool->EverythingIsDurable();
  }
  static void Put(Store& store) {
    ASSERT_EQ(store.Inline("k", "old").code, Code::kOk);
    ASSERT_EQ(store.Inline("other", "value").code, Code::kOk);
  }
};
INSTANTIATE_TEST_SUITE_P(Ways, DamageTest, testing::Range(0, 3));

TEST_P(DamageTest, GetAndDeleteReportTheDamage) {
  Put(store_);
  Damage(machine_);
  EXPECT_EQ(store_.Get("k"), kDamaged);
  EXPECT_EQ(store_.Delete("k"), Code::kCorruption);
  EXPECT_EQ(store_.Get("k"), kDamaged);
  EXPECT_EQ(store_.Get("other"), "value");
}

// The shard used to free the entry before it refused the put.
TEST_P(DamageTest, RefusedPutLeavesTheDamageVisible) {
  Put(store_);
  Damage(machine_);
  while (store_.Inline("other", std::string(500, 'o')).code == Code::kOk) {
  }
  EXPECT_EQ(store_.Inline("k", std::string(1000, 'n')).code, Code::kResourceExhausted);
  EXPECT_EQ(store_.Get("k"), kDamaged);
  EXPECT_EQ(store_.Reserve("k", std::string(1000, 'n')).code(), Code::kResourceExhausted);
  EXPECT_EQ(store_.Get("k"), kDamaged);
}

TEST_P(DamageTest, APutRepairs) {
  Put(store_);
  const uint64_t used = store_.Keys();
  Damage(machine_);
  EXPECT_EQ(store_.Inline("k", "new").code, Code::kOk);
  EXPECT_EQ(store_.Get("k"), "new");
  EXPECT_EQ(store_.Get("other"), "value");
  EXPECT_EQ(store_.Keys(), used);
  EXPECT_EQ(store_.Delete("k"), Code::kOk);
  EXPECT_EQ(store_.Get("k"), kAbsent);
}

// If head and distance are those of the key, the entry stays until a value is there. So the damage stays visible.
TEST_P(DamageTest, UnfinishedPutDoesNotHideTheDamage) {
  if (GetParam() == kNowhere) return;
  Put(store_);
  Damage(machine_);
  const Reserved reserved = store_.Reserve("k", "new", 1);
  EXPECT_EQ(store_.Get("k"), kDamaged);
  store_.LandPart(reserved, 5);
  store_.EndSession(1);
  EXPECT_EQ(store_.Get("k"), kDamaged);
  EXPECT_TRUE(store_.Finish(store_.Reserve("k", "new", 2)));
  EXPECT_EQ(store_.Get("k"), "new");
}

TEST_P(DamageTest, ACrashAtAnyPointOfThePutLeavesTheDamageOrTheValue) {
  if (GetParam() == kNowhere) return;
  for (const bool reserve : {false, true}) {
    for (size_t fence = 0; !HasFailure(); ++fence) {
      SCOPED_TRACE("fence " + std::to_string(fence));
      Machine machine{StoreOptions()};
      Put(machine.store);
      Damage(machine);
      const bool ended = machine.RunUpTo(fence, [&] {
        if (!reserve) machine.store.Inline("k", "new");
        if (reserve) machine.store.Finish(machine.store.Reserve("k", "new"));
      });
      Choices choices(*machine.pool, fence);
      for (size_t i = 0; i < choices.size(); ++i) {
        Machine next(StoreOptions(), choices.At(i));
        const std::string value = next.store.Get("k");
        EXPECT_TRUE(value == "new" || (value == kDamaged && !ended)) << value;
        EXPECT_EQ(next.store.Get("other"), "value");
        EXPECT_EQ(next.store.Inline("k", "newer").code, Code::kOk);
        EXPECT_EQ(next.store.Get("k"), "newer");
        EXPECT_EQ(next.store.Keys(), 2U);
      }
      if (ended) break;
    }
  }
}

TEST_F(RecoveryTest, RecoveryDoesNotVerifySettledEntries) {
  const LogAddress address = store_.Inline("k", "value").address;
  *(ObjectAt(address) + format::ValueOffset(1)) ^= std::byte{1};
  Restart();
  EXPECT_EQ(report().unsettled, 0U);
  EXPECT_EQ(store_.Get("k"), kDamaged);
  EXPECT_EQ(store_.Keys(), 1U);
}

TEST_F(RecoveryTest, DamagedOldVersionIsRestoredAsDamage) {
  const LogAddress old = store_.Inline("k", "old").address;
  store_.Reserve("k", "never");
  *(ObjectAt(old) + format::ValueOffset(1)) ^= std::byte{1};
  Restart();
  EXPECT_EQ(report().taken_back, 1U);
  EXPECT_EQ(store_.Get("k"), kDamaged);
}

// The entry names a copy of the old version, and the chain leads to the original.
TEST_F(RecoveryTest, OnlyAVersionNewerThanTheOldOneIsRestored) {
  const Outcome first = store_.Inline("k", "value");
  const LogAddress gone = store_.Reserve("k", "never").outcome.address;
  const LogAddress copy = store_.Reserve("other", "value").outcome.address;
  format::ObjectHeader header = first.header;
  const format::Place place{Store::kPoolSeed, first.head, copy, 1};
  header.header_crc = format::HeaderCrc(place, header, "k");
  const uint32_t checksum = format::ObjectChecksum(header, AsBytes("value"));
  std::memcpy(ObjectAt(copy), ObjectAt(first.address), format::ObjectBytes(1, 5));
  std::memcpy(ObjectAt(copy), &header, sizeof(header));
  std::memcpy(ObjectAt(copy) + format::ChecksumOffset(1), &checksum, sizeof(checksum));
  const uint64_t word = format::EntryWord::Make(true, gone, copy, false).raw();
  std::memset(EntryOf("other"), 0, sizeof(word));
  std::memcpy(EntryOf("k"), &word, sizeof(word));
  Restart();
  EXPECT_EQ(store_.Get("k"), "value");
  EXPECT_EQ(store_.WordOf("k").new_address(), copy);
}

TEST_F(RecoveryTest, BothCopiesOfAMovedEntryAreFoundAtAnyDistance) {
  for (const uint64_t distance : {1, 2, 31, 62, 63}) {
    StoreOptions options;
    options.wish.index_entries = 256;
    Machine machine(options);
    const std::string key = KeysAt(machine.store.geometry(), 20, 1)[0];
    machine.store.Inline(key, "value");
    std::byte* slots = machine.pool->view().bytes.data() + machine.store.geometry().FirstSlotOffset(0, 20);
    auto entry = LoadAs<format::IndexEntry>(std::span<const std::byte>(slots, sizeof(format::IndexEntry)));
    entry.meta = entry.entry_meta().WithDistance(static_cast<uint32_t>(distance)).raw();
    std::memcpy(slots + distance * sizeof(entry), &entry, sizeof(entry));
    const uint64_t move = format::CheckedWord::Of((20 + distance) << 8 | distance).raw();
    std::memcpy(machine.pool->view().bytes.data() + format::kShardRecordsOffset + offsetof(format::ShardRecord, move),
                &move, sizeof(move));
    EXPECT_EQ(FindUnrest(machine.store.Bytes()),
              "slot " + std::to_string(20 + distance) + ": its key has another entry");
    machine.pool->ProcessDies();
    machine.store.Recover();
    EXPECT_EQ(machine.store.recovery().moves_undone, 1U);
    EXPECT_EQ(machine.store.Keys(), 1U);
    EXPECT_EQ(FindUnrest(machine.store.Bytes()), "");
    EXPECT_EQ(machine.store.Get(key), "value");
  }
}

TEST_F(RecoveryTest, ARegionThatWasLinkedAndNeverOpenedIsFreeAgain) {
  FillRegion(store_);
  ASSERT_FALSE(machine_.RunUpTo(1, [&] { store_.Inline("k", std::string(500, 'v')); }));
  Restart();
  EXPECT_EQ(report().regions_unlinked, 1U);
  EXPECT_EQ(FindUnrest(store_.Bytes()), "");
  const Outcome outcome = store_.Inline("k", std::string(500, 'v'));
  ASSERT_EQ(outcome.code, Code::kOk);
  EXPECT_EQ(outcome.address.slot(), 1U);
  EXPECT_EQ(store_.Get("k"), std::string(500, 'v'));
}

// Otherwise a delete would need another region, and would fail in a full pool.
TEST_F(RecoveryTest, HeadKeepsARegionForDeletesAtAnyPowerCut) {
  bool ended = false;
  for (size_t fence = 0; !ended; ++fence) {
    Machine machine{StoreOptions()};
    FillRegion(machine.store);
    ended = machine.RunUpTo(fence, [&] { machine.store.Inline("k", std::string(500, 'v')); });
    for (const bool kept : {false, true}) {
      Machine after(StoreOptions(), machine.pool->AfterPowerCut([&] { return kept; }));
      const auto words = after.pool->view().bytes.subspan(format::kRegionTableOffset);
      bool open = false;
      for (uint32_t region = 0; region < after.store.geometry().regions(); ++region) {
        const format::RegionWord word(LoadAs<uint64_t>(words.subspan(region * sizeof(uint64_t))));
        open = open || (word.linked() && !word.settled());
      }
      EXPECT_TRUE(open) << "cut at fence " << fence;
    }
  }
}

TEST_F(RecoveryTest, UnopenedRegionOrSegmentWithEntriesIsDamage) {
  store_.Reserve("in flight", "v");  // keeps the first region unsettled, so that recovery reads it
  FillRegion(store_);
  const std::string value(500, 'v');
  store_.Inline("k", value);
  for (const uint64_t offset : {0, 16384}) {  // the first region, then the second one
    std::byte* identity = bytes() + store_.geometry().regions_offset + offset;
    *identity ^= std::byte{1};
    ExpectRefused("region " + std::to_string(offset / 16384) + " is linked, and its segment");
    *identity ^= std::byte{1};
  }
  std::byte* identity = bytes() + store_.geometry().regions_offset + 3 * 4096;
  *identity ^= std::byte{1};  // the segment of the filler
  ExpectRefused("its segment 3 is damaged");
  *identity ^= std::byte{1};
  Restart();
  EXPECT_EQ(store_.Get("k"), value);
}

// Only damage links two regions that were not opened. No entry leads there, so nothing is lost.
TEST_F(RecoveryTest, DamagedWordsOfUnusedRegionsAreRepaired) {
  store_.Inline("k", "value");
  for (const uint32_t region : {2U, 5U}) {
    const uint64_t word = format::RegionWord::Linked(1, 0, region).raw();
    std::memcpy(bytes() + format::kRegionTableOffset + region * sizeof(uint64_t), &word, sizeof(word));
  }
  Restart();
  EXPECT_EQ(report().regions_unlinked, 2U);
  EXPECT_EQ(store_.Get("k"), "value");
}

// A bad block that was mended is all zeroes. Its old objects must not be overwritten.
TEST_F(RecoveryTest, SegmentWithAWipedHeaderIsDamage) {
  store_.Inline("k", "value");
  std::memset(bytes() + store_.geometry().regions_offset, 0, sizeof(format::SegmentHeader));
  ExpectRefused("region 0 is linked, and its segment 0 is damaged");
}

TEST_F(RecoveryTest, LastSegmentWithAWipedHeaderIsDamage) {
  FillSegment(store_, 512);
  store_.Inline("k", std::string(500, 'v'));
  std::memset(bytes() + store_.geometry().regions_offset + store_.geometry().segment_size, 0,
              sizeof(format::SegmentHeader));
  ExpectRefused("region 0 is linked, and its segment 1 is damaged");
}

// A bad block is larger than a header, so the first objects are zeroes, too.
TEST_F(RecoveryTest, SegmentWithAWipedBeginningIsDamage) {
  StoreOptions options;
  options.wish = {1 << 20, 1, 65536, 16384, 128};
  Machine machine(options);
  Store& store = machine.store;
  for (int i = 0; i < 300; ++i)
    ASSERT_EQ(store.Inline("key" + std::to_string(i % 30), std::string(80, 'v')).code, Code::kOk);
  const format::Geometry& g = store.geometry();
  const uint64_t last = store.LogBytesUsed() / g.segment_size;
  ASSERT_GT(store.LogBytesUsed() % g.segment_size, 6000U);
  std::byte* segment = machine.pool->view().bytes.data() + g.regions_offset + last * g.segment_size;
  std::memset(segment, 0, 4096);
  nvm::Writer writer(*machine.pool);
  std::vector<uint64_t> control(format::ControlBytes(g) / sizeof(uint64_t));
  for (const bool crashed : {true, false}) {
    Versions versions(writer, g, Store::kPoolSeed, 0, std::as_writable_bytes(std::span(control)), {});
    const Status status = crashed ? versions.part().Look() : versions.part().Open();
    EXPECT_EQ(status.code(), Code::kCorruption) << status.ToString();
    EXPECT_NE(status.message().find("is damaged"), std::string_view::npos) << status.ToString();
  }
}

// One recovery clears it. The next one need not look through the index for it.
TEST_F(RecoveryTest, CutOffTombstoneIsCleared) {
  store_.Inline("k", "value");
  std::byte* slot = bytes() + store_.geometry().regions_offset + format::kTombstoneSlotOffset;
  slot[40] = std::byte{7};
  Restart();
  EXPECT_NE(report().index_slots, 0U);
  Restart();
  EXPECT_EQ(report().index_slots, 0U);
  EXPECT_EQ(store_.Get("k"), "value");
}

// The server's process dies while it copies the value. The header is there, so a walk through the log passes the
// object.
TEST_F(RecoveryTest, CutOffInlinePutIsPassedOver) {
  store_.Inline("k", "old");
  bool ended = true;
  // Nothing of the put is published at its first fence.
  ended = machine_.RunUpTo(0, [&] { store_.Inline("k", std::string(300, 'n')); });
  ASSERT_FALSE(ended);
  const uint64_t at = format::FirstObjectOffset(0) + format::ObjectSpace(1, 3);
  std::byte* object = bytes() + store_.geometry().regions_offset + at;
  std::memset(object + format::ChecksumOffset(1), 0, 200);  // the copy came as far as this
  Restart();
  EXPECT_EQ(report().objects, 2U);
  EXPECT_EQ(report().index_slots, 0U);
  EXPECT_EQ(store_.Get("k"), "old");
}

// The end of a full segment reaches the medium before its state does, wherever the power is cut.
TEST_F(RecoveryTest, AFullSegmentStatesItsEnd) {
  int full = 0;
  for (size_t fence = 0;; ++fence) {
    Machine machine{StoreOptions()};
    machine.store.Reserve("stuck", "value", 1);
    FillSegment(machine.store, 512);
    const uint64_t end = machine.store.LogBytesUsed();
    const bool ended = machine.RunUpTo(fence, [&] { machine.store.Inline("k", std::string(500, 'v')); });
    Choices choices(*machine.pool, fence);
    for (size_t i = 0; i < choices.size(); ++i) {
      const Image image = choices.At(i);
      const auto header = LoadAs<format::SegmentHeader>(
          std::as_bytes(std::span(image)).subspan(machine.store.geometry().regions_offset));
      if (header.state != static_cast<uint64_t>(SegmentState::kSealed)) continue;
      ++full;
      ASSERT_EQ(header.end, end) << "at fence " << fence << ", choice " << i;
    }
    if (ended) break;
  }
  EXPECT_GT(full, 10);
}

// (I9) Recovery reads no settled and full segments, however many there are.
TEST_F(RecoveryTest, RecoveryReadsOnlySegmentsWithVersionsInFlight) {
  FillRegion(store_);
  FillRegion(store_);
  store_.Inline("k", std::string(500, 'v'));  // alone in its segment
  const Reserved reserved = store_.Reserve("k", std::string(500, 'w'));
  Restart();
  EXPECT_EQ(report().objects, 2U);
  EXPECT_EQ(report().index_slots, 0U);
  EXPECT_EQ(report().taken_back, 1U);

  // A reservation that waits keeps its segment unsettled, and no other.
  const Reserved stuck = store_.Reserve("stuck", "value", 1);
  FillRegion(store_);
  store_.Inline("k", std::string(500, 'x'));
  Restart();
  EXPECT_EQ(report().dropped, 1U);
  EXPECT_EQ(report().index_slots, 0U);
  EXPECT_LT(report().objects, 2 * store_.geometry().segment_size / 128);
  EXPECT_EQ(store_.Get("stuck"), kAbsent);
  EXPECT_EQ(store_.Get("k"), std::string(500, 'x'));
}

// (I9) Recovery reads nothing before the mark of the open segment.
TEST_F(RecoveryTest, RecoverySkipsVersionsBeforeTheMark) {
  const auto fill = [&](int objects) {
    for (int i = 0; i < objects; ++i) store_.Inline("key" + std::to_string(i), std::string(40, 'v'));  // 96 bytes each
  };
  fill(20);
  Restart();
  EXPECT_LT(report().objects, (1024U + 96) / 96 + 1);
  EXPECT_EQ(report().index_slots, 0U);

  // One version is in flight, and recovery reads all versions after it.
  const Reserved stuck = store_.Reserve("stuck", "value", 1);
  fill(9);
  Restart();
  EXPECT_EQ(report().objects, 10U);
  EXPECT_EQ(report().dropped, 1U);
  EXPECT_EQ(store_.Get("stuck"), kAbsent);
}

TEST_F(RecoveryTest, DamagedMoveRecordCausesAnIndexWalk) {
  store_.Inline("k", "old");
  store_.Reserve("k", "new");
  for (const uint64_t move :
       {uint64_t{1}, uint64_t{7} << 8, (uint64_t{5} << 8) | 6, (uint64_t{70} << 8) | 64, ~uint64_t{0}}) {
    std::memcpy(bytes() + format::kShardRecordsOffset + offsetof(format::ShardRecord, move), &move, sizeof(move));
    Restart();
    EXPECT_EQ(report().index_slots, store_.geometry().index_slots) << move;
    EXPECT_EQ(store_.Get("k"), "old");
  }
}

TEST_F(RecoveryTest, FullSegmentsAreSettled) {
  const Reserved dead = store_.Reserve("k", "never", 1);
  FillSegment(store_, 512);
  store_.Inline("next", std::string(500, 'v'));
  ASSERT_EQ(store_.SegmentStateOf(dead), SegmentState::kSealed);
  Restart();
  EXPECT_EQ(store_.SegmentStateOf(dead), SegmentState::kSettled);
}

// The marks of the deleted versions were in the dead server's memory.
TEST_F(RecoveryTest, DeletedVersionsNeverComeBack) {
  store_.Inline("k", "old");
  const Reserved reserved = store_.Reserve("k", "late", 1);
  ASSERT_EQ(store_.Delete("k"), Code::kOk);
  Restart();
  store_.Land(reserved);
  EXPECT_EQ(store_.Get("k"), kAbsent);
  store_.Sweep();
  Restart();
  EXPECT_EQ(store_.Get("k"), kAbsent);
}

// Readers return a version after they see its settled bit. So the version must be persistent before that. This also
// holds when a session at its limit makes the shard look for arrived puts.
TEST_F(RecoveryTest, ASessionAtItsLimitSettlesOnlyWhatIsPersistent) {
  constexpr size_t kLimit = 16;
  int settled = 0;
  for (size_t arrived = 0; arrived < kLimit; ++arrived) {
    StoreOptions options;
    options.reservations_per_session = kLimit;
    Machine machine(options);
    Store& store = machine.store;
    std::vector<Reserved> placed;
    for (size_t i = 0; i < kLimit; ++i) {
      placed.push_back(store.Reserve("key" + std::to_string(i), "value", 1, Ack::kPlaced));
    }
    const Reserved& whole = placed[arrived];
    store.Land(whole);
    machine.pool->before_fence = [&] {
      if (!store.WordOf(whole.key).settled()) return;
      ++settled;
      EXPECT_TRUE(machine.pool->IsDurable(store.OffsetOf(whole), format::ObjectBytes(whole.key.size(), 5))) << arrived;
    };
    EXPECT_EQ(store.Reserve("another", "value", 1, Ack::kPlaced).code(), Code::kOk);
    machine.pool->before_fence = nullptr;
  }
  EXPECT_GT(settled, 0);
}

// A reader got this version before the tombstone was published. A reader that meets the tombstone must not go past it.
TEST_F(RecoveryTest, GetDuringADeleteSeesNothingOlderThanEarlierGets) {
  store_.Inline("k", "old");
  const Reserved first = store_.Reserve("k", "first", 1, Ack::kPlaced);
  store_.Reserve("k", "second", 2, Ack::kPlaced);
  int fence = 0;
  machine_.pool->before_fence = [&] {
    if (fence++ == 0) store_.Land(first);
    const std::string value = store_.Get("k");
    EXPECT_TRUE(value == "first" || (fence > 2 && value == kNone)) << value << " at fence " << fence;
  };
  EXPECT_EQ(store_.Delete("k"), Code::kOk);
  machine_.pool->before_fence = nullptr;
  EXPECT_GT(fence, 2);
  EXPECT_EQ(store_.Get("k"), kNone);
}

// The entry counts once, whatever was in its slot before.
TEST_F(RecoveryTest, PutFreesADamagedEntryWithoutAKeyBeforeItTakesTheSlot) {
  store_.Inline("other", "value");
  const LogAddress address = store_.Inline("k", "old").address;
  const uint64_t keys = store_.Keys();
  *(ObjectAt(address) + offsetof(format::ObjectHeader, key_hash)) ^= std::byte{1};
  EntryOf("k")[sizeof(uint64_t) + 2] ^= std::byte{1};  // its distance: the entry is not known to be the key's
  EXPECT_EQ(store_.Get("k"), kDamaged);
  EXPECT_EQ(store_.Inline("k", "new").code, Code::kOk);
  EXPECT_EQ(store_.Get("k"), "new");
  EXPECT_EQ(store_.Keys(), keys);
  EXPECT_EQ(FindUnrest(store_.Bytes()), "");
}

// An unsettled entry leads to its newest version, to its old one, and to those in between. Recovery may go back to each
// of them, so it must not forget a segment that has one.
TEST_F(RecoveryTest, WipedHeaderOfASegmentWithOlderVersionsIsDamage) {
  for (const std::string stands_there : {"the old version", "a whole one in between", "one that is not whole"}) {
    SCOPED_TRACE(stands_there);
    Machine machine{StoreOptions()};
    Store& store = machine.store;
    const format::Geometry& g = store.geometry();
    const bool is_old = stands_there == "the old version";
    store.Reserve("in flight", "v", 3);  // keeps the first region unsettled, so that recovery reads it
    if (!is_old) store.Inline("k", "old");
    while (store.LogBytesUsed() <= 3 * g.segment_size) store.Inline("filler", std::string(300, 'f'));
    if (is_old) store.Inline("k", "old");
    std::optional<Reserved> between;
    if (!is_old) between = store.Reserve("k", "between", 1);
    FillRegion(store);
    store.Reserve("k", std::string(500, 'n'), 2);
    if (stands_there == "a whole one in between") store.Land(*between);
    store.Inline("filler", std::string(300, 'f'));
    machine.pool->ProcessDies();
    std::memset(machine.pool->view().bytes.data() + g.RegionOffset(0) + 3 * g.segment_size, 0,
                sizeof(format::SegmentHeader));
    nvm::Writer writer(*machine.pool);
    std::vector<uint64_t> control(format::ControlBytes(g) / sizeof(uint64_t));
    Versions versions(writer, g, Store::kPoolSeed, 0, std::as_writable_bytes(std::span(control)), {});
    const Status status = versions.part().Look();
    EXPECT_EQ(status.code(), Code::kCorruption);
    EXPECT_NE(status.message().find("region 0 is linked, and its segment 3 is damaged"), std::string_view::npos)
        << status.ToString();
  }
}

}  // namespace
}  // namespace erda::server
