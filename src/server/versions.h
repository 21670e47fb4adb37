// The versions of a shard's keys (docs/protocol.md). Everything that a shard does to its part of the pool goes through
// here; nothing here knows of clients' channels or of threads.
//
// Owns: the shard's part of the pool, and the parts of the protocol on it. A part is used by its own header: puts()
// and delegating() write versions, removing() removes keys, judging() judges conditions, moving() serves the cleaner,
// mending() mends entries, growth() makes room in the index. What is asked of several of them is here. Requires: part()
// is taken up before any other use. The shard's thread calls it.
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
#include "server/delegating.h"
#include "server/growth.h"
#include "server/judging.h"
#include "server/mending.h"
#include "server/moving.h"
#include "server/outcome.h"
#include "server/pool_part.h"
#include "server/publish_batch.h"
#include "server/puts.h"
#include "server/removing.h"
#include "server/reservations.h"
#include "server/settling.h"
#include "server/taking_back.h"

namespace erda::server {

struct VersionsOptions {
  uint32_t reservations_per_session = 1024;
  const ServerTime* time = &ServerTime::OfThisMachine();
  uint64_t note_ahead = ExpiryClock::kNoteAhead;
  HashSeed hash_seed{};     // the pool's
  bool index_grows = true;  // else it stays as it is, and gets full: for tests
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
  // The values of this shard expire by it.
  [[nodiscard]] ExpiryClock& clock() { return part_.clock(); }

  [[nodiscard]] Puts& puts() { return puts_; }
  [[nodiscard]] Delegating& delegating() { return delegating_; }
  // The chunks of the sessions, with their windows, and the news that the shard tells of them.
  [[nodiscard]] ChunkTable& chunks() { return delegating_.chunks(); }
  [[nodiscard]] const ChunkTable& chunks() const { return delegating_.chunks(); }
  [[nodiscard]] Judging& judging() { return judging_; }
  [[nodiscard]] const Judging& judging() const { return judging_; }
  [[nodiscard]] Removing& removing() { return removing_; }
  [[nodiscard]] Moving& moving() { return moving_; }
  [[nodiscard]] Mending& mending() { return mending_; }
  [[nodiscard]] Growth& growth() { return growth_; }

  // Publishes the puts since the last call: they may be answered then (docs/protocol.md, "Publish").
  AllPublished PublishPuts() { return batch_.Publish(); }
  [[nodiscard]] bool has_unpublished() const { return !batch_.empty(); }

  // A session's commit of what it reserved. See settling.h.
  void BeginCommit(Commit* commit) { settling_.BeginCommit(commit); }
  std::optional<Outcome> EndCommit(const Commit& commit);
  // Settles what arrived in the meantime, looking at up to `limit` reservations. Returns how many it settled.
  size_t Sweep(size_t limit) { return settling_.Sweep(PublishPuts(), limit); }
  // A reader found the key's newest version not whole.
  void Report(std::string_view key, uint64_t key_hash) { taking_back_.Report(PublishPuts(), key, key_hash); }
  // The session is fenced: nothing of it can arrive any more.
  void EndSession(SessionId session);
  // Published reservations that have not ended.
  [[nodiscard]] size_t in_flight() const { return reservations_.in_flight().size(); }

  // Settles or takes back all that is in flight, and closes the part. Requires: no session can write any more.
  void Close();
  // Makes the log count what the entries name that were published since: required before a question for that.
  void CountPublished() { part_.index().TellPublished(); }
  // Writes the gauges into the control block.
  void PublishGauges();

 private:
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
