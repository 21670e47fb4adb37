// Decides how a put brings its value to the server, as a pure function. The first row that fits counts:
//
//   asked for  fits into  writes into       chunk       way
//              a request  the pool
//   inline     yes        -                 -           kInline
//   inline     no         -                 -           kTooLarge
//   delegate   -          pool or windows   may have    kDelegated
//   auto       no         pool or windows   may have,   kDelegated: one large put alone is not worth a chunk
//                                           not first
//   delegate   -          staging, windows  -           kStaged
//   auto       no         staging, windows  -           kStaged
//   delegate   yes        -                 -           kInline
//   auto       yes        -                 -           kInline
//   -          -          pool              -           kReserved
//   -          -          otherwise         -           kNoRight
//
// A put with a condition may not have a chunk, since the shard judges the condition before it gives space. A put whose
// chunk was revoked, or that found no chunk with room, may not have one either.
//
// docs/benchmarks/results.md, "Put paths by size", says why kAuto chooses so.
#pragma once

#include <cstdint>

#include "erda/client.h"
#include "format/hello.h"

namespace erda::client {

enum class PutWay : uint8_t {
  kUndecided,
  kInline,     // The request carries the value.
  kReserved,   // The shard reserves space, and the client writes the value there.
  kDelegated,  // The client writes the value into a chunk of the log that it has.
  kStaged,     // The client writes the value into its staging memory at the server, and the shard copies it.
  kTooLarge,   // The put fails: the value does not fit into a request, and the caller wants that way.
  kNoRight,    // The put fails: the client may not write into the pool.
};

struct PutFacts {
  PutPath asked = PutPath::kAuto;
  bool fits_inline = false;
  format::Placing placing = format::Placing::kNone;
  bool may_have_chunk = false;  // The put has no condition, and has not lost its chunk.
  bool first_large = false;     // No earlier put on this link was too large for a request.
};

// Returns true if the put goes inline whatever the other facts are.
[[nodiscard]] constexpr bool IsInline(PutPath asked, bool fits_inline) {
  return fits_inline && (asked == PutPath::kAuto || asked == PutPath::kInline);
}

[[nodiscard]] constexpr PutWay DecidePutWay(const PutFacts& facts) {
  using format::Placing;
  if (facts.asked == PutPath::kInline) return facts.fits_inline ? PutWay::kInline : PutWay::kTooLarge;
  const bool has_windows = facts.placing == Placing::kWindow;
  const bool large = facts.asked == PutPath::kAuto && !facts.fits_inline;
  const bool has_chunks = (facts.placing == Placing::kPool || has_windows) && facts.may_have_chunk;
  const bool wants_chunk = facts.asked == PutPath::kDelegate || (large && !facts.first_large);
  if (has_chunks && wants_chunk) return PutWay::kDelegated;
  const bool has_staging = facts.placing == Placing::kStaging || has_windows;
  if (has_staging && (facts.asked == PutPath::kDelegate || large)) return PutWay::kStaged;
  if (facts.asked != PutPath::kReserve && facts.fits_inline) return PutWay::kInline;
  return facts.placing == Placing::kPool ? PutWay::kReserved : PutWay::kNoRight;
}

}  // namespace erda::client
