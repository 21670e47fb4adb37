// The present state of a key, and the version that a request waits for. A value.
#pragma once

#include <cstdint>

#include "format/log_address.h"
#include "server/versions/in_flight.h"

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
  uint64_t deadline = 0;  // of kThere; 0: the version has none
};

// The version of the reservation decides.
inline Present UndecidedBy(const Reservation& reservation) {
  return {.state = Present::State::kUndecided,
          .version = reservation.version,
          .address = reservation.address,
          .head = reservation.head,
          .key_hash = reservation.key_hash,
          .writer = reservation.session};
}

}  // namespace erda::server
