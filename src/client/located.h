// The known locations: where the newest versions of keys were when this client last saw them (docs/protocol.md, "Get,
// with a known location"). A get reads the version alone there. The version counts unless its entry has left it.
//
// Owns the location cache, and the id of the server for which it is right. Only the client's thread calls it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/planted.h"
#include "client/key_bytes.h"
#include "client/link.h"
#include "client/location_cache.h"
#include "format/log_layout.h"
#include "format/object.h"

namespace erda::client {

// The location of a key's version, with the use of its region.
struct Located {
  uint32_t head;
  format::HeadSlot slot;
  format::LogAddress at;
  uint64_t bytes;
  bool expires;
};

class KnownLocations {
 public:
  explicit KnownLocations(uint32_t entries) : entries_(entries) {}
  void Prepare() { cache_.Reset(entries_); }
  // (I12) Notes that a link has come to this server. If it is another server, forgets all locations: the flags of left
  // versions may be lost.
  void SetServer(uint64_t server_id) {
    const uint64_t server = Planted(Flaw::kKnowsForEver) ? 1 : server_id;
    if (server_ == server) return;
    server_ = server;
    cache_.Reset(entries_);
  }

  // Loads the key's location into the processor's cache, since a get comes soon.
  void Prefetch(uint64_t key_hash) { cache_.Prefetch(key_hash); }
  // (I12) Returns the key's location. Returns nullopt if the client knows none, or if it cannot be right any more. Then
  // the get finds the newer location, or learns of the newer head slots.
  [[nodiscard]] std::optional<Located> Find(const Link& link, uint64_t key_hash) {
    const auto location = cache_.Find(key_hash);
    if (!location || !IsOfServer(link)) return std::nullopt;
    const uint32_t head = link.geometry().HeadOf(key_hash);
    const Located located{head, link.known.SlotOf(head, location->address), location->address, location->object_bytes,
                          location->expires};
    if (located.slot.generation() != location->generation) return std::nullopt;
    return located;
  }
  // Stores a location. Requires: the key's entry named this version as its new one after the operation began, and the
  // version is acknowledged.
  void Store(const Link& link, uint64_t key_hash, const Location& location) {
    if (IsOfServer(link)) cache_.Store(key_hash, location);
  }
  void Erase(uint64_t key_hash) { cache_.Erase(key_hash); }
  // Confirm notes that the location from Find was right. Refute notes that it was wrong.
  void Confirm(uint64_t key_hash) { cache_.Confirm(key_hash); }
  void Refute(uint64_t key_hash) { cache_.Refute(key_hash); }

 private:
  [[nodiscard]] bool IsOfServer(const Link& link) const {
    return link.hello().server_id == server_ || Planted(Flaw::kKnowsForEver);
  }

  const uint32_t entries_;
  LocationCache cache_;
  uint64_t server_ = 0;  // its server_id
};

// Inspects the bytes of the version that were read at a known location.
[[nodiscard]] inline format::ObjectView InspectLocated(const Link& link, const Located& located,
                                                       std::span<const std::byte> bytes) {
  return format::InspectObject(link.known.PlaceOf(located.head, located.slot, located.at), bytes);
}

// Returns true if the version verifies in the use of its region in which the entry named it, and the entry has not left
// it. The version was settled or acknowledged before the get. So it was still the newest one when the client read the
// flag.
[[nodiscard]] inline bool IsNewest(const format::ObjectView& located, std::string_view key) {
  const bool left = located.header.left() && !Planted(Flaw::kTrustsLocation);
  return located.state == format::ObjectState::kWhole && !left && SameKey(located.key, key);
}

}  // namespace erda::client
