#include "fabric/verbs/peer_offer.h"

namespace erda::fabric::verbs {

void PeerOffer::Learn(const Greeting& greeting) {
  for (const OfferedRegion& region : std::span(greeting.region).first(greeting.regions)) {
    memory_.push_back(region);
    regions_.push_back({region.size, static_cast<Access>(region.access)});
  }
  credit_ = {greeting.credit_address, greeting.credit_key};
}

}  // namespace erda::fabric::verbs
