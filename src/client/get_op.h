// A get that is under way: its fields, and what they say.
//
// Gets (get.h) own the operations, and take their steps. Only the client's thread calls it.
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

// The key of an entry, and its version. kConflict: the entry has changed before its key was known.
using EntryCallback = std::function<void(std::string_view key, const Result<VersionedView>&)>;

struct GetOp : SearchOperation {
  static constexpr OpType kType = OpType::kGet;

  // That of the call which began it.
  std::variant<std::monostate, Client::GetCallback, Client::GetVersionedCallback, EntryCallback> done;
  bool label_only = false;         // the version is settled, and the caller needs no value
  bool nameless = false;           // it has an entry, and does not know its key yet
  bool reads_time = false;         // it Reads the shard's time after the version at its known location
  format::LogAddress at;           // the version that it reads
  uint64_t time_behind = 0;        // the shard's time when the version that counts was published; kNoTime: not yet
  format::ObjectView found{};      // at step kTime: the version that counts
  uint64_t read_bytes = 0;         // of the version
  uint64_t newer_version = 0;      // the number of the version that it read before this one; 0: none
  uint32_t rereads = 0;            // Reads of this version again, since its size was not known
  format::HeadSlot slot_read;      // where the version stood when the operation posted that Read
  format::HeadSlot old_slot;       // the same of the entry's old version, if its header was read after
  uint64_t next_control_read = 0;  // the number of the first control read that its link posts after that Read

  // A new operation has this place.
  void BeginAgain() {
    Operation::BeginAgain();
    label_only = false;
    nameless = false;
  }
  // It has ended.
  void Clear() { done.emplace<std::monostate>(); }

  // The head whose log has the versions of the key.
  [[nodiscard]] uint32_t head() const { return link->geometry().HeadOf(key_hash); }
  [[nodiscard]] fabric::RemoteAddress entry_address() const {
    return {format::kPoolRegion, link->layout().SlotOffset(entry_slot)};
  }
  // Where the client reads the entry once more to.
  [[nodiscard]] std::span<std::byte> entry_copy() const { return readings().first(sizeof(format::IndexEntry)); }
  // What arrived of the version.
  [[nodiscard]] format::ObjectView Inspect() const {
    const format::Place place = link->PlaceOf(head(), slot_read, at);
    const auto bytes = message().first(read_bytes);
    return label_only ? format::InspectLabel(place, bytes) : format::InspectObject(place, bytes);
  }
  // The client reached the version along `previous`. The old one may have been moved since, and this may be its
  // original: its address does not tell whether it is the old one or an older one.
  [[nodiscard]] bool IsComparedWithOld() const {
    const format::LogAddress old_address = entry.entry_word().old_address();
    return newer_version != 0 && !old_address.none() && at != old_address;
  }
  // The number of the entry's old version, by the header that was read after another version. 0 if it does not verify.
  // REQUIRES: the key is known.
  [[nodiscard]] uint64_t OldVersion() const;
  // From here on it is a get of the key, if the version tells it.
  bool TakeKey(const format::ObjectView& view);

  // Calls back with what was found, or with why nothing was.
  void Tell(const VersionedView& value);
  void Tell(const Status& status);
};

// What a get returns of a version.
[[nodiscard]] inline VersionedView ViewOf(const format::ObjectView& view) {
  VersionedView found{AsString(view.value), view.header.version, std::nullopt};
  if (view.deadline != 0) found.expires = Deadline(std::chrono::milliseconds(view.deadline));
  return found;
}

}  // namespace erda::client
