#include "fabric/verbs/introduction.h"

#include <array>
#include <cstring>
#include <new>
#include <string>

#include "fabric/verbs/device.h"
#include "fabric/verbs/region.h"

namespace erda::fabric::verbs {

Status Introduction::Check(const Device& device, const ChannelOptions& options, size_t data_max) {
  if (options.offer.size() > kOfferedRegionsMax || options.private_data.size() > data_max) {
    return {Code::kInvalidArgument, "a channel takes at most " + std::to_string(kOfferedRegionsMax) + " regions and " +
                                        std::to_string(data_max) + " bytes of private data, and was given " +
                                        std::to_string(options.offer.size()) + " and " +
                                        std::to_string(options.private_data.size())};
  }
  for (const Region* offered : options.offer) {
    const auto* region = dynamic_cast<const VerbsRegion*>(offered);
    if (region == nullptr || region->access() == Access::kLocal || region->device() != &device) {
      return {Code::kInvalidArgument, "an offered region gives its peer no right; register it for remote use"};
    }
  }
  return {};
}

Status Introduction::Prepare(Device& device, const ChannelOptions& options) {
  offer_.assign(options.offer.begin(), options.offer.end());
  data_.assign(options.private_data.begin(), options.private_data.end());
  auto greeting = OwnMemory::Create(device, sizeof(Greeting), 0);
  if (!greeting.ok()) return greeting.status();
  greeting_ = *std::move(greeting);
  auto credit = OwnMemory::Create(device, sizeof(CreditPage),
                                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
  if (!credit.ok()) return credit.status();
  credit_ = *std::move(credit);
  new (credit_.data()) CreditPage();
  return {};
}

Request Introduction::Greet(bool with_data) {
  std::array<OfferedRegion, kOfferedRegionsMax> regions;
  for (size_t i = 0; i < offer_.size(); ++i) regions[i] = dynamic_cast<const VerbsRegion&>(*offer_[i]).Offered();
  const Greeting greeting =
      MakeGreeting(std::span(regions).first(offer_.size()), with_data ? data() : std::span<const std::byte>(),
                   reinterpret_cast<uint64_t>(credit_.data()), credit_.mr()->rkey);
  std::memcpy(greeting_.data(), &greeting, sizeof(greeting));
  Request request;
  request.work.kind = OpKind::kSend;
  request.work.local = {greeting_.data(), sizeof(greeting)};
  request.local_key = greeting_.mr()->lkey;
  request.purpose = Purpose::kGreet;
  return request;
}

}  // namespace erda::fabric::verbs
