// The names that each record and each checkpoint of a ring has, so that a reader takes no other for its own.
#pragma once

#include <array>
#include <cstdint>

#include "journal/uuid.h"

namespace erda::journal {

inline constexpr uint32_t kFormatVersion = 1;

// Random for each journal. No client learns it. A client chooses bytes of records, and could otherwise place a record
// of its making where the reader looks for the next one. It knows the pool's uuid and can guess the rest.
using Secret = std::array<uint8_t, 16>;

// One life of a ring: what stands in its records between two beginnings of an epoch. A stream in memory belongs to one.
struct RingLife {
  Secret secret{};
  uint64_t epoch = 0;

  friend bool operator==(const RingLife&, const RingLife&) = default;
};

struct RingIdentity {
  Uuid uuid;  // The pool's.
  Secret secret;
  uint32_t shard;
};

}  // namespace erda::journal
