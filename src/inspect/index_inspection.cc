// The index of a shard, and what its entries lead to.
#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "inspect/shard_inspector.h"

namespace erda::inspect {

using format::EntryMeta;
using format::EntryWord;
using format::IndexEntry;
using format::LogAddress;
using format::ObjectKind;
using format::ObjectState;
using format::ObjectView;

namespace {}  // namespace

void ShardInspector::LookAtIndex() {
  for (uint64_t slot = 0; slot < layout_.slots(); ++slot) {
    const IndexEntry entry = EntryAt(slot);
    if (entry.word == 0) continue;
    const bool of_parent = layout_.grown() && layout_.BlockWith(slot) == layout_.LastParent();
    if (of_parent && report_.needs_recovery && layout_.BlockOf(entry.entry_meta().tag()) == layout_.blocks() - 1) {
      ++shard_.left_over;
      continue;
    }
    ++shard_.used_slots;
    // In the middle of a move it stands in two slots, and is one.
    const bool moving = shard_.move && shard_.move->under_way && shard_.move->to == slot;
    if (moving && !report_.needs_recovery) AddEntry(slot, entry, "the key has another entry");
    if (!moving) LookAtEntry(slot, entry);
  }
  for (const auto& [begin, chunk] : chunks_) {
    if (chunk.claims_more)
      Add("the objects in a client's chunk, at byte " + std::to_string(begin) + ", state more bytes than it has");
  }
  if (budget_spent_ || shard_.live_bytes > shard_.object_bytes) Add("several entries of the index lead to one object");
  if (!report_.needs_recovery && shard_.keys_at_close != shard_.used_slots) {
    Add("the shard's record counts " + std::to_string(shard_.keys_at_close) + " keys, and its index has " +
        std::to_string(shard_.used_slots));
  }
}

bool ShardInspector::IsKeyOf(uint64_t slot, EntryMeta meta, uint64_t key_hash) const {
  return meta.tag() == EntryMeta::TagOf(key_hash) && g_.ShardOf(key_hash) == shard_.shard &&
         layout_.IsPlaceOf(key_hash, slot, meta.distance());
}

// The key is told by the object's header; if that does not verify, by the bytes where the key would be, if they have
// the entry's hash.
void ShardInspector::AddEntry(uint64_t slot, const IndexEntry& entry, std::string what) {
  const uint32_t head = HeadOf(entry);
  const LogAddress address = entry.entry_word().new_address();
  Damage damage;
  damage.what = std::move(what);
  damage.slot = slot;
  damage.head = head;
  damage.address = address.raw();
  const auto bytes = BytesAt(head, address);
  const ObjectView view = Header(head, address);
  if (view.state != ObjectState::kNothing) {
    damage.key = std::string(view.key);
  } else if (bytes.size() >= sizeof(format::ObjectHeader)) {
    const auto header = LoadAs<format::ObjectHeader>(bytes);
    const uint64_t size = header.key_size;
    if (size > 0 && size <= format::kKeyBytesMax && bytes.size() >= format::ChecksumOffset(header.label_size())) {
      const std::string_view key = AsString(bytes.subspan(header.key_offset(), size));
      if (IsKeyOf(slot, entry.entry_meta(), HashKey(key, hash_seed_))) damage.key = std::string(key);
    }
  }
  Add(std::move(damage));
}

// What is wrong with an entry whatever state it is in; or nothing.
std::string ShardInspector::FindFault(uint64_t slot, const IndexEntry& entry, const ObjectView& newest) const {
  const EntryMeta meta = entry.entry_meta();
  const LogAddress address = entry.entry_word().new_address();
  if (address.none()) return "the entry leads nowhere";
  if (BytesAt(HeadOf(entry), address).empty()) return "the entry leads out of the log";
  if (newest.state == ObjectState::kNothing) return "the object's header or key is damaged";
  if (HashKey(newest.key, hash_seed_) != newest.header.key_hash) return "the object's hash is not its key's";
  if (!IsKeyOf(slot, meta, newest.header.key_hash)) return "the entry leads to another key's object";
  if (newest.header.version >= shard_.version_limit) return "the object's version is over the shard's limit";
  if (meta.depth() > layout_.DepthOf(layout_.BlockWith(slot))) return "the entry tells of a split that was not";
  return {};
}

void ShardInspector::LookAtEntry(uint64_t slot, const IndexEntry& entry) {
  const EntryWord word = entry.entry_word();
  const uint32_t head = HeadOf(entry);
  const bool tombstone_slot = g_.OffsetInRegion(word.new_address()) == format::kTombstoneSlotOffset;
  const bool read = options_.verify || !word.settled();
  const ObjectView newest = read ? Whole(head, word.new_address()) : Header(head, word.new_address());
  if (std::string fault = FindFault(slot, entry, newest); !fault.empty()) {
    AddEntry(slot, entry, std::move(fault));
    return;
  }
  if (!tombstone_slot) CountLive(head, word.new_address(), SpaceOf(newest.header));
  if (!word.settled()) {
    LookAtUnsettled(slot, entry, newest);
    return;
  }
  ++shard_.keys;
  if (tombstone_slot || !newest.header.is_value()) {
    AddEntry(slot, entry, "the entry is settled, and does not lead to a value");
  } else if (read && !unread_ && newest.state != ObjectState::kWhole) {
    AddEntry(slot, entry, "the value is damaged");
  }
}

// What recovery would find (server/recovery/recovery.h).
void ShardInspector::LookAtUnsettled(uint64_t slot, const IndexEntry& entry, const ObjectView& newest) {
  const EntryWord word = entry.entry_word();
  const uint32_t head = HeadOf(entry);
  const LogAddress address = word.new_address();
  const bool whole = newest.state == ObjectState::kWhole;
  const ObjectView old = Header(head, word.old_address());
  if (old.state != ObjectState::kNothing) CountLive(head, word.old_address(), SpaceOf(old.header));
  if (g_.OffsetInRegion(address) == format::kTombstoneSlotOffset) {
    ++shard_.tombstones;
    if (!whole || !newest.header.is(ObjectKind::kTombstone)) AddEntry(slot, entry, "the tombstone is damaged");
    if (RegionWordOf(RegionAt(head, address)).settled()) {
      AddEntry(slot, entry, "the delete is not finished, and its region says that all is settled");
    }
    return;
  }
  ++shard_.keys;
  ++(whole ? shard_.whole : shard_.not_whole);
  if (!report_.needs_recovery) {
    AddEntry(slot, entry, "the entry is not settled, in a pool that was closed");
    return;
  }
  if (CountsAsSettled(head, address)) {
    AddEntry(slot, entry, "the entry is not settled, and its segment says that all are");
    return;
  }
  if (whole || word.old_address().none()) return;
  // The version to go back to is one between, if one of them is whole; else the old one, which must be.
  const uint64_t oldest = old.state == ObjectState::kNothing ? 0 : old.header.version;
  ObjectView view = newest;
  for (;;) {
    const LogAddress previous(view.header.previous);
    if (previous.none() || previous == word.old_address()) break;
    const ObjectView before = Whole(head, previous);
    const bool older = before.state != ObjectState::kNothing && before.key == newest.key &&
                       before.header.version < view.header.version && before.header.version > oldest;
    if (!older || unread_) break;
    if (before.state == ObjectState::kWhole) return;
    view = before;
  }
  if (old.state == ObjectState::kNothing || old.key != newest.key || old.header.version >= newest.header.version) {
    AddEntry(slot, entry, "the newest version is not whole, and the one before it is damaged");
  } else if (options_.verify && Whole(head, word.old_address()).state != ObjectState::kWhole && !unread_) {
    AddEntry(slot, entry, "the newest version is not whole, and the value before it is damaged");
  }
}

}  // namespace erda::inspect
