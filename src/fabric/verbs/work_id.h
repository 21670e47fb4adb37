// The id of a work request. A completion carries the id, and so names its channel.
//
//   bit    63        62 .. 32    31 .. 0
//          +---------+-----------+------------------------------------------------+
//          | receive | channel   | number of the request, or index of the receive |
//          +---------+-----------+------------------------------------------------+
//
// A receive of a shared receive queue belongs to no channel: it carries kSharedReceives.
#pragma once

#include <cstdint>

namespace erda::fabric::verbs {

// The channel number of a shared receive. Channels have numbers from 1 on.
inline constexpr uint32_t kSharedReceives = 0;

class WorkId {
 public:
  // Takes the id of a completion.
  explicit constexpr WorkId(uint64_t word) : word_(word) {}
  // REQUIRES: channel < 2^31.
  static constexpr WorkId OfSend(uint32_t channel, uint32_t number) {
    return WorkId((uint64_t{channel} << 32) | number);
  }
  // REQUIRES: channel < 2^31.
  static constexpr WorkId OfReceive(uint32_t channel, uint32_t index) {
    return WorkId(kReceive | (uint64_t{channel} << 32) | index);
  }

  [[nodiscard]] constexpr uint64_t word() const { return word_; }
  [[nodiscard]] constexpr bool is_receive() const { return (word_ & kReceive) != 0; }
  [[nodiscard]] constexpr uint32_t channel() const { return static_cast<uint32_t>((word_ & ~kReceive) >> 32); }
  // Returns the number of a send, or the index of a receive.
  [[nodiscard]] constexpr uint32_t number() const { return static_cast<uint32_t>(word_); }
  friend constexpr bool operator==(WorkId, WorkId) = default;

 private:
  static constexpr uint64_t kReceive = uint64_t{1} << 63;
  uint64_t word_;
};

}  // namespace erda::fabric::verbs
