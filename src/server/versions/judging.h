// Judges the present state of a key, for conditions and increments.
//
// Owns only the rule (I13): nothing comes between a judgement and the put that it is for. Requires: the shard puts,
// refuses or waits in the same step. The shard's thread calls it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "index/index.h"
#include "log/shard_log.h"
#include "server/control/expiry_clock.h"
#include "server/versions/present.h"
#include "server/versions/publish_batch.h"
#include "server/versions/reservations.h"
#include "server/versions/settling.h"
#include "server/versions/taking_back.h"

namespace erda::server {

class Judging {
 public:
  Judging(index::Index& index, const log::ShardLog& log, ExpiryClock& clock, const Reservations& reservations,
          Settling& settling, TakingBack& taking_back, PublishBatch& batch)
      : index_(index),
        log_(log),
        clock_(clock),
        reservations_(reservations),
        settling_(settling),
        taking_back_(taking_back),
        batch_(batch) {}

  // (I13) An expired value is absent. If it has not expired only because the clock stands, the version for which the
  // clock stands decides. Requires: key_hash is the key's and belongs to this shard.
  Present Judge(std::string_view key, uint64_t key_hash);
  // Returns true if the judgement is still right, as far as that is known without a look at the value. Requires: the
  // judgement was kUndecided, or a delete waits for the version.
  [[nodiscard]] bool IsUndecided(const Present& present) const;
  // Returns true if the version that decides is whole, and the medium does not hold it yet. Requires: `present` is the
  // result of Judge in this step.
  [[nodiscard]] bool AwaitsMedium(const Present& present) const;
  // Returns true if IsUndecided is, and a client has still to write the value: the medium alone does not decide.
  [[nodiscard]] bool AwaitsWriter(const Present& present) const;

 private:
  // Returns a version, of any key, for which the clock stands before this deadline or an earlier one. Returns nullopt
  // if it need not stand any more. Requires: the clock stood before it.
  [[nodiscard]] std::optional<Present> FindJudged(uint64_t deadline);
  // Requires: no put waits to be published, and one in flight was judged by a version with a deadline.
  [[nodiscard]] Present FirstJudged() const;

  index::Index& index_;
  const log::ShardLog& log_;
  ExpiryClock& clock_;
  const Reservations& reservations_;
  Settling& settling_;
  TakingBack& taking_back_;
  PublishBatch& batch_;
};

}  // namespace erda::server
