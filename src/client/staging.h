// Gives out the places of the staging buffer, in which a client places values if it may not write into the pool
// (docs/protocol.md, "Put, staged"). Only the client's thread calls it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace erda::client {

// Gives out the first place that is large enough, from the beginning on. So it never touches the rest of a large
// buffer.
class Staging {
 public:
  // A place begins at a multiple of this, so that no two places share a cache line.
  static constexpr uint64_t kGranule = 64;

  // Begins a new connection with a buffer of `bytes` and at most `places_max` places at once. `bytes` is 0 if the
  // server gave no buffer, or if the connection is gone.
  void Reset(uint64_t bytes, uint32_t places_max);
  // Takes a place of this size. Returns nullopt while no place is large enough.
  std::optional<uint32_t> Take(uint64_t bytes);
  // Gives a place back. REQUIRES: Take returned it, and it was not given back.
  void GiveBack(uint32_t at);

  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  struct Place {
    uint64_t begin;
    uint64_t end;
  };

  uint64_t bytes_ = 0;
  std::vector<Place> taken_;  // in the order of their places; at most one for each operation
};

}  // namespace erda::client
