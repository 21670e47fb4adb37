#include "journal/front_part.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "journal/ring_fixture.h"
#include "server/crash_pool.h"

namespace erda::journal {
namespace {

using server::Crash;
using server::CrashPool;

constexpr uint64_t kOffset = 256;
constexpr uint64_t kCapacity = 256;
constexpr uint64_t kSize = sizeof(FrontHeader) + kCapacity;
constexpr uint64_t kPoolBytes = kOffset + kSize + 64;

// The stream has the same byte at a place each time.
std::vector<std::byte> StreamBytes(Place from, uint64_t size) {
  std::vector<std::byte> bytes(size);
  for (uint64_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((from + i) * 131 % 251);
  return bytes;
}

class FrontPartTest : public testing::Test {
 protected:
  bool Append(FrontPart& part, Place from, uint64_t size) {
    const std::vector<std::byte> bytes = StreamBytes(from, size);
    const std::span<const std::byte> all(bytes);
    const std::span<const std::byte> parts[] = {all.first(size / 2), all.subspan(size / 2)};
    return part.Append(from, parts);
  }
  static void ExpectHas(const FrontPart& part, Place from, Place end) {
    const FrontPart::Found found = part.Read();
    EXPECT_EQ(found.from, from);
    EXPECT_EQ(part.end(), end);
    EXPECT_EQ(found.bytes, StreamBytes(from, end - from));
  }

  CrashPool pool_{kPoolBytes};
  nvm::Writer nvm_{pool_};
};

TEST_F(FrontPartTest, KeepsWhatWasAppended) {
  FrontPart part = FrontPart::Format(nvm_, kOffset, kSize, kRingIdentity, 3, 1000);
  ExpectHas(part, 1000, 1000);
  ASSERT_TRUE(Append(part, 1000, 96));
  ASSERT_TRUE(Append(part, 1096, 32));
  auto again = FrontPart::Open(nvm_, kOffset, kSize, kRingIdentity);
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ(again->epoch(), 3U);
  ExpectHas(*again, 1000, 1128);
  ASSERT_TRUE(Append(*again, 1128, 16));
  ExpectHas(*again, 1000, 1144);
}

TEST_F(FrontPartTest, FullPartRefusesUntilSomethingIsReleased) {
  FrontPart part = FrontPart::Format(nvm_, kOffset, kSize, kRingIdentity, 1, 0);
  ASSERT_TRUE(Append(part, 0, 240));
  EXPECT_FALSE(Append(part, 240, 32));
  ExpectHas(part, 0, 240);
  part.Release(64);
  ASSERT_TRUE(Append(part, 240, 32)) << "it begins at the front of the area again";
  ExpectHas(part, 64, 272);
  EXPECT_FALSE(Append(part, 272, 64));
  EXPECT_FALSE(Append(part, 272, kCapacity + 16)) << "more than the part ever has room for";
  part.Release(1000);
  ExpectHas(part, 272, 272);
  ASSERT_TRUE(Append(part, 272, kCapacity));
  ExpectHas(part, 272, 272 + kCapacity);
}

// The disk has them.
TEST_F(FrontPartTest, BytesMayBeLeftOut) {
  FrontPart part = FrontPart::Format(nvm_, kOffset, kSize, kRingIdentity, 1, 0);
  ASSERT_TRUE(Append(part, 0, 200));
  EXPECT_FALSE(Append(part, 500, kCapacity + 16));
  ExpectHas(part, 0, 200);
  ASSERT_TRUE(Append(part, 500, kCapacity));
  ExpectHas(part, 500, 500 + kCapacity);
  const auto again = FrontPart::Open(nvm_, kOffset, kSize, kRingIdentity);
  ASSERT_TRUE(again.ok());
  ExpectHas(*again, 500, 500 + kCapacity);
}

TEST_F(FrontPartTest, OtherPartsAreNotTaken) {
  EXPECT_EQ(FrontPart::Open(nvm_, kOffset, kSize, kRingIdentity).status().code(), Code::kNotFound) << "a blank one";
  (void)FrontPart::Format(nvm_, kOffset, kSize, kRingIdentity, 1, 0);
  RingIdentity other = kRingIdentity;
  other.secret[3] ^= 1;
  EXPECT_EQ(FrontPart::Open(nvm_, kOffset, kSize, other).status().code(), Code::kNotFound);
  other = kRingIdentity;
  ++other.shard;
  EXPECT_EQ(FrontPart::Open(nvm_, kOffset, kSize, other).status().code(), Code::kNotFound);
  EXPECT_EQ(FrontPart::Open(nvm_, kOffset, kSize - 64, kRingIdentity).status().code(), Code::kNotFound);
  nvm_.Store64(kOffset + offsetof(FrontHeader, end), kCapacity + 1);
  EXPECT_EQ(FrontPart::Open(nvm_, kOffset, kSize, kRingIdentity).status().code(), Code::kCorruption);
}

TEST_F(FrontPartTest, ClearedPartIsBlank) {
  const auto is_free = [&](const RingIdentity& identity) { return FrontPart::IsFree(nvm_, kOffset, kSize, identity); };
  RingIdentity other = kRingIdentity;
  other.secret[15] ^= 1;
  EXPECT_TRUE(is_free(kRingIdentity));
  FrontPart part = FrontPart::Format(nvm_, kOffset, kSize, kRingIdentity, 1, 0);
  ASSERT_TRUE(Append(part, 0, 32));
  EXPECT_FALSE(is_free(other));
  // A Format or a Clear that was cut off.
  nvm_.Store64(kOffset, 0);
  EXPECT_TRUE(is_free(kRingIdentity));
  EXPECT_FALSE(is_free(other));
  FrontPart::Clear(nvm_, kOffset);
  EXPECT_TRUE(is_free(other));
  EXPECT_TRUE(IsZero(nvm_.Bytes(kOffset, sizeof(FrontHeader))));
  EXPECT_TRUE(pool_.IsDurable(kOffset, sizeof(FrontHeader)));
  EXPECT_EQ(FrontPart::Open(nvm_, kOffset, kSize, kRingIdentity).status().code(), Code::kNotFound);
}

// A process that is killed before its fence leaves its stores in the caches. The next one counts them as held.
TEST_F(FrontPartTest, OpenMakesDurableWhatItFinds) {
  FrontPart part = FrontPart::Format(nvm_, kOffset, kSize, kRingIdentity, 1, 0);
  ASSERT_TRUE(Append(part, 0, 32));
  int fences = 0;
  pool_.before_fence = [&] {
    if (++fences == 2) throw Crash();  // The first one is that of the bytes.
  };
  EXPECT_THROW((void)Append(part, 32, 64), Crash);
  pool_.before_fence = nullptr;
  CrashPool next(pool_.AfterProcessEnd([] { return false; }), nvm::Durability::kPowerSafe);
  nvm::Writer writer(next);
  ASSERT_FALSE(next.IsDurable(kOffset, sizeof(FrontHeader)));
  const auto found = FrontPart::Open(writer, kOffset, kSize, kRingIdentity);
  ASSERT_TRUE(found.ok());
  ExpectHas(*found, 0, 96);
  EXPECT_TRUE(next.IsDurable(kOffset, sizeof(FrontHeader)));
}

// --- Power cuts

// A life of a part: appends, releases, and bytes that are left out. It ends at some fence. A restart finds all
// that was acknowledged and not released, and only bytes of the stream.
class FrontPartLife {
 public:
  FrontPartLife(nvm::Writer& nvm, uint64_t seed) : nvm_(nvm), random_(seed) {}

  void Run() {
    FrontPart part = FrontPart::Format(nvm_, kOffset, kSize, kRingIdentity, 1, 0);
    formatted = true;
    while (true) {
      if (random_.Chance(0.4)) {
        released = random_.Between(released, held);
        part.Release(released);
      }
      Place from = held;
      if (random_.Chance(0.1)) {
        from += 16 * random_.Uniform(40);  // The disk has the stream up to there.
        if (from > held) released = held = from;
      }
      const uint64_t size = 16 * random_.Between(1, 10);
      const std::vector<std::byte> bytes = StreamBytes(from, size);
      const std::span<const std::byte> all[] = {bytes};
      trying = from + size;
      if (part.Append(from, all)) held = trying;
    }
  }

  bool formatted = false;
  Place released = 0;
  Place held = 0;
  Place trying = 0;

 private:
  nvm::Writer& nvm_;
  Random random_;
};

TEST(FrontPartCutTest, RestartFindsAllThatWasHeldAndNothingElse) {
  int with_bytes = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    for (uint64_t cut = 0; cut < 60; ++cut) {
      CrashPool pool(kPoolBytes);
      nvm::Writer nvm(pool);
      FrontPartLife life(nvm, seed);
      uint64_t fences = 0;
      pool.before_fence = [&] {
        if (fences++ == cut) throw Crash();
      };
      EXPECT_THROW(life.Run(), Crash);
      pool.before_fence = nullptr;
      Random random(seed * 1000 + cut);
      for (const double kept : {0.0, 0.5, 1.0}) {
        CrashPool after(pool.AfterPowerCut(random, kept));
        nvm::Writer writer(after);
        const auto part = FrontPart::Open(writer, kOffset, kSize, kRingIdentity);
        if (!life.formatted) continue;
        ASSERT_TRUE(part.ok()) << part.status().ToString();
        const FrontPart::Found found = part->Read();
        const bool held = life.held == life.released || (found.from <= life.released && part->end() >= life.held);
        ASSERT_TRUE(held) << seed << " " << cut << ": " << found.from << " to " << part->end() << " instead of "
                          << life.released << " to " << life.held;
        ASSERT_LE(part->end(), std::max(life.trying, life.held));
        ASSERT_EQ(found.bytes, StreamBytes(found.from, found.bytes.size())) << seed << " " << cut;
        with_bytes += found.bytes.empty() ? 0 : 1;
      }
    }
  }
  EXPECT_GT(with_bytes, 1000);
}

// Bytes of a part before the call that is cut off.
std::vector<std::byte> BytesBeforeTheCut() { return StreamBytes(0, 64); }

// Returns what NVM has after the power went off in the fence number `cut` of the call. The part had some bytes before.
template <class Call>
CrashPool::Image NvmAfterCut(uint64_t cut, uint64_t seed, const Call& call) {
  CrashPool pool(kPoolBytes);
  nvm::Writer nvm(pool);
  FrontPart part = FrontPart::Format(nvm, kOffset, kSize, kRingIdentity, 1, 0);
  const std::vector<std::byte> bytes = BytesBeforeTheCut();
  const std::span<const std::byte> all[] = {bytes};
  EXPECT_TRUE(part.Append(0, all));
  uint64_t fences = 0;
  pool.before_fence = [&] {
    if (fences++ == cut) throw Crash();
  };
  EXPECT_THROW(call(nvm), Crash);
  pool.before_fence = nullptr;
  Random random(seed);
  return pool.AfterPowerCut(random, 0.5);
}

// A part that is half cleared has no bytes, and belongs to nobody.
TEST(FrontPartCutTest, ClearThatIsCutLeavesAFreePart) {
  int free_parts = 0;
  for (uint64_t cut = 0; cut < 2; ++cut) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
      CrashPool after(NvmAfterCut(cut, seed, [](nvm::Writer& nvm) { FrontPart::Clear(nvm, kOffset); }));
      nvm::Writer writer(after);
      const auto left = FrontPart::Open(writer, kOffset, kSize, kRingIdentity);
      if (left.ok()) {
        EXPECT_EQ(cut, 0U) << "the magic number goes first";
        EXPECT_EQ(left->Read().bytes, BytesBeforeTheCut()) << "nothing else has changed";
      } else {
        EXPECT_TRUE(FrontPart::IsFree(writer, kOffset, kSize, kRingIdentity));
        ++free_parts;
      }
    }
  }
  EXPECT_GT(free_parts, 50);
}

// The part is empty until Format has come to its end, whatever stood there.
TEST(FrontPartCutTest, FormatThatIsCutLeavesNoBytes) {
  for (uint64_t cut = 0; cut < 3; ++cut) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
      CrashPool after(NvmAfterCut(
          cut, seed, [](nvm::Writer& nvm) { (void)FrontPart::Format(nvm, kOffset, kSize, kRingIdentity, 2, 4096); }));
      nvm::Writer writer(after);
      const auto part = FrontPart::Open(writer, kOffset, kSize, kRingIdentity);
      ASSERT_TRUE(part.ok()) << part.status().ToString();
      // The first fence may be cut before anything has changed.
      const bool is_old = part->epoch() == 1 && part->end() == 64;
      EXPECT_TRUE(part->Read().bytes.empty() || (cut == 0 && is_old)) << cut << " " << seed;
    }
  }
}

}  // namespace
}  // namespace erda::journal
