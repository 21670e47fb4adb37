// The peer's part in the exchange that connects a channel: its data, and the memory that it offers. Addresses and keys
// are the peer's claims. The peer's device checks them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "fabric/verbs/handshake.h"

namespace erda::fabric::verbs {

// An address in the peer's memory and the key that opens it. Key 0 opens nothing.
struct PeerPlace {
  uint64_t address = 0;
  uint32_t key = 0;
};

// Offers nothing until Learn. The thread of the channel's queue calls it.
class PeerOffer {
 public:
  // Takes the caller's data of the peer.
  void SetData(std::vector<std::byte> data) { data_ = std::move(data); }
  // Takes the peer's offer. REQUIRES: ReadGreeting returned it.
  void Learn(const Greeting& greeting);

  [[nodiscard]] std::span<const std::byte> data() const { return data_; }
  [[nodiscard]] std::span<const RemoteRegion> regions() const { return regions_; }
  // Returns the place of an operation. An offset that overflows ends up before the region, which the device refuses.
  // The place of an unknown region has key 0.
  [[nodiscard]] PeerPlace Find(const RemoteAddress& remote) const {
    if (remote.region >= memory_.size()) return {};
    const OfferedRegion& region = memory_[remote.region];
    return {region.address + remote.offset, remote.window != 0 ? remote.window : region.key};
  }
  // Returns the place of the peer's count of consumed messages.
  [[nodiscard]] PeerPlace consumed() const { return {credit_.address + offsetof(CreditPage, consumed), credit_.key}; }
  // Returns the place where this end tells its count.
  [[nodiscard]] PeerPlace told() const { return {credit_.address + offsetof(CreditPage, told), credit_.key}; }

 private:
  std::vector<std::byte> data_;
  std::vector<OfferedRegion> memory_;
  std::vector<RemoteRegion> regions_;
  PeerPlace credit_;  // The peer's CreditPage.
};

}  // namespace erda::fabric::verbs
