// What is fuzzed. Each ends the program if a promise is broken; a pool that is refused is none.
#pragma once

#include <cstdint>
#include <span>

#include "fuzz/hostile_peer.h"

namespace erda::fuzz {

// Opens the pool as a server does, recovers it, serves a few requests, closes or dies, and opens it again. Any content
// may be refused, and is then unchanged; what was opened once is opened again, and no get returns what is not the
// key's.
void OpenAndServe(std::span<const uint8_t> input);

// erda-inspect.
void Inspect(std::span<const uint8_t> input);

// erda-pool salvage. No value is taken that was never put, no key twice. From a pool that is not changed, what the
// index names is what gets read.
void Salvage(std::span<const uint8_t> input);

// Clients that say what the input says, eight bytes for each thing (hostile_peer.h), to a live server. Whatever it is,
// another client's keys keep their values, its operations end, and it keeps its connection.
struct Spoken {
  uint64_t actions = 0;
  HostilePeer::Served served{};  // requests of the hostile ones
  uint64_t violations = 0;       // connections that the server ended for what they said
};
Spoken Speak(std::span<const uint8_t> input);

}  // namespace erda::fuzz
