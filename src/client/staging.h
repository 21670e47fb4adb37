// What a client has of the server's memory to place values in, if it may not write into the pool (docs/protocol.md,
// "Put, staged"): who has which bytes of it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace erda::client {

// The first place that is large enough, from the beginning on: what is not needed at once is never touched.
class Staging {
 public:
  // A place begins at a multiple of this, so that no two share a line of the processor's cache.
  static constexpr uint64_t kGranule = 64;

  // The connection is new, with a buffer of so many bytes (0: none), for so many places at once. Or it is gone.
  void Reset(uint64_t bytes, uint32_t places_max);
  // A place of so many bytes; nullopt as long as there is none.
  std::optional<uint32_t> Take(uint64_t bytes);
  // REQUIRES: Take gave it, and it was not given back.
  void GiveBack(uint32_t at);

  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  struct Place {
    uint64_t begin;
    uint64_t end;
  };

  uint64_t bytes_ = 0;
  std::vector<Place> taken_;  // in their order there; of at most as many as there are operations
};

}  // namespace erda::client
