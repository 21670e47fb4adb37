// Roles among mirrors in the superblock: their changes, power cuts meanwhile, damage to one copy, and who opens the
// pool.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "mirror/primary_pool.h"
#include "server/crash_pool.h"
#include "server/page_pool.h"
#include "server/pool/formatted_pool.h"

namespace erda::server {

using format::MirrorRole;

// All that a superblock says of mirrors.
struct MirrorState {
  MirrorRole role = MirrorRole::kNone;
  uint64_t mirror_id = 0;
  uint32_t epoch = 0;

  bool operator==(const MirrorState&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const MirrorState& state) {
    return out << "role " << static_cast<uint32_t>(state.role) << ", id " << state.mirror_id << ", epoch "
               << state.epoch;
  }
};

namespace {

constexpr uint64_t kRolePoolBytes = 256 << 10;
constexpr uint64_t kId = 0x1122334455667788;

MirrorState StateOf(const format::Superblock& superblock) {
  return {superblock.role(), superblock.mirror_id, superblock.epoch};
}

format::Superblock CopyIn(const std::vector<uint64_t>& image, int copy) {
  return LoadAs<format::Superblock>(std::as_bytes(std::span(image)).subspan(format::kSuperblockOffsets[copy]));
}

// A change, and the state before it.
struct RoleChange {
  const char* name;
  MirrorState before;
  std::function<Status(FormattedPool&)> change;
  MirrorState after;
};

std::vector<RoleChange> RoleChanges() {
  const auto mark = [](MirrorRole role, uint64_t id, uint32_t raised = 0) {
    return
        [role, id, raised](FormattedPool& pool) { return pool.MarkMirror(role, id, pool.superblock().epoch + raised); };
  };
  const auto promote = [](bool force) { return [force](FormattedPool& pool) { return pool.Promote(force); }; };
  using enum MirrorRole;
  return {
      {"the first mirrors", {kNone, 0, 0}, mark(kPrimary, 0), {kPrimary, 0, 0}},
      {"a new mirror", {kNone, 0, 0}, mark(kFilling, kId), {kFilling, kId, 0}},
      {"a mirror in sync", {kFilling, kId, 2}, mark(kInSync, kId), {kInSync, kId, 2}},
      {"a mirror that falls back", {kInSync, kId, 2}, mark(kFilling, kId), {kFilling, kId, 2}},
      {"a mirror with another id", {kInSync, kId, 2}, mark(kInSync, 7), {kInSync, 7, 2}},
      {"the mirror of a primary", {kPrimary, 0, 1}, mark(kPrimary, kId), {kPrimary, kId, 1}},
      {"another mirror of a primary", {kPrimary, kId, 1}, mark(kPrimary, 7), {kPrimary, 7, 1}},
      {"a primary that goes on alone", {kPrimary, kId, 1}, mark(kPrimary, 0), {kPrimary, 0, 1}},
      {"a pool without mirrors again", {kPrimary, kId, 1}, mark(kNone, 0), {kNone, 0, 1}},
      {"a former primary", {kPrimary, kId, 1}, mark(kFilling, 7, 2), {kFilling, 7, 3}},
      {"a promotion", {kInSync, kId, 2}, promote(false), {kPrimary, 0, 3}},
      {"a promotion by force", {kFilling, kId, 2}, promote(true), {kPrimary, 0, 3}},
  };
}

// Stores a superblock in both copies, as two marks do.
template <class Image>
void StoreState(const MirrorState& state, Image* image) {
  const auto bytes = std::as_writable_bytes(std::span(*image));
  format::Superblock superblock = format::FindSuperblock(bytes)->superblock;
  if (state != MirrorState()) superblock.format_version = format::kMirroredVersion;
  superblock.mirror_role = static_cast<uint32_t>(state.role);
  superblock.mirror_id = state.mirror_id;
  superblock.epoch = state.epoch;
  for (const uint64_t at : format::kSuperblockOffsets) {
    ++superblock.generation;
    superblock.crc = format::SuperblockCrc(superblock);
    std::memcpy(bytes.data() + at, &superblock, sizeof(superblock));
  }
}

void DamageCopy(int copy, std::vector<uint64_t>* image) {
  std::as_writable_bytes(std::span(*image))[format::kSuperblockOffsets[copy] + 40] ^= std::byte{4};
}

// --- On NVM

class MirrorRoleTest : public testing::Test {
 protected:
  MirrorRoleTest() {
    CrashPool::Image blank(kRolePoolBytes / sizeof(uint64_t));
    auto device = std::make_unique<CrashPool>(std::move(blank));
    medium_ = device.get();
    pool_ = *FormattedPool::Take(std::move(device), {"device", kRolePoolBytes},
                                 {.shards = 1, .region_size = 4096, .segment_size = 4096});
    made_ = Durable();
  }

  // Opens a pool with these bytes, which becomes pool_ if that works.
  Status Open(CrashPool::Image image, bool offline = true) {
    auto device = std::make_unique<CrashPool>(std::move(image));
    CrashPool* const medium = device.get();
    auto opened = FormattedPool::Take(std::move(device), {"device"}, {.shards = 0}, offline);
    if (!opened.ok()) return opened.status();
    medium_ = medium;
    pool_ = *std::move(opened);
    return {};
  }
  // The bytes that a power cut leaves, if nothing reached the medium that did not have to.
  [[nodiscard]] CrashPool::Image Durable() const {
    return medium_->AfterPowerCut([] { return false; });
  }
  void Begin(const MirrorState& state) {
    CrashPool::Image image = made_;
    StoreState(state, &image);
    const Status opened = Open(image);
    ASSERT_TRUE(opened.ok()) << opened.ToString();
    ASSERT_EQ(State(), state);
  }
  [[nodiscard]] MirrorState State() const { return StateOf(pool_->superblock()); }
  void ExpectRefused(const Status& status, Code code, const std::string& part) const {
    EXPECT_EQ(status.code(), code) << status.ToString();
    EXPECT_NE(status.message().find(part), std::string_view::npos) << status.ToString();
  }

  CrashPool::Image made_;
  CrashPool* medium_ = nullptr;
  std::unique_ptr<FormattedPool> pool_;
};

TEST_F(MirrorRoleTest, BothCopiesSayTheNewState) {
  for (const RoleChange& change : RoleChanges()) {
    SCOPED_TRACE(change.name);
    Begin(change.before);
    const uint64_t generation = pool_->superblock().generation;
    const Status changed = change.change(*pool_);
    ASSERT_TRUE(changed.ok()) << changed.ToString();
    EXPECT_EQ(State(), change.after);
    EXPECT_EQ(pool_->superblock().generation, generation + 2);
    const CrashPool::Image image = Durable();
    for (const int copy : {0, 1}) {
      EXPECT_EQ(CopyIn(image, copy).format_version, format::kMirroredVersion);
      EXPECT_EQ(StateOf(CopyIn(image, copy)), change.after);
    }
    EXPECT_TRUE(std::equal(image.begin() + 1024, image.end(), made_.begin() + 1024)) << "the data changed";
    ASSERT_TRUE(Open(image).ok());
    EXPECT_EQ(State(), change.after);
  }
}

// Damage must not give a mirror back the right to be promoted, nor bring an old epoch back. Nor must a primary forget
// its mirror. So it is with each change, also after the pool was in use.
TEST_F(MirrorRoleTest, DamageToEitherCopyBringsNoOldStateBack) {
  for (const RoleChange& change : RoleChanges()) {
    for (const int marks : {0, 1, 2}) {
      SCOPED_TRACE(change.name + std::string(", marks ") + std::to_string(marks));
      Begin(change.before);
      ASSERT_TRUE(change.change(*pool_).ok());
      if (marks > 0) {
        ASSERT_TRUE(pool_->MarkOpen().ok());
      }
      if (marks > 1) {
        ASSERT_TRUE(pool_->MarkClosed().ok());
      }
      const CrashPool::Image whole = Durable();
      for (const int damaged : {0, 1}) {
        CrashPool::Image image = whole;
        DamageCopy(damaged, &image);
        ASSERT_TRUE(Open(image).ok());
        EXPECT_EQ(State(), change.after) << "copy " << damaged;
        EXPECT_TRUE(pool_->needs_recovery());
      }
    }
  }
}

// The power is cut at each fence, with any part of the bytes that are not durable. Then the next owner opens the pool,
// and marks that. From then on damage to one copy changes nothing.
TEST_F(MirrorRoleTest, PowerCutLeavesTheOldStateOrTheNewOne) {
  int old_ones = 0;
  int new_ones = 0;
  for (const RoleChange& change : RoleChanges()) {
    bool ended = false;
    for (size_t fence = 0; !ended; ++fence) {
      SCOPED_TRACE(change.name + std::string(", fence ") + std::to_string(fence));
      Begin(change.before);
      medium_->before_fence = [left = fence]() mutable {
        if (left-- == 0) throw Crash();
      };
      try {
        ASSERT_TRUE(change.change(*pool_).ok());
        ended = true;
      } catch (const Crash&) {
      }
      medium_->before_fence = nullptr;
      Random random(fence);
      std::vector<CrashPool::Image> cuts;
      for (int choice = 0; choice < 30; ++choice) {
        cuts.push_back(medium_->AfterPowerCut(random, choice % 3 * 0.5));
      }
      for (const CrashPool::Image& cut : cuts) {
        const Status opened = Open(cut);
        ASSERT_TRUE(opened.ok()) << opened.ToString();
        const MirrorState found = State();
        ASSERT_TRUE(found == change.after || (found == change.before && !ended)) << found;
        ++(found == change.after ? new_ones : old_ones);
        ASSERT_TRUE(pool_->MarkOpen().ok());
        const CrashPool::Image marked = Durable();
        for (const int damaged : {0, 1}) {
          CrashPool::Image image = marked;
          DamageCopy(damaged, &image);
          ASSERT_TRUE(Open(image).ok());
          EXPECT_EQ(State(), found) << "copy " << damaged;
        }
      }
    }
  }
  EXPECT_GT(old_ones, 300);
  EXPECT_GT(new_ones, 300);
}

TEST_F(MirrorRoleTest, RolesThatDoNotFollowAreRefused) {
  using enum MirrorRole;
  const auto refuse = [this](const MirrorState& before, MirrorRole role, uint64_t id, const char* part) {
    Begin(before);
    const CrashPool::Image image = Durable();
    ExpectRefused(pool_->MarkMirror(role, id, pool_->superblock().epoch), Code::kInvalidArgument, part);
    EXPECT_EQ(State(), before);
    EXPECT_TRUE(Durable() == image);
  };
  for (const MirrorRole now : {kFilling, kInSync}) {
    refuse({now, kId, 1}, kNone, 0, "only by a promotion");
    refuse({now, kId, 1}, kPrimary, 0, "only by a promotion");
    refuse({now, kId, 1}, kPrimary, kId, "only by a promotion");
    refuse({now, kId, 1}, kFilling, 0, "does not fit");
    refuse({now, kId, 1}, kInSync, 0, "does not fit");
    refuse({now, kId, 1}, static_cast<MirrorRole>(4), kId, "only by a promotion");
  }
  for (const MirrorRole now : {kNone, kPrimary}) {
    refuse({now, 0, 1}, kInSync, kId, "is no mirror");
    refuse({now, 0, 1}, kFilling, 0, "does not fit");
    refuse({now, 0, 1}, kNone, kId, "does not fit");
    refuse({now, 0, 1}, static_cast<MirrorRole>(4), kId, "does not fit");
  }
}

TEST_F(MirrorRoleTest, TheEpochDoesNotGoBackAndHasAnEnd) {
  using enum MirrorRole;
  Begin({kFilling, kId, 3});
  ExpectRefused(pool_->MarkMirror(kInSync, kId, 2), Code::kInvalidArgument, "does not go back");
  EXPECT_EQ(State(), (MirrorState{kFilling, kId, 3}));
  ASSERT_TRUE(pool_->MarkMirror(kInSync, kId, UINT32_MAX).ok());
  ExpectRefused(pool_->Promote(false), Code::kResourceExhausted, "too often");
  EXPECT_EQ(State(), (MirrorState{kInSync, kId, UINT32_MAX}));
}

TEST_F(MirrorRoleTest, OnlyAMirrorInSyncIsPromotedWithoutForce) {
  using enum MirrorRole;
  const auto refuse = [this](const MirrorState& before, bool force, Code code, const char* part) {
    Begin(before);
    const CrashPool::Image image = Durable();
    ExpectRefused(pool_->Promote(force), code, part);
    EXPECT_EQ(State(), before);
    EXPECT_TRUE(Durable() == image);
  };
  for (const bool force : {false, true}) {
    refuse({}, force, Code::kInvalidArgument, "is no mirror");
    refuse({kNone, 0, 1}, force, Code::kInvalidArgument, "is no mirror");
    refuse({kPrimary, kId, 1}, force, Code::kInvalidArgument, "is no mirror");
  }
  refuse({kFilling, kId, 1}, false, Code::kConflict, "not in sync");
  Begin({kInSync, kId, 1});
  ASSERT_TRUE(pool_->Promote(false).ok());
  refuse(State(), true, Code::kInvalidArgument, "is no mirror");
}

// A mirror has the bytes that a power cut of its primary could have left, also if the mirror was closed cleanly.
TEST_F(MirrorRoleTest, APromotedPoolNeedsRecovery) {
  using enum MirrorRole;
  for (const MirrorRole role : {kInSync, kFilling}) {
    Begin({role, kId, 1});
    EXPECT_FALSE(pool_->needs_recovery());
    ASSERT_TRUE(pool_->Promote(role == kFilling).ok());
    EXPECT_TRUE(pool_->needs_recovery());
    // The copy into a mirror that is not in sync may have ended anywhere.
    EXPECT_EQ(pool_->needs_verification(), role == kFilling);
    const CrashPool::Image image = Durable();
    for (const int copy : {0, 1}) EXPECT_EQ(CopyIn(image, copy).clean, 0U);
    ASSERT_TRUE(Open(image, false).ok());
    EXPECT_TRUE(pool_->needs_recovery());
    EXPECT_EQ(pool_->needs_verification(), role == kFilling);
  }
}

TEST_F(MirrorRoleTest, WhetherThePoolIsInUseStaysAsItIs) {
  using enum MirrorRole;
  const auto clean = [this](int copy) { return CopyIn(Durable(), copy).clean == 1; };
  Begin({kFilling, kId, 0});
  ASSERT_TRUE(pool_->MarkMirror(kInSync, kId, pool_->superblock().epoch).ok());
  EXPECT_TRUE(clean(0) && clean(1));
  ASSERT_TRUE(pool_->MarkOpen().ok());
  ASSERT_TRUE(pool_->MarkMirror(kFilling, kId, pool_->superblock().epoch).ok());
  EXPECT_FALSE(clean(0) || clean(1));
  const CrashPool::Image in_use = Durable();
  ASSERT_TRUE(pool_->MarkClosed().ok());
  ASSERT_TRUE(pool_->MarkMirror(kInSync, kId, pool_->superblock().epoch).ok());
  EXPECT_TRUE(clean(0) && clean(1));
  // It was not closed.
  ASSERT_TRUE(Open(in_use).ok());
  ASSERT_TRUE(pool_->MarkMirror(kFilling, 7, pool_->superblock().epoch).ok());
  EXPECT_FALSE(clean(0) || clean(1));
  // The damaged copy may have said that the pool is in use.
  for (const int damaged : {0, 1}) {
    CrashPool::Image image = made_;
    StoreState({kFilling, kId, 0}, &image);
    DamageCopy(damaged, &image);
    ASSERT_TRUE(Open(image).ok());
    ASSERT_TRUE(pool_->MarkMirror(kFilling, 7, pool_->superblock().epoch).ok());
    EXPECT_FALSE(clean(0) || clean(1));
    ASSERT_TRUE(Open(Durable()).ok());
    EXPECT_TRUE(pool_->needs_recovery());
  }
}

// --- Who opens it

TEST_F(MirrorRoleTest, AServerOpensAMirrorOnlyOnceItIsPromoted) {
  using enum MirrorRole;
  for (const auto& [role, part] : {std::pair{kFilling, "may lack"}, {kInSync, "in sync: it can serve"}}) {
    Begin({role, kId, 1});
    const CrashPool::Image image = Durable();
    ExpectRefused(Open(image, false), Code::kConflict, part);
    ExpectRefused(Open(image, false), Code::kConflict, "device: it is a mirror");
    ASSERT_TRUE(Open(image, true).ok());
    ASSERT_TRUE(pool_->Promote(true).ok());
    EXPECT_TRUE(Open(Durable(), false).ok());
  }
}

// The mirror may be promoted. Then a put that this server acknowledged alone would be lost.
TEST_F(MirrorRoleTest, APrimaryWithAMirrorIsServedOnlyWithMirrors) {
  using enum MirrorRole;
  const auto open_with_mirrors = [](const CrashPool::Image& image) {
    auto nvm = std::make_unique<CrashPool>(image);
    const auto keep = [](uint64_t /*id*/) { return Status(); };
    auto primary = mirror::PrimaryPool::Make(std::move(nvm), {}, 1, {journal::Stream::kCapacityMin, {}, kId, keep});
    EXPECT_TRUE(primary.ok()) << primary.status().ToString();
    return FormattedPool::Take(*std::move(primary), {"device"}, {.shards = 0}).status();
  };
  Begin({kPrimary, kId, 1});
  const CrashPool::Image image = Durable();
  ExpectRefused(Open(image, false), Code::kConflict, "it is a primary, and its mirror may be promoted");
  EXPECT_TRUE(Open(image, true).ok());
  EXPECT_TRUE(open_with_mirrors(image).ok());
  // Without such a mirror nobody is promoted.
  for (const MirrorState& state : {MirrorState{kPrimary, 0, 1}, MirrorState{kNone, 0, 1}, MirrorState{}}) {
    Begin(state);
    EXPECT_TRUE(Open(Durable(), false).ok()) << state;
    EXPECT_TRUE(open_with_mirrors(Durable()).ok()) << state;
  }
  // A server with mirrors serves no mirror.
  Begin({kInSync, kId, 1});
  ExpectRefused(open_with_mirrors(Durable()), Code::kConflict, "it is a mirror");
}

TEST_F(MirrorRoleTest, OnlyAPoolThatNoOtherDependsOnGrows) {
  using enum MirrorRole;
  const auto open = [this](const MirrorState& state) {
    Begin(state);
    CrashPool::Image image = Durable();
    image.resize(2 * image.size());
    ASSERT_TRUE(Open(image).ok());
  };
  for (const MirrorState& state : {MirrorState{kFilling, kId, 0}, {kInSync, kId, 0}, {kPrimary, kId, 0}}) {
    open(state);
    ExpectRefused(pool_->Grow(kRolePoolBytes * 3 / 2), Code::kConflict, "the same size");
    EXPECT_EQ(pool_->geometry().pool_size, kRolePoolBytes);
  }
  for (const MirrorState& state : {MirrorState{kPrimary, 0, 3}, {kNone, 0, 3}}) {
    open(state);
    const Status grown = pool_->Grow(kRolePoolBytes * 3 / 2);
    EXPECT_TRUE(grown.ok()) << grown.ToString();
    for (const int copy : {0, 1}) EXPECT_EQ(StateOf(CopyIn(Durable(), copy)), state);
  }
}

// --- In a file

class MirrorRoleInFileTest : public testing::Test {
 protected:
  MirrorRoleInFileTest() {
    pool_ = Take(PagePool::Image(kRolePoolBytes / sizeof(uint64_t)), kBoot, true);
    made_ = medium_->disk();
  }
  std::unique_ptr<FormattedPool> Take(PagePool::Image image, const format::BootId& boot, bool created = false) {
    auto file = std::make_unique<PagePool>(std::move(image), created, boot);
    medium_ = file.get();
    auto taken =
        FormattedPool::Take(std::move(file), {"file"},
                            created ? format::GeometryWish{kRolePoolBytes, 1} : format::GeometryWish{0, 0}, true);
    EXPECT_TRUE(taken.ok()) << taken.status().ToString();
    return *std::move(taken);
  }
  void Begin(const MirrorState& state) {
    PagePool::Image image = made_;
    StoreState(state, &image);
    pool_ = Take(std::move(image), kBoot);
  }

  PagePool::Image made_;
  PagePool* medium_ = nullptr;
  std::unique_ptr<FormattedPool> pool_;
};

// The power is cut before and after each sync. After the last one the disk has both copies.
TEST_F(MirrorRoleInFileTest, PowerCutLeavesTheOldStateOrTheNewOne) {
  int old_ones = 0;
  int new_ones = 0;
  for (const RoleChange& change : RoleChanges()) {
    bool ended = false;
    for (int step = 0; !ended; ++step) {
      SCOPED_TRACE(change.name + std::string(", step ") + std::to_string(step));
      Begin(change.before);
      Random random(static_cast<uint64_t>(step));
      medium_->on_sync = [left = step]() mutable {
        if (left-- == 0) throw Crash();
      };
      try {
        ASSERT_TRUE(change.change(*pool_).ok());
        ended = true;
        for (const int copy : {0, 1}) {
          EXPECT_EQ(StateOf(CopyIn(medium_->disk(), copy)), change.after);
        }
      } catch (const Crash&) {
      }
      medium_->on_sync = nullptr;
      for (const double written : {0.0, 0.5, 1.0}) {
        PagePool::Image disk = medium_->AfterPowerCut(random, written);
        const auto found = format::FindSuperblock(std::as_bytes(std::span(disk)));
        ASSERT_TRUE(found.ok());
        const MirrorState state = StateOf(found->superblock);
        ASSERT_TRUE(state == change.after || (state == change.before && !ended)) << state;
        ++(state == change.after ? new_ones : old_ones);
      }
    }
  }
  EXPECT_GT(old_ones, 20);
  EXPECT_GT(new_ones, 20);
}

// The first sync or the second fails. The pool goes on in its old state, and its next mark brings that to both copies.
TEST_F(MirrorRoleInFileTest, AFailedSyncChangesNothing) {
  for (const RoleChange& change : RoleChanges()) {
    for (const int syncs : {0, 1}) {
      for (const bool in_use : {false, true}) {
        SCOPED_TRACE(change.name + std::string(", syncs ") + std::to_string(syncs));
        Begin(change.before);
        if (in_use) {
          ASSERT_TRUE(pool_->MarkOpen().ok());
        }
        const format::Superblock before = pool_->superblock();
        const bool needed_recovery = pool_->needs_recovery();
        medium_->on_sync = [this, left = 2 * syncs]() mutable { medium_->fails = left-- <= 0; };
        EXPECT_EQ(change.change(*pool_).code(), Code::kUnavailable);
        format::Superblock after = pool_->superblock();
        EXPECT_EQ(after.generation, before.generation + static_cast<uint64_t>(syncs));
        after.generation = before.generation;
        after.crc = before.crc;
        EXPECT_EQ(std::memcmp(&after, &before, sizeof(after)), 0);
        EXPECT_EQ(pool_->needs_recovery(), needed_recovery);
        medium_->on_sync = nullptr;
        medium_->fails = false;
        ASSERT_TRUE(pool_->MarkUnvouched().ok());
        if (syncs == 0) {
          ASSERT_TRUE(pool_->MarkUnvouched().ok());
        }
        for (const int damaged : {0, 1}) {
          PagePool::Image disk = medium_->disk();
          DamageCopy(damaged, &disk);
          EXPECT_EQ(StateOf(format::FindSuperblock(std::as_bytes(std::span(disk)))->superblock), change.before);
        }
      }
    }
  }
}

// The machine was started again, so the page cache has lost bytes that the mirror had answered for.
TEST_F(MirrorRoleInFileTest, AMirrorThatLostBytesIsPromotedOnlyByForce) {
  const format::BootId next{2};
  Begin({MirrorRole::kInSync, kId, 1});
  ASSERT_TRUE(pool_->MarkOpen().ok());
  const PagePool::Image in_use = medium_->disk();
  EXPECT_TRUE(Take(in_use, kBoot)->Promote(false).ok());
  pool_ = Take(in_use, next);
  EXPECT_EQ(pool_->Promote(false).code(), Code::kConflict);
  ASSERT_TRUE(pool_->Promote(true).ok());
  EXPECT_TRUE(pool_->needs_verification());
  EXPECT_TRUE(Take(medium_->disk(), next)->needs_verification());
  // A sync failed, and perhaps the sync of that mark, too.
  for (const bool fails : {false, true}) {
    pool_ = Take(in_use, kBoot);
    medium_->fails = fails;
    EXPECT_EQ(pool_->MarkUnvouched().ok(), !fails);
    medium_->fails = false;
    EXPECT_EQ(pool_->Promote(false).code(), Code::kConflict);
  }
  // A clean close has brought all bytes to the disk.
  pool_ = Take(in_use, kBoot);
  ASSERT_TRUE(pool_->MarkClosed().ok());
  pool_ = Take(medium_->disk(), next);
  ASSERT_TRUE(pool_->Promote(false).ok());
  EXPECT_TRUE(pool_->needs_recovery());
  EXPECT_FALSE(pool_->needs_verification());
}

// A new role must not vouch for bytes that were lost before.
TEST_F(MirrorRoleInFileTest, ARoleKeepsTheBootOfThePool) {
  Begin({MirrorRole::kFilling, kId, 1});
  ASSERT_TRUE(pool_->MarkOpen().ok());
  pool_ = Take(medium_->disk(), {2});
  EXPECT_TRUE(pool_->needs_verification());
  ASSERT_TRUE(pool_->MarkMirror(MirrorRole::kInSync, kId, pool_->superblock().epoch).ok());
  EXPECT_TRUE(pool_->needs_verification());
  EXPECT_TRUE(Take(medium_->disk(), {2})->needs_verification());
}

}  // namespace
}  // namespace erda::server
