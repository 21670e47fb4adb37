// A get that is under way: its fields, and what they mean.
//
// Gets (get.h) own the operations, and take their steps. Only the client's thread calls them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "base/bytes.h"
#include "client/link.h"
#include "client/search.h"
#include "erda/client.h"
#include "format/control_block.h"
#include "format/index_entry.h"
#include "format/object.h"

namespace erda::client {

// Gets the key of an entry, and its version. kConflict: the entry has changed before its key was known.
using EntryCallback = std::function<void(std::string_view key, const Result<VersionedView>&)>;

struct GetOp : SearchOperation {
  static constexpr OpType kType = OpType::kGet;

  // The callback of the call that began the operation.
  std::variant<std::monostate, Client::GetCallback, Client::GetVersionedCallback, EntryCallback> done;
  bool label_only = false;     // The version is settled, and the caller needs no value.
  bool nameless = false;       // It has an entry, and does not know its key yet.
  bool reads_time = false;     // It Reads the shard's time after the version at its known location.
  format::LogAddress at;       // The version that it reads.
  uint64_t time_behind = 0;    // The shard's time when the version that counts was published; kNoTime: not read yet.
  format::ObjectView found{};  // The version that counts, at step kTime.
  uint64_t read_bytes = 0;     // The number of bytes of the version that it reads.
  uint64_t newer_version = 0;  // The number of the version that it read before this one. 0: it read no other.
  bool skips = false;          // On the way to the old version it may have gone past newer ones.
  uint32_t begun_again = 0;    // How often it began again for that reason.
  uint32_t rereads = 0;        // Reads of this version again, since its size was not known.
  format::HeadSlot slot_read;  // The head slot of the version when the operation posted that Read.
  format::HeadSlot old_slot;   // The head slot of the entry's old version when the operation posted that Read.
  uint64_t next_control_read = 0;  // The number of the first control read that its link posts after that Read.

  // A new operation begins in this place.
  void BeginAgain() {
    Operation::BeginAgain();
    label_only = false;
    nameless = false;
    begun_again = 0;
  }
  // The operation has ended.
  void Clear() { done.emplace<std::monostate>(); }

  // Returns the head whose log has the versions of the key.
  [[nodiscard]] uint32_t head() const { return link->geometry().HeadOf(key_hash); }
  [[nodiscard]] fabric::RemoteAddress entry_address() const {
    return {format::kPoolRegion, link->known.layout().SlotOffset(entry_slot)};
  }
  // Returns the place to which the client reads the entry once more.
  [[nodiscard]] std::span<std::byte> entry_copy() const { return readings().first(sizeof(format::IndexEntry)); }
  // Inspects the bytes of the version that arrived.
  [[nodiscard]] format::ObjectView Inspect() const {
    const format::Place place = link->known.PlaceOf(head(), slot_read, at);
    const auto bytes = message().first(read_bytes);
    return label_only ? format::InspectLabel(place, bytes) : format::InspectObject(place, bytes);
  }
  // Returns true if the client has to compare the version with the entry's old one, since it came along `previous`. The
  // old version may have been moved, and this may be its original. Then its address does not tell whether it is older.
  [[nodiscard]] bool IsComparedWithOld() const {
    const format::LogAddress old_address = entry.entry_word().old_address();
    return newer_version != 0 && !old_address.none() && at != old_address;
  }
  // Returns the number of the entry's old version, by the header that was read after another version. Returns 0 if the
  // header does not verify. REQUIRES: the key is known.
  [[nodiscard]] uint64_t OldVersion() const;
  // Takes the key from the version, if the version tells it. From here on the operation is a get of that key.
  bool TakeKey(const format::ObjectView& view);

  // Calls back with the value, or with the reason why there is no value.
  void Tell(const VersionedView& value);
  void Tell(const Status& status);
};

// Sets `found` to the part of a version that a get returns. REQUIRES: found->expires has no value.
inline void SetView(const format::ObjectView& view, VersionedView* found) {
  found->value = AsString(view.value);
  found->version = view.header.version;
  if (view.deadline != 0) found->expires = Deadline(std::chrono::milliseconds(view.deadline));
}
[[nodiscard]] inline VersionedView ViewOf(const format::ObjectView& view) {
  VersionedView found;
  SetView(view, &found);
  return found;
}

}  // namespace erda::client
