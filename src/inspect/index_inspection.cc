#include "inspect/index_inspection.h"

#include <utility>

#include "base/hash.h"

namespace erda::inspect {

using format::EntryMeta;
using format::IndexEntry;
using format::LogAddress;
using format::ObjectKind;
using format::ObjectState;
using format::ObjectView;

void IndexInspection::Inspect() {
  for (uint64_t index_slot = 0; index_slot < layout_.slots(); ++index_slot) {
    const PlacedEntry entry = EntryIn(index_slot);
    if (entry.word.empty()) continue;
    if (IsLeftOver(entry)) {
      ++report_.left_over;
      continue;
    }
    ++report_.used_slots;
    // During a move one entry stands in two index slots.
    const bool moving = report_.move && report_.move->under_way && report_.move->to == index_slot;
    if (!moving) {
      LookAtEntry(entry);
    } else if (!findings_.needs_recovery()) {
      AddDamage(entry, "the entry is a copy left by a move, so its key has two entries");
    }
  }
}

void IndexInspection::CheckSums() {
  CheckRest();
  if (objects_.budget_spent() || report_.live_bytes > report_.object_bytes) {
    findings_.Add("several entries of the index lead to one object");
  }
  if (!findings_.needs_recovery() && report_.keys_at_close != report_.used_slots) {
    findings_.Add("the shard's record counts " + std::to_string(report_.keys_at_close) + " keys, and its index has " +
                  std::to_string(report_.used_slots));
  }
}

// The sums are those that a server compares after a clean close (index/rest_check.h). A server has stored none in a new
// pool.
void IndexInspection::CheckRest() {
  if (findings_.needs_recovery() || !at_rest_) return;
  format::RestSum difference = *at_rest_;
  for (uint64_t index_slot = 0; index_slot < layout_.slots(); ++index_slot) {
    difference -= format::RestSum::Of(index_slot, bytes_.Load<IndexEntry>(layout_.SlotOffset(index_slot)));
  }
  if (difference == format::RestSum()) return;
  const uint64_t index_slot = difference.slot();
  if (index_slot < layout_.slots()) {
    const auto found = bytes_.Load<IndexEntry>(layout_.SlotOffset(index_slot));
    if (difference.IsChange(difference.WithoutFlip(found), found)) {
      AddDamage(EntryIn(index_slot), "a bit of the entry has flipped since the pool was closed; a server undoes it");
      return;
    }
  }
  findings_.Add("the index has changed since the pool was closed");
}

PlacedEntry IndexInspection::EntryIn(uint64_t index_slot) const {
  const auto entry = bytes_.Load<IndexEntry>(layout_.SlotOffset(index_slot));
  return PlacedEntry::Of(bytes_.geometry(), index_slot, entry);
}

bool IndexInspection::IsLeftOver(const PlacedEntry& entry) const {
  return findings_.needs_recovery() && layout_.grown() && layout_.BlockWith(entry.index_slot) == layout_.LastParent() &&
         layout_.BlockOf(entry.meta.tag()) == layout_.blocks() - 1;
}

bool IndexInspection::IsKeyOf(const PlacedEntry& entry, uint64_t key_hash) const {
  return entry.meta.tag() == EntryMeta::TagOf(key_hash) && bytes_.geometry().ShardOf(key_hash) == bytes_.shard() &&
         layout_.IsPlaceOf(key_hash, entry.index_slot, entry.meta.distance());
}

bool IndexInspection::IsDelete(const PlacedEntry& entry) const {
  return bytes_.geometry().OffsetInRegion(entry.word.new_address()) == format::kTombstoneSlotOffset;
}

// The object's header tells the key. If the header does not verify, the bytes at the place of the key tell it, if they
// have the entry's hash.
void IndexInspection::AddDamage(const PlacedEntry& entry, std::string what) {
  const LogAddress address = entry.word.new_address();
  Damage damage;
  damage.what = std::move(what);
  damage.slot = entry.index_slot;
  damage.head = entry.head;
  damage.address = address.raw();
  const auto bytes = objects_.BytesAt(entry.head, address);
  const ObjectView view = objects_.Header(entry.head, address);
  if (view.state != ObjectState::kNothing) {
    damage.key = std::string(view.key);
  } else if (bytes.size() >= sizeof(format::ObjectHeader)) {
    const auto header = LoadAs<format::ObjectHeader>(bytes);
    const uint64_t size = header.key_size;
    if (size > 0 && size <= format::kKeyBytesMax && bytes.size() >= format::ChecksumOffset(header.label_size())) {
      const std::string_view key = AsString(bytes.subspan(header.key_offset(), size));
      if (IsKeyOf(entry, HashKey(key, bytes_.hash_seed()))) damage.key = std::string(key);
    }
  }
  findings_.Add(std::move(damage));
}

std::string IndexInspection::FindFault(const PlacedEntry& entry, const ObjectView& newest) const {
  const LogAddress address = entry.word.new_address();
  if (address.none()) return "the entry leads nowhere";
  if (objects_.BytesAt(entry.head, address).empty()) return "the entry leads out of the log";
  if (newest.state == ObjectState::kNothing) return "the object's header or key is damaged";
  if (HashKey(newest.key, bytes_.hash_seed()) != newest.header.key_hash) return "the object's hash is not its key's";
  if (!IsKeyOf(entry, newest.header.key_hash)) return "the entry leads to another key's object";
  if (newest.header.version >= report_.version_limit) return "the object's version is over the shard's limit";
  const uint32_t depth = layout_.DepthOf(layout_.BlockWith(entry.index_slot));
  if (entry.meta.depth() > depth) return "the entry's depth is larger than its block's";
  return {};
}

void IndexInspection::LookAtEntry(const PlacedEntry& entry) {
  const LogAddress address = entry.word.new_address();
  const bool read = verify_ || !entry.word.settled();
  const auto [newest, over_budget] =
      read ? objects_.Whole(entry.head, address) : ObjectReader::Read{objects_.Header(entry.head, address)};
  if (std::string fault = FindFault(entry, newest); !fault.empty()) {
    AddDamage(entry, std::move(fault));
    return;
  }
  if (!IsDelete(entry)) objects_.CountLive(entry.head, address, SpaceOf(newest.header));
  if (!entry.word.settled()) {
    LookAtUnsettled(entry, newest);
    return;
  }
  ++report_.keys;
  if (IsDelete(entry) || !newest.header.is_value()) {
    AddDamage(entry, "the entry is settled, and does not lead to a value");
  } else if (read && !over_budget && newest.state != ObjectState::kWhole) {
    AddDamage(entry, "the value is damaged");
  }
}

// Recovery decides by the same rules (server/recovery/recovery.h).
void IndexInspection::LookAtUnsettled(const PlacedEntry& entry, const ObjectView& newest) {
  const LogAddress old_address = entry.word.old_address();
  const bool whole = newest.state == ObjectState::kWhole;
  const ObjectView old = objects_.Header(entry.head, old_address);
  if (old.state != ObjectState::kNothing) objects_.CountLive(entry.head, old_address, SpaceOf(old.header));
  if (IsDelete(entry)) {
    LookAtDelete(entry, newest);
    return;
  }
  ++report_.keys;
  ++(whole ? report_.whole : report_.not_whole);
  if (!findings_.needs_recovery()) {
    AddDamage(entry, "the entry is not settled, in a pool that was closed");
  } else if (objects_.SegmentSaysSettled(entry.head, entry.word.new_address())) {
    AddDamage(entry, "the entry is not settled, and its segment says that all are");
  } else if (!whole && !old_address.none()) {
    LookForOlder(entry, newest, old);
  }
}

void IndexInspection::LookAtDelete(const PlacedEntry& entry, const ObjectView& newest) {
  ++report_.tombstones;
  if (newest.state != ObjectState::kWhole || !newest.header.is(ObjectKind::kTombstone)) {
    AddDamage(entry, "the tombstone is damaged");
  }
  if (objects_.RegionSaysSettled(entry.head, entry.word.new_address())) {
    AddDamage(entry, "the delete is not finished, and its region says that all is settled");
  }
}

// Recovery goes back to the newest whole version between the newest and the old one. Without one it goes back to the
// old version, which must then be whole.
void IndexInspection::LookForOlder(const PlacedEntry& entry, const ObjectView& newest, const ObjectView& old) {
  const LogAddress old_address = entry.word.old_address();
  const uint64_t oldest = old.state == ObjectState::kNothing ? 0 : old.header.version;
  ObjectView view = newest;
  for (;;) {
    const LogAddress previous(view.header.previous);
    if (previous.none() || previous == old_address) break;
    const auto [before, over_budget] = objects_.Whole(entry.head, previous);
    const bool older = before.state != ObjectState::kNothing && before.key == newest.key &&
                       before.header.version < view.header.version && before.header.version > oldest;
    if (!older || over_budget) break;
    if (before.state == ObjectState::kWhole) return;
    view = before;
  }
  if (old.state == ObjectState::kNothing || old.key != newest.key || old.header.version >= newest.header.version) {
    AddDamage(entry, "the newest version is not whole, and the one before it is damaged");
    return;
  }
  if (!verify_) return;
  const auto [value, over_budget] = objects_.Whole(entry.head, old_address);
  if (value.state != ObjectState::kWhole && !over_budget) {
    AddDamage(entry, "the newest version is not whole, and the value before it is damaged");
  }
}

}  // namespace erda::inspect
