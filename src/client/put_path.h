// Decides how an operation of put.h travels to the server, as a pure function. The first row that fits counts:
//
//   token     kind   fits into  asked for     fits into  writes into       chunk      way
//             a put  the pool                 a request  the pool
//   reads     -      -          -             -          -                 -          kReadOnly
//   writes    no     -          -             -          -                 -          kKeyed
//   writes    yes    no         -             -          -                 -          kTooLargeForPool
//   writes    yes    yes        inline, auto  yes        -                 -          kInline
//   writes    yes    yes        inline        no         -                 -          kTooLargeForRequest
//   writes    yes    yes        delegate      -          pool or windows   may have   kDelegated
//   writes    yes    yes        auto          no         pool or windows   may have,  kDelegated: one large put alone
//                                                                          not first  is not worth a chunk
//   writes    yes    yes        delegate      -          staging, windows  -          kStaged
//   writes    yes    yes        auto          no         staging, windows  -          kStaged
//   writes    yes    yes        delegate      yes        -                 -          kInline
//   writes    yes    yes        -             -          pool              -          kReserved
//   writes    yes    yes        -             -          otherwise         -          kNoRight
//
// A put with a condition may not have a chunk, since the shard judges the condition before it gives space. A put whose
// chunk was revoked, or that found no chunk with room, may not have one either.
//
// A put through a window is kDelegated, and no separate way. Its requests, its replies and its steps are those of
// every delegated put. Only its Write differs: it carries the key of the window, which came with the chunk.
//
// Each refusal is a row, so no other place decides that a put fails before it is sent. Room is no fact of the table: a
// put that finds no request slot or no staging room waits, and keeps its way.
//
// docs/benchmarks/results.md, "Put paths by size", says why kAuto chooses so. Any thread may call it.
#pragma once

#include <cstdint>

#include "erda/client.h"
#include "format/hello.h"

namespace erda::client {

enum class PutWay : uint8_t {
  kUndecided,
  kKeyed,               // No put: one request has the key, and the amount of an increment.
  kInline,              // The request carries the value.
  kReserved,            // The shard reserves space, and the client writes the value there.
  kDelegated,           // The client writes the value into a chunk of the log that it has.
  kStaged,              // The client writes the value into its staging memory at the server, and the shard copies it.
  kReadOnly,            // The operation fails: the client's token is for reading only.
  kTooLargeForPool,     // The put fails: no segment of the pool holds the value.
  kTooLargeForRequest,  // The put fails: the value does not fit into a request, and the caller wants that way.
  kNoRight,             // The put fails: the client may not write into the pool.
};

struct PutFacts {
  bool may_write = true;  // The client's token is not for reading only.
  bool is_put = true;     // Neither a delete nor an increment nor cleaning.
  bool fits_pool = true;
  PutPath asked = PutPath::kAuto;
  bool fits_inline = false;
  format::Placing placing = format::Placing::kNone;
  bool may_have_chunk = false;  // The put has no condition, and has not lost its chunk.
  bool first_large = false;     // No earlier put on this link was too large for a request.
};

[[nodiscard, gnu::always_inline]] constexpr PutWay DecidePutWay(const PutFacts& facts) {
  using format::Placing;
  if (!facts.may_write) return PutWay::kReadOnly;
  if (!facts.is_put) return PutWay::kKeyed;
  if (!facts.fits_pool) return PutWay::kTooLargeForPool;
  const bool is_auto = facts.asked == PutPath::kAuto;
  const bool wants_inline = facts.asked == PutPath::kInline;
  if ((is_auto || wants_inline) && facts.fits_inline) return PutWay::kInline;
  if (wants_inline) return PutWay::kTooLargeForRequest;
  const bool delegates = facts.asked == PutPath::kDelegate;
  const bool has_windows = facts.placing == Placing::kWindow;
  const bool has_chunks = (facts.placing == Placing::kPool || has_windows) && facts.may_have_chunk;
  if (has_chunks && (delegates || (is_auto && !facts.first_large))) return PutWay::kDelegated;
  const bool has_staging = facts.placing == Placing::kStaging || has_windows;
  if (has_staging && (delegates || is_auto)) return PutWay::kStaged;
  if (delegates && facts.fits_inline) return PutWay::kInline;
  return facts.placing == Placing::kPool ? PutWay::kReserved : PutWay::kNoRight;
}

}  // namespace erda::client
