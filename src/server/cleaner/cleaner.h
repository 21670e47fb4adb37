// The cleaner of one shard: merges regions, zeroes them, frees expired versions and verifies values (docs/cleaning.md).
// A state machine: in production its thread steps it, in tests a seeded loop. It owns a Writer on the pool, a separate
// view of the index, and the parts that do the work. This class takes the shard's orders, and chooses the part that
// goes on.
//
// The cleaner reads the pool while the shard goes on. It writes only where no other thread writes: after its own
// copies, and into emptied regions. It stores no entry, no region word and no segment header. It makes proposals, and
// the shard applies them. docs/protocol.md, "The cleaner and the shard", has the invariants C1 to C5. C1 is in
// clean_queues.h, C2 and C3 in region_walk.h, C4 in region_merge.h, C5 in region_zeroer.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/server_time.h"
#include "format/geometry.h"
#include "index/read_only_index.h"
#include "nvm/writer.h"
#include "server/cleaner/clean_queues.h"
#include "server/cleaner/expiry_look.h"
#include "server/cleaner/expiry_rounds.h"
#include "server/cleaner/expiry_sweep.h"
#include "server/cleaner/named_objects.h"
#include "server/cleaner/page_maker.h"
#include "server/cleaner/region_merge.h"
#include "server/cleaner/region_zeroer.h"
#include "server/cleaner/scrubber.h"

namespace erda::server {

class Cleaner {
 public:
  // control: the shard's control block.
  Cleaner(nvm::Pool& pool, const format::Geometry& geometry, uint32_t pool_seed, uint32_t shard,
          std::span<std::byte> control, CleanQueues& queues, const ServerTime& time);
  Cleaner(const Cleaner&) = delete;
  Cleaner& operator=(const Cleaner&) = delete;

  // Does a small part of the ordered work. Returns false if there is nothing to do before the next order.
  bool Step();
  // Returns true if no merge and no sweep goes on, and the shard has applied every proposal.
  [[nodiscard]] bool idle() const { return !merge_.active() && !sweep_.active() && queues_.proposals.empty(); }
  // Returns how many proposals the cleaner has made in all.
  [[nodiscard]] uint64_t proposed() const { return queues_.proposals.pushed(); }
  // Verifies about this many bytes of values, besides the ordered work. The next call goes on with the next values.
  void Scrub(uint64_t bytes) { scrubber_.Scrub(bytes); }
  // Looks at some entries for expired versions, besides the ordered work. The next call goes on with the next entries.
  void Sweep() { rounds_.Step(); }

 private:
  bool TakeOrders();
  void Obey(const MergeOrder& order) { merge_.Begin(order); }
  void Obey(const SegmentOrder& order) { merge_.CopyTo(order); }
  void Obey(const NoSegmentOrder& /*order*/) { merge_.EndWithoutRoom(); }
  void Obey(const ZeroOrder& order) { zeroer_.Add(order.region); }
  void Obey(const SweepOrder& /*order*/) { sweep_.Begin(); }

  nvm::Writer nvm_;
  index::ReadOnlyIndex index_;
  CleanQueues& queues_;
  NamedObjects objects_;
  RegionMerge merge_;
  RegionZeroer zeroer_;
  PageMaker pages_;
  ExpiryLook look_;
  ExpirySweep sweep_;
  ExpiryRounds rounds_;
  Scrubber scrubber_;
};

}  // namespace erda::server
