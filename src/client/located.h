// Where the newest versions of keys were when this client last saw them (docs/protocol.md, "Get, with a known
// location"). A get reads the version alone there, and it counts unless its entry has left it.
//
// Owns the location cache, and the server of which it holds. Only the client's thread calls it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/planted.h"
#include "client/link.h"
#include "client/location_cache.h"
#include "format/log_layout.h"
#include "format/object.h"

namespace erda::client {

// Where a key's version was, in the use of its region that it was in.
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
  // (I12) A link has come to this server. What the client knew ends with the server before: the flags that take it back
  // may be lost.
  void SetServer(uint64_t server_id) {
    const uint64_t server = Planted(Flaw::kKnowsForEver) ? 1 : server_id;
    if (server_ == server) return;
    server_ = server;
    cache_.Reset(entries_);
  }

  // A get of the key will come soon.
  void Prefetch(uint64_t key_hash) { cache_.Prefetch(key_hash); }
  // (I12) nullopt if there is none, or if it cannot be right any more: then the get tells the newer location, or learns
  // of the newer slots.
  [[nodiscard]] std::optional<Located> Find(const Link& link, uint64_t key_hash) {
    const auto location = cache_.Find(key_hash);
    if (!location || !IsOfServer(link)) return std::nullopt;
    const uint32_t head = link.geometry().HeadOf(key_hash);
    const Located located{head, link.SlotOf(head, location->address), location->address, location->object_bytes,
                          location->expires};
    if (located.slot.generation() != location->generation) return std::nullopt;
    return located;
  }
  // The key's entry named this version as its new one after the operation began, and it is acknowledged.
  void Store(const Link& link, uint64_t key_hash, const Location& location) {
    if (IsOfServer(link)) cache_.Store(key_hash, location);
  }
  void Erase(uint64_t key_hash) { cache_.Erase(key_hash); }
  // What Find said was right, or was wrong.
  void Confirm(uint64_t key_hash) { cache_.Confirm(key_hash); }
  void Refute(uint64_t key_hash) { cache_.Refute(key_hash); }

 private:
  [[nodiscard]] bool IsOfServer(const Link& link) const {
    return link.hello().server_id == server_ || Planted(Flaw::kKnowsForEver);
  }

  const uint32_t entries_;
  LocationCache cache_;
  uint64_t server_ = 0;  // the server_id
};

// The version verifies in the use of its region in which the entry named it, and it was settled or acknowledged before
// the get. If the entry has not left it, it is the newest one still, as of the moment at which the flag was read.
[[nodiscard]] inline bool IsLocated(const Link& link, const Located& located, std::string_view key,
                                    std::span<const std::byte> bytes, format::ObjectView* view) {
  *view = format::InspectObject(link.PlaceOf(located.head, located.slot, located.at), bytes);
  const bool left = view->header.left() && !Planted(Flaw::kTrustsLocation);
  return view->state == format::ObjectState::kWhole && !left && view->key == key;
}

}  // namespace erda::client
