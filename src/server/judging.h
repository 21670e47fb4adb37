// Judges what a key has now, for conditions and increments.
//
// Owns: nothing but the rule (I13): the judgement is what comes directly before the put that it is for. Requires: the
// shard puts, refuses or waits in the same step. The shard's thread calls it.
#pragma once

#include <cstdint>
#include <string_view>

#include "index/index.h"
#include "log/shard_log.h"
#include "server/expiry_clock.h"
#include "server/publish_batch.h"
#include "server/reservations.h"
#include "server/settling.h"
#include "server/taking_back.h"

namespace erda::server {

// What the key has now. A condition is judged by it.
struct Present {
  enum class State : uint8_t {
    kAbsent,
    kThere,
    kUndecided,  // its newest version is not whole, and may become so: then it came before what comes now
    kDamaged     // there is something that may be the key's: it is damaged, so the server cannot tell
  };
  State state = State::kAbsent;
  uint64_t version = 0;  // of kThere, or of kUndecided: the one that decides
  format::LogAddress address;
  uint32_t head = 0;      // of `address`
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
  // Returns true if what Judge said is still so, as far as it can be told without a look at the value. Requires: the
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
