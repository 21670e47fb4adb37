// The versions of a shard's keys (docs/protocol.md). A shard changes its part of the pool only through this class. The
// class knows neither the channels of clients nor threads.
//
// Owns the shard's part of the pool, and the parts of the protocol on it. The header of each part has its contract. Two
// parts, Puts and Delegating, write versions. Removing removes keys, and Judging judges conditions. Moving serves the
// cleaner, Mending mends entries, and Growth makes room in the index. The functions of this class need several parts.
// Requires: part() is taken up before any other use. The shard's thread calls it.
//
// Invariants, checked by tests/model and tests/server: (I1, I3) of publish_batch.h, (I2) of settling.h, (I4) of
// removing.h. (I9) of recovery.h rests on the order of stores in reservations.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/server_time.h"
#include "format/geometry.h"
#include "nvm/writer.h"
#include "server/versions/delegating.h"
#include "server/versions/growth.h"
#include "server/versions/judging.h"
#include "server/versions/mending.h"
#include "server/versions/moving.h"
#include "server/versions/outcome.h"
#include "server/versions/pool_part.h"
#include "server/versions/publish_batch.h"
#include "server/versions/puts.h"
#include "server/versions/removing.h"
#include "server/versions/reservations.h"
#include "server/versions/settling.h"
#include "server/versions/taking_back.h"

namespace erda::server {

struct VersionsOptions {
  uint32_t reservations_per_session = 1024;
  const ServerTime* time = &ServerTime::OfThisMachine();
  uint64_t note_ahead = ExpiryClock::kNoteAhead;
  HashSeed hash_seed{};     // Of the pool.
  bool index_grows = true;  // False in tests: the index then gets full.
};

class Versions {
 public:
  using Commit = server::Commit;

  Versions(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t pool_seed, uint32_t shard,
           std::span<std::byte> control, const VersionsOptions& options);
  Versions(const Versions&) = delete;
  Versions& operator=(const Versions&) = delete;

  [[nodiscard]] PoolPart& part() { return part_; }
  [[nodiscard]] const index::Index& index() const { return part_.index(); }
  [[nodiscard]] log::ShardLog& log() { return part_.log(); }

  [[nodiscard]] Puts& puts() { return puts_; }
  [[nodiscard]] Delegating& delegating() { return delegating_; }
  // Returns the table of the sessions' chunks, with their windows and the news about them.
  [[nodiscard]] ChunkTable& chunks() { return delegating_.chunks(); }
  [[nodiscard]] const ChunkTable& chunks() const { return delegating_.chunks(); }
  [[nodiscard]] Judging& judging() { return judging_; }
  [[nodiscard]] const Judging& judging() const { return judging_; }
  [[nodiscard]] Removing& removing() { return removing_; }
  [[nodiscard]] Moving& moving() { return moving_; }
  [[nodiscard]] Mending& mending() { return mending_; }
  [[nodiscard]] Growth& growth() { return growth_; }

  // Publishes the puts since the last call. The shard may answer them after that (docs/protocol.md, "Publish").
  [[nodiscard]] AllPublished PublishPuts() { return batch_.Publish(); }
  [[nodiscard]] bool has_unpublished() const { return !batch_.empty(); }
  // The put that was made last was judged by a version with this deadline. No version that has it expires before the
  // put is settled.
  void JudgedBy(uint64_t deadline) { batch_.JudgedBy(deadline); }

  // The commit of a reservation by its session. Settling has the contract.
  void BeginCommit(Commit* commit) { settling_.BeginCommit(commit); }
  std::optional<Outcome> EndCommit(const Commit& commit);
  // Looks at up to `limit` reservations, and settles those whose value has arrived. Returns how many it settled.
  size_t Sweep(size_t limit) { return settling_.Sweep(PublishPuts(), limit); }
  // On a pool with a journal: settles the versions and ends the deletes that the medium holds now.
  Settling::Held SettleHeld();
  [[nodiscard]] bool holds_later() const { return settling_.holds_later(); }
  [[nodiscard]] bool awaits_hold() const { return settling_.awaits_hold(); }
  [[nodiscard]] bool medium_failed() const { return nvm_.failed(); }
  [[nodiscard]] const nvm::Writer& nvm() const { return nvm_; }
  // Serves a report that the key's newest version is not whole (TakingBack::Report).
  void Report(std::string_view key, uint64_t key_hash) { taking_back_.Report(PublishPuts(), key, key_hash); }
  // Calls visit(head, address, from, to, in_chunk) for each place that holds its region of the log. A client may still
  // write from the offset `from` on, and before `to`; both count from the address. in_chunk: the address is a chunk's.
  template <class Visit>
  void ForEachHeld(AllPublished, Visit&& visit) const {
    reservations_.ForEachHeld([&](const Reservation& r) { visit(r.head, r.address, uint64_t{0}, r.bytes, false); });
    // A client with a window may also write where it has put already.
    chunks().ForEachHeld([&](const Chunk& c) {
      visit(c.head, c.address, c.windowed ? format::kChunkObjectsAt : c.tail, c.bytes, true);
    });
  }
  // Calls visit(SessionId) for each client that has still to write or to commit a value whose put was judged by a
  // version with this deadline. Calls it once for each such value.
  template <class Visit>
  void ForEachJudged(uint64_t deadline, Visit&& visit) const {
    reservations_.in_flight().ForEach([&](InFlight::Id /*id*/, const Reservation& r) {
      if (r.judged_deadline == deadline && r.session != kNoSession && !r.awaits_hold) visit(r.session);
    });
  }
  // Ends the chunks and reservations of the session. Requires: the session is fenced, so none of its Writes can arrive
  // any more.
  void EndSession(SessionId session);
  // Returns how many published reservations have not ended.
  [[nodiscard]] size_t in_flight() const { return reservations_.in_flight().size(); }

  // Settles or takes back all versions in flight, and closes the part. Requires: no session can write any more.
  void Close();
  // Publishes the puts, and lets the log count what all entries name. Returns these counts.
  [[nodiscard]] log::RegionCounts CountRegions() { return part_.CountRegions(PublishPuts()); }
  // Writes the gauges into the control block.
  void PublishGauges(AllPublished);

 private:
  nvm::Writer& nvm_;
  PoolPart part_;
  Reservations reservations_;
  Settling settling_;
  TakingBack taking_back_;
  PublishBatch batch_;
  Judging judging_;
  Removing removing_;
  Moving moving_;
  Mending mending_;
  Growth growth_;
  Puts puts_;
  Delegating delegating_;
};

}  // namespace erda::server
