// Judges the present state of a key, for conditions and increments.
//
// Owns only the rule (I13): nothing comes between a judgement and the put that it is for. Requires: the shard puts,
// refuses or waits in the same step. The shard's thread calls it.
#pragma once

#include <cstdint>
#include <string_view>

#include "index/index.h"
#include "log/shard_log.h"
#include "server/control/expiry_clock.h"
#include "server/versions/publish_batch.h"
#include "server/versions/reservations.h"
#include "server/versions/settling.h"
#include "server/versions/taking_back.h"

namespace erda::server {

// The present state of a key, by which the shard judges a condition.
struct Present {
  enum class State : uint8_t {
    kAbsent,
    kThere,
    kUndecided,  // The newest version is not whole, and may become so. Its put then came before the request at hand.
    kDamaged     // An entry that may be the key's is damaged, so the server cannot tell.
  };
  State state = State::kAbsent;
  uint64_t version = 0;  // Of kThere; of kUndecided: the version that decides.
  format::LogAddress address;
  uint32_t head = 0;      // The head of `address`.
  uint64_t key_hash = 0;  // of kUndecided
  SessionId writer = 0;   // of kUndecided
};

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

  // (I13) An expired value is absent. Requires: key_hash is the key's and belongs to this shard.
  Present Judge(std::string_view key, uint64_t key_hash);
  // Returns true if the judgement is still right, as far as that is known without a look at the value. Requires: the
  // judgement was kUndecided.
  [[nodiscard]] bool IsUndecided(const Present& present) const;

 private:
  index::Index& index_;
  const log::ShardLog& log_;
  ExpiryClock& clock_;
  const Reservations& reservations_;
  Settling& settling_;
  TakingBack& taking_back_;
  PublishBatch& batch_;
};

}  // namespace erda::server
