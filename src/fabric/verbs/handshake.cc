#include "fabric/verbs/handshake.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"

namespace erda::fabric::verbs {

std::vector<std::byte> MakeKnock(std::span<const std::byte> data, size_t data_max, uint32_t message_depth) {
  std::vector<std::byte> bytes;
  if (data.size() > data_max) return bytes;
  Knock knock;
  knock.data_bytes = static_cast<uint8_t>(data.size());
  knock.message_depth = static_cast<uint16_t>(message_depth);
  bytes.resize(sizeof(Knock) + data.size());
  std::memcpy(bytes.data(), &knock, sizeof(Knock));
  std::copy(data.begin(), data.end(), bytes.begin() + sizeof(Knock));
  return bytes;
}

// rdma_cm returns more bytes than were sent. The Knock says how many count.
bool ReadKnock(const void* bytes, size_t size, Knock* knock, std::vector<std::byte>* data) {
  if (bytes == nullptr || size < sizeof(Knock)) return false;
  std::memcpy(knock, bytes, sizeof(Knock));
  if (knock->magic != kMagic || knock->version != kVersion) return false;
  if (knock->data_bytes > size - sizeof(Knock)) return false;
  const auto* first = static_cast<const std::byte*>(bytes) + sizeof(Knock);
  data->assign(first, first + knock->data_bytes);
  return true;
}

Greeting MakeGreeting(std::span<const OfferedRegion> regions, std::span<const std::byte> data, uint64_t credit_address,
                      uint32_t credit_key) {
  Greeting greeting;
  greeting.regions = static_cast<uint8_t>(regions.size());
  greeting.data_bytes = static_cast<uint16_t>(data.size());
  greeting.credit_address = credit_address;
  greeting.credit_key = credit_key;
  std::ranges::copy(regions, greeting.region.begin());
  std::ranges::copy(data, greeting.data.begin());
  return greeting;
}

Result<Greeting> ReadGreeting(std::span<const std::byte> bytes) {
  const auto none = [](const char* why) { return Status(Code::kUnavailable, why); };
  if (bytes.size() != sizeof(Greeting))
    return none("the peer's greeting has a wrong size; is it an Erda server or client?");
  const auto greeting = LoadAs<Greeting>(bytes);
  if (greeting.magic != kMagic || greeting.version != kVersion || greeting.regions > kOfferedRegionsMax ||
      greeting.data_bytes > greeting.data.size()) {
    return none("the peer speaks another version");
  }
  for (const OfferedRegion& region : std::span(greeting.region).first(greeting.regions)) {
    if (region.access != static_cast<uint32_t>(Access::kRemoteRead) &&
        region.access != static_cast<uint32_t>(Access::kRemoteReadWrite)) {
      return none("the peer's greeting offers a region with unknown rights");
    }
  }
  return greeting;
}

}  // namespace erda::fabric::verbs
