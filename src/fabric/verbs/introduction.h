// The part of one end in the exchange that connects a channel. It has the caller's data, the regions that the end
// offers, and the page where the end counts messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric/verbs/handshake.h"
#include "fabric/verbs/own_memory.h"
#include "fabric/verbs/request.h"

namespace erda::fabric::verbs {

class Device;

// Owns the registered memory of the greeting and of the credit page. The thread of the channel's queue calls it.
class Introduction {
 public:
  // Checks whether an end can bring these options to a channel.
  static Status Check(const Device& device, const ChannelOptions& options, size_t data_max);

  // Takes the options over. REQUIRES: Check accepted them; the offered regions live as long as the channel.
  Status Prepare(Device& device, const ChannelOptions& options);

  // The other functions require Prepare.
  [[nodiscard]] std::span<const std::byte> data() const { return data_; }
  [[nodiscard]] CreditPage& credit_page() const { return *reinterpret_cast<CreditPage*>(credit_.data()); }
  // Returns the key with which this end's own requests use the credit page.
  [[nodiscard]] uint32_t credit_key() const { return credit_.mr()->lkey; }
  // Returns the request that sends the greeting. The greeting carries the data only if `with_data`: a connecting end
  // has sent its data with its Knock. REQUIRES: it is called once.
  Request Greet(bool with_data);

 private:
  std::vector<std::byte> data_;
  std::vector<Region*> offer_;
  OwnMemory greeting_;
  OwnMemory credit_;  // One CreditPage.
};

}  // namespace erda::fabric::verbs
