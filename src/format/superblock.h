// The superblock: the bytes that make a file or device a pool. It has two copies. The valid copy with the higher
// superblock generation counts. The next write goes to the other copy, so a torn write leaves one valid copy.
//
//   byte 0        8         12    16       32           40      44        48         112        128    144        192
//   +------------+---------+-----+--------+------------+-------+---------+----------+----------+------+----------+
//   | "ERDAPOOL" | format  | crc | uuid   | generation | clean | journal | geometry | boot     | hash | mirrors  |
//   |            | version |     |        |            |       |         | (64)     |          | seed |          |
//   +------------+---------+-----+--------+------------+-------+---------+----------+----------+------+----------+
//
//   mirrors:
//   byte 144      152     156           160  192
//   +-----------+-------+-------------+----+
//   | mirror id | epoch | mirror role | 0  |
//   +-----------+-------+-------------+----+
//
// boot: the boot id that nvm::Pool::boot told when the server marked the pool. With zeroes no byte waits in a page
// cache. With all ones nothing vouches for the bytes that were not synced.
//
// crc: CRC32C of the 192 bytes with the crc taken as 0.
//
// hash seed: a secret. The server tells it to the clients that it lets in, and no program prints it.
//
// mirrors: says whether the pool is a primary's or a mirror's (docs/mirror.md). These bytes are zeroes in a pool of an
// earlier version.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/hash.h"
#include "erda/status.h"
#include "format/check.h"
#include "format/geometry.h"
#include "format/reach.h"

namespace erda::format {

inline constexpr uint64_t kPoolMagic = 0x4c4f4f5041445245;  // "ERDAPOOL"
inline constexpr uint32_t kFormatVersion = 14;
// A pool with a journal has this version, unless it is a mirrored one. A program that knows no journal must not open
// it: the journal alone may have some of the acknowledged puts.
inline constexpr uint32_t kJournaledVersion = 15;
// A pool has this version if it is, or ever was, a primary with mirrors or a mirror. It may have a journal, too. A
// program that knows no mirrors must not open it: it would serve a mirror, or a primary that was replaced.
inline constexpr uint32_t kMirroredVersion = 16;
constexpr bool IsReadable(uint32_t format_version) {
  return format_version >= kFormatVersion && format_version <= kMirroredVersion;
}
inline constexpr uint64_t kSuperblockOffsets[2] = {0, 4096};

// The kernel's name for the time between two starts of the machine. All zeroes: none, or unknown.
using BootId = std::array<uint8_t, 16>;
inline constexpr BootId kNoBoot{};
// No machine has this boot id. It marks a pool whose unsynced bytes may be lost, or whose bytes are of several times.
inline constexpr BootId kUnvouchedBoot = [] {
  BootId boot{};
  boot.fill(0xff);
  return boot;
}();

enum class MirrorRole : uint32_t {
  kNone = 0,     // The pool is no mirror, and has no mirrors.
  kPrimary = 1,  // A primary. It may have mirrors.
  kFilling = 2,  // A mirror that must not be promoted: it may lack puts that the primary has acknowledged.
  kInSync = 3,   // A mirror that may be promoted.
};
constexpr bool IsMirror(MirrorRole role) { return role == MirrorRole::kFilling || role == MirrorRole::kInSync; }

struct Superblock {
  uint64_t magic;
  uint32_t format_version;
  uint32_t crc;
  std::array<uint8_t, 16> uuid;
  uint64_t generation;
  uint32_t clean;      // 1: a server closed the pool cleanly, and no version was in flight.
  uint32_t journaled;  // 1: the pool has a journal (docs/journal.md). Its format version is then not kFormatVersion.
  Geometry geometry;
  BootId boot;
  HashSeed hash_seed;
  uint64_t mirror_id;    // Of a mirror: its own. Of a primary: that of the mirror that may be promoted; 0: none may be.
  uint32_t epoch;        // It grows by one with each promotion.
  uint32_t mirror_role;  // A MirrorRole.
  std::array<uint64_t, 4> reserved;

  [[nodiscard]] constexpr MirrorRole role() const { return static_cast<MirrorRole>(mirror_role); }
  [[nodiscard]] constexpr bool is_mirror() const { return IsMirror(role()); }
  // Returns true for a primary whose mirror may be promoted. It must not acknowledge a put that the mirror lacks.
  [[nodiscard]] constexpr bool names_mirror() const { return role() == MirrorRole::kPrimary && mirror_id != 0; }
};
ERDA_FORMAT_SIZE(Superblock, 192);
ERDA_FORMAT_FIELD(Superblock, magic, 0);
ERDA_FORMAT_FIELD(Superblock, format_version, 8);
ERDA_FORMAT_FIELD(Superblock, crc, 12);
ERDA_FORMAT_FIELD(Superblock, uuid, 16);
ERDA_FORMAT_FIELD(Superblock, generation, 32);
ERDA_FORMAT_FIELD(Superblock, clean, 40);
ERDA_FORMAT_FIELD(Superblock, journaled, 44);
ERDA_FORMAT_FIELD(Superblock, geometry, 48);
ERDA_FORMAT_FIELD(Superblock, boot, 112);
ERDA_FORMAT_FIELD(Superblock, hash_seed, 128);
ERDA_FORMAT_FIELD(Superblock, mirror_id, 144);
ERDA_FORMAT_FIELD(Superblock, epoch, 152);
ERDA_FORMAT_FIELD(Superblock, mirror_role, 156);
ERDA_FORMAT_FIELD(Superblock, reserved, 160);

[[nodiscard]] uint32_t SuperblockCrc(const Superblock& superblock);
// Returns whether a superblock can say this of mirrors. A mirror has an id, a pool without a role has none, and a
// version before kMirroredVersion says nothing.
[[nodiscard]] bool MirrorFieldsFit(const Superblock& superblock);

struct FoundSuperblock {
  Superblock superblock;
  int copy;            // 0 or 1.
  bool other_damaged;  // The other copy was written, and does not verify. A crash cut its write off, or it is damaged.
};
// Returns the valid copy that counts. Returns kCorruption if neither copy is a superblock; the message is about the
// better one. Returns kInvalidArgument for another format version, and for a pool of more bytes than the span.
Result<FoundSuperblock> FindSuperblock(std::span<const std::byte> pool_bytes);
// The same for the first bytes of a pool of `pool_size` bytes.
Result<FoundSuperblock> FindSuperblock(std::span<const std::byte> front, uint64_t pool_size);

// The last move of an index entry: its new slot << 8, plus the distance in slots from its former slot. The former slot
// is before the new one. 0: the shard never moved an entry.
class MoveWord {
 public:
  constexpr MoveWord() = default;
  explicit constexpr MoveWord(uint64_t raw) : raw_(raw) {}
  static constexpr MoveWord Of(uint64_t from, uint64_t to) { return MoveWord((to << kShift) | (to - from)); }

  [[nodiscard]] constexpr uint64_t raw() const { return raw_; }
  [[nodiscard]] constexpr bool none() const { return raw_ == 0; }
  [[nodiscard]] constexpr uint64_t to() const { return raw_ >> kShift; }
  [[nodiscard]] constexpr uint64_t from() const { return to() - distance(); }
  // Returns whether such a move can be. If not, the word is damaged. REQUIRES: !none().
  [[nodiscard]] constexpr bool Fits(uint64_t index_slots) const {
    return distance() != 0 && distance() < kNeighbourhood && distance() <= to() && to() < index_slots;
  }

 private:
  static constexpr int kShift = 8;
  static_assert(kNeighbourhood <= 1 << kShift);
  [[nodiscard]] constexpr uint64_t distance() const { return raw_ & ((1 << kShift) - 1); }
  uint64_t raw_ = 0;
};

// A number of 48 bits << 16, and a check of it. A flipped bit must not let all values expire, or hide keys. 0: the
// shard never stored a number.
class CheckedWord {
 public:
  constexpr CheckedWord() = default;
  explicit constexpr CheckedWord(uint64_t raw) : raw_(raw) {}
  static constexpr CheckedWord Of(uint64_t number) { return CheckedWord(number << kShift | CheckOf(number)); }

  [[nodiscard]] constexpr uint64_t raw() const { return raw_; }
  // Returns 0 if the shard never stored a number, or if the word is damaged.
  [[nodiscard]] constexpr uint64_t number() const {
    const uint64_t number = raw_ >> kShift;
    return (raw_ & 0xffff) == CheckOf(number) ? number : 0;
  }
  [[nodiscard]] constexpr bool damaged() const { return raw_ != 0 && number() == 0; }

 private:
  static constexpr int kShift = 16;
  static constexpr uint64_t CheckOf(uint64_t number) { return (number * 0x9e3779b97f4a7c15U) >> 48; }
  uint64_t raw_ = 0;
};

// The record of one shard.
//
//   byte 0               8          16         24         32         40         48           56          64
//   +-------------------+----------+----------+----------+----------+----------+------------+-----------+
//   | version limit     | keys     | move     | time     | blocks   | reaches  | rest place | rest hash |
//   +-------------------+----------+----------+----------+----------+----------+------------+-----------+
//
// version limit: every version that this shard ever gave out is below it.
// keys: the used slots of its index at the last clean close, so that the next start need not count them.
// move: a MoveWord. The shard writes it before the move. After a crash the entry may stand in both slots.
// time: a CheckedWord of milliseconds of Unix time. The `time` of the shard's control block never passed it
// (server/control/expiry_clock.h).
// blocks: a CheckedWord of the number of blocks of its index. 0: the index has its first blocks alone. One store of
// this word splits a block.
// reaches: a CheckedWord of Reaches (reach.h). If it is damaged, the farthest reaches are right.
// rest place, rest hash: the sum over the index at the last clean close (rest_sum.h). 0: unknown.
struct ShardRecord {
  uint64_t version_limit;
  uint64_t keys;
  uint64_t move;
  uint64_t time;
  uint64_t blocks;
  uint64_t reaches;
  uint64_t rest_place;
  uint64_t rest_hash;
};
ERDA_FORMAT_SIZE(ShardRecord, 64);
ERDA_FORMAT_FIELD(ShardRecord, version_limit, 0);
ERDA_FORMAT_FIELD(ShardRecord, keys, 8);
ERDA_FORMAT_FIELD(ShardRecord, move, 16);
ERDA_FORMAT_FIELD(ShardRecord, time, 24);
ERDA_FORMAT_FIELD(ShardRecord, blocks, 32);
ERDA_FORMAT_FIELD(ShardRecord, reaches, 40);
ERDA_FORMAT_FIELD(ShardRecord, rest_place, 48);
ERDA_FORMAT_FIELD(ShardRecord, rest_hash, 56);
// Returns the reaches that a shard's record tells.
constexpr Reaches ReachesIn(CheckedWord record) {
  return record.damaged() ? Reaches::Farthest() : Reaches(record.number());
}
constexpr uint64_t ShardRecordOffset(uint32_t shard) { return kShardRecordsOffset + shard * sizeof(ShardRecord); }
static_assert(kShardRecordsOffset + kShardsMax * sizeof(ShardRecord) <= kRegionTableOffset);

}  // namespace erda::format
