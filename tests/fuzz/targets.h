// What is fuzzed. Each ends the program if a promise is broken; a pool that is refused is none.
#pragma once

#include <cstdint>
#include <span>

namespace erda::fuzz {

// Opens the pool as a server does, recovers it, serves a few requests, closes or dies, and opens it again. Any content
// may be refused, and is then unchanged; what was opened once is opened again, and no get returns what is not the
// key's.
void OpenAndServe(std::span<const uint8_t> input);

// erda-inspect.
void Inspect(std::span<const uint8_t> input);

}  // namespace erda::fuzz
