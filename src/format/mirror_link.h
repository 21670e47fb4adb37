// The messages of a mirror and its primary about the stream of one shard (docs/mirror.md, "The link").
//
// After the hellos all messages are WriteImms, and their immediates are numbers. The stream's places are multiples of
// 16, so they are told in units of 16 bytes. The mirror has a ring: the byte at place p of the stream is byte
// p % size of the ring.
//
//   primary to mirror   0: the mirror has joined at the end of all pieces that came before
//                       n: the Writes of this message have placed n more units in the ring, a piece
//   mirror to primary   at first: the stream goes on n units after MirrorHello::begin
//                       0: the mirror asks to join
//                       0 again: the mirror is in sync in all shards, and its superblock says so
//                       n: the mirror has stored n more units, which is the end of a piece
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "format/check.h"
#include "format/hello.h"

namespace erda::format {

// The registered memory that the mirror offers to the primary: its ring, for Writes. The primary offers its pool, as
// kPoolRegion, for the Reads of a copy.
inline constexpr uint32_t kMirrorRingRegion = 0;
// The size of a ring is a multiple of the unit, so an entry's header never goes around its end. It is at least twice
// the longest entry, so an entry goes around it once at most.
inline constexpr uint64_t kMirrorRingBytesMin = 256 << 10;
inline constexpr uint64_t kMirrorRingBytesMax = uint64_t{1} << 34;
constexpr bool IsMirrorRingSize(uint64_t bytes) {
  return std::has_single_bit(bytes) && bytes >= kMirrorRingBytesMin && bytes <= kMirrorRingBytesMax;
}

inline constexpr uint64_t kMirrorUnit = 16;
inline constexpr uint32_t kMirrorWord = 0;
// The most pieces under way: sent, and not answered. Of each end's messages, these and one that is 0 may not be taken
// yet. (The mirror says the second 0 after the primary has taken the first one.) An end may not know of the last
// messages that its peer has taken, up to half the depth.
inline constexpr uint32_t kMirrorPiecesMax = 32;
inline constexpr uint32_t kMirrorMessageDepth = 2 * (kMirrorPiecesMax + 1);
// The most bytes that a stream keeps. A message of the mirror tells a place by its distance.
inline constexpr uint64_t kMirrorStreamBytesMax = uint64_t{1} << 35;
static_assert(kMirrorStreamBytesMax / kMirrorUnit <= UINT32_MAX && kMirrorRingBytesMax / kMirrorUnit <= UINT32_MAX);

// The flag of a MirrorHello: the primary's pool may lack what the primary has answered. Its machine has started again,
// and the pool was in memory.
inline constexpr uint16_t kMirrorMayLack = 1;
// The longest time in milliseconds for which a mirror believes that a primary does not go on alone. A new
// process of a primary does not go on alone sooner. The process before it may have told a longer time than its own.
inline constexpr uint16_t kMirrorAloneAfterMax = 1000;

// Follows the HelloReply in the private data for a mirror.
struct MirrorHello {
  std::array<uint8_t, 16> stream;  // The secret of the stream's life.
  // The primary has the stream from `begin` to `end`. It keeps these bytes while the link lasts, until the mirror has
  // stored them.
  uint64_t begin;
  uint64_t end;
  // These are the same for all shards.
  uint32_t epoch;  // Of the primary's superblock.
  uint16_t flags;
  uint16_t alone_after;  // Milliseconds after a lost link in which the primary does not go on alone; 0: it never does.
};
ERDA_FORMAT_SIZE(MirrorHello, 40);
ERDA_FORMAT_FIELD(MirrorHello, begin, 16);
ERDA_FORMAT_FIELD(MirrorHello, end, 24);
ERDA_FORMAT_FIELD(MirrorHello, epoch, 32);
ERDA_FORMAT_FIELD(MirrorHello, flags, 36);
ERDA_FORMAT_FIELD(MirrorHello, alone_after, 38);

// Returns true if a primary can have said this.
constexpr bool IsSound(const MirrorHello& hello) {
  return hello.begin % kMirrorUnit == 0 && hello.end % kMirrorUnit == 0 && hello.begin <= hello.end &&
         hello.end - hello.begin <= kMirrorStreamBytesMax && hello.end < uint64_t{1} << 63 &&
         (hello.flags & ~kMirrorMayLack) == 0;
}

}  // namespace erda::format
