// The targets of the fuzzers. Each ends the program if a promise is broken. A refused pool breaks no promise.
#pragma once

#include <cstdint>
#include <span>

#include "fuzz/hostile_peer.h"

namespace erda::fuzz {

// Opens the pool as a server does, recovers it, and serves a few requests. Then it closes the pool or dies, and opens
// it again. Any content may be refused, and is then unchanged. A pool that opened once opens again. No get returns
// anything but a value of its key.
void OpenAndServe(std::span<const uint8_t> input);

// Inspects the pool as erda-inspect does.
void Inspect(std::span<const uint8_t> input);

// Salvages the pool as `erda-pool salvage` does. Takes no value that nobody put, and no key twice. From an unchanged
// pool, it takes the values that gets read.
void Salvage(std::span<const uint8_t> input);

// Opens a pool with a journal, its files changed, as a server does, and serves a few requests. Then it closes the pool
// or is killed, perhaps with a reboot, and opens it again; all that twice. Any content may be refused, with a message.
// No get returns anything but a value of its key. If one thing was changed, a pool that opened once opens again, and
// has all that was held.
void OpenJournaled(std::span<const uint8_t> input);

// Two hostile clients take their actions from the input, eight bytes for each (hostile_peer.h), at a live server. In
// spite of them, the keys of a good client keep their values. Its operations end, and it keeps its connection.
struct Spoken {
  uint64_t actions = 0;
  HostilePeer::Served served{};  // requests of the hostile clients
  uint64_t violations = 0;       // connections that the server ended because of their messages
};
Spoken Speak(std::span<const uint8_t> input);

// The first byte of the input chooses one of two links. In one a hostile primary talks to a mirror, in the other a
// hostile mirror talks to a primary. Its actions have eight bytes each (link.cc). The mirror's superblocks stay as they
// are, and each end keeps to its ring. The primary sends whole entries of its stream, and nothing else.
struct Linked {
  uint64_t stored = 0;  // The pieces that were answered.
  uint64_t ended = 0;   // The links that ended because of a message.
};
Linked Link(std::span<const uint8_t> input);

}  // namespace erda::fuzz
