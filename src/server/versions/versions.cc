#include "server/versions/versions.h"

#include <algorithm>

namespace erda::server {

using format::Counter;

Versions::Versions(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t pool_seed, uint32_t shard,
                   std::span<std::byte> control, const VersionsOptions& options)
    : nvm_(nvm),
      part_(nvm, geometry, pool_seed, shard, control, *options.time, options.note_ahead),
      reservations_(part_.index(), part_.log(), part_.chain(), part_.clock(), part_.counters()),
      settling_(nvm, part_.index(), part_.log(), part_.chain(), part_.counters(), reservations_),
      taking_back_(part_.index(), part_.log(), part_.chain(), part_.counters(), reservations_, settling_),
      batch_(nvm, part_.index(), part_.clock(), reservations_, settling_),
      judging_(part_.index(), part_.log(), part_.clock(), reservations_, settling_, taking_back_, batch_),
      removing_(nvm, geometry, part_.index(), part_.log(), part_.chain(), part_.clock(), part_.counters(),
                part_.numbers(), reservations_, settling_, batch_),
      moving_(nvm, part_.index(), part_.log(), geometry, options.hash_seed, part_.counters(), settling_, taking_back_),
      mending_(part_.index(), part_.log(), settling_, taking_back_),
      growth_(geometry, part_.index(), part_.log(), part_.counters(), part_.numbers(), batch_, mending_,
              options.index_grows),
      puts_(nvm, geometry, part_.index(), part_.log(), part_.counters(), part_.numbers(), reservations_, settling_,
            batch_, growth_, options.reservations_per_session),
      delegating_(nvm, geometry, part_.log(), part_.counters(), part_.numbers(), batch_, puts_) {}

// A put of the key that waits may be newer than the committed version, so the shard publishes it first.
std::optional<Outcome> Versions::EndCommit(const Commit& commit) { return settling_.EndCommit(PublishPuts(), commit); }

Settling::Held Versions::SettleHeld() {
  return settling_.SettleHeld(PublishPuts(), [this](const Reservation& tombstone) { removing_.EndDelete(tombstone); });
}

void Versions::EndSession(SessionId session) {
  chunks().EndSession(PublishPuts(), session);
  taking_back_.EndSession(PublishPuts(), session);
}

void Versions::Close() {
  growth_.EndRest(PublishPuts());
  (void)growth_.CountKeys(part_.index().size());
  const size_t sessions = std::max(reservations_.sessions(), chunks().sessions());
  for (SessionId session = 0; session < sessions; ++session) EndSession(session);
  (void)mending_.Mend(PublishPuts(), 0, part_.index().size());
  // If the medium failed, some versions wait for ever. The next start recovers the pool, and decides about them.
  while (in_flight() > 0 && nvm_.AwaitHeld().ok() && SettleHeld().taken > 0) {
  }
  part_.Close();
  PublishGauges(PublishPuts());
}

void Versions::PublishGauges(AllPublished /*proof*/) {
  part_.PublishGauges();
  part_.counters().Set(Counter::kInFlight, in_flight());
  part_.counters().Set(Counter::kChunks, delegating_.chunks().count());
  part_.counters().Set(Counter::kChunkBytes, delegating_.chunks().bytes());
}

}  // namespace erda::server
