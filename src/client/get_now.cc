#include "client/get_now.h"

#include "base/hash.h"
#include "client/expiry.h"
#include "client/get_op.h"
#include "client/link.h"
#include "format/object.h"

namespace erda::client {

namespace {

// One in this number of gets without an operation is left to an operation.
constexpr uint32_t kGetsPerPoll = 256;

}  // namespace

// Does not count a Read in vain: the get that follows looks there again. One get in many is left to an operation, which
// polls for messages of the server. So is every get while the client has a chunk, since the server may revoke it.
InstantGets::Outcome InstantGets::GetNow(std::string_view key, VersionedView* found) {
  const KnownPool& pool = connections_.pool();
  if (operations_.in_flight() > 0 || operations_.polling() || !pool.is_known || ++gets_ % kGetsPerPoll == 0) {
    return Outcome::kNo;
  }
  if (key.empty() || key.size() > format::kKeyBytesMax) return Outcome::kNo;
  const uint64_t key_hash = HashKeyInPlace(key, pool.hash_seed);
  Link& link = connections_.links().OfKey(key_hash);
  if (!link.up() || connections_.links().HasChunks()) return Outcome::kNo;
  const auto located = locations_.Find(link, key_hash);
  if (!located || located->bytes > kMessageBytes) return Outcome::kNo;
  uint64_t offset = 0;
  uint64_t in_segment = 0;
  const bool can_be =
      link.known.Resolve(located->slot, located->at, &offset, &in_segment) && located->bytes <= in_segment;
  const Operation& free = operations_.free_slot();
  const auto to = free.memory.subspan(kMessageAt, located->bytes);
  const uint64_t time_before = link.known.time();
  if (!can_be || !link.channel()->ReadNow(to, {format::kPoolRegion, offset})) return Outcome::kNo;
  const format::ObjectView view = InspectLocated(link, *located, to);
  if (!IsNewest(view, key)) return Outcome::kNo;
  Expiry expiry = Expiry::kLives;
  if (view.deadline != 0) {
    if (!link.channel()->ReadNow(free.time_copy(), kTimeWord)) return Outcome::kNo;
    expiry = ExpiryOf(link, clock_, view.deadline, time_before, free.time_read());
    if (expiry != Expiry::kLives && expiry != Expiry::kOver) return Outcome::kNo;
    ++stats_.reads;
    stats_.read_bytes += sizeof(uint64_t);
  }
  ++stats_.reads;
  stats_.read_bytes += to.size();
  ++stats_.gets;
  ++stats_.cache_hits;
  locations_.Confirm(key_hash);
  if (expiry == Expiry::kOver) return Outcome::kAbsent;
  SetView(view, found);
  return Outcome::kValue;
}

}  // namespace erda::client
