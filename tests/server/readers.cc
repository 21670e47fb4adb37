#include "server/readers.h"

#include <functional>
#include <optional>
#include <set>

#include "base/bytes.h"
#include "base/test_hash.h"
#include "client/read_table.h"
#include "format/control_block.h"
#include "format/log_layout.h"
#include "format/pool_index.h"
#include "format/superblock.h"
#include "format/version_limit.h"

namespace erda::server {

using format::EntryWord;
using format::IndexEntry;
using format::LogAddress;
using format::ObjectState;
using format::ObjectView;
using format::RegionWord;

namespace {

// Returns the region in a slot of a head.
using Resolve = std::function<format::HeadSlot(uint32_t head, uint32_t slot)>;

uint64_t LoadWord(std::span<const std::byte> bytes, uint64_t offset) {
  return LoadAs<uint64_t>(bytes.subspan(offset, sizeof(uint64_t)));
}

Resolve ByControlBlock(const PoolBytes& pool, std::span<const std::byte> control) {
  return [&pool, control](uint32_t head, uint32_t slot) {
    const uint32_t in_shard = head - pool.shard * pool.geometry.heads_per_shard;
    if (in_shard >= pool.geometry.heads_per_shard) return format::HeadSlot();
    return format::HeadSlot(LoadWord(control, format::HeadSlotOffset(pool.geometry, in_shard, slot)));
  };
}

Resolve ByRegionTable(const PoolBytes& pool) {
  return [&pool](uint32_t head, uint32_t slot) {
    for (uint32_t region = 0; region < pool.geometry.regions(); ++region) {
      const RegionWord word(LoadWord(pool.bytes, format::kRegionTableOffset + region * sizeof(uint64_t)));
      if (word.linked() && word.HeadIn(pool.geometry) == head && word.SlotIn(pool.geometry) == slot) {
        return format::HeadSlot::Of(region, word.generation());
      }
    }
    return format::HeadSlot();
  };
}

ObjectView Inspect(const PoolBytes& pool, const Resolve& resolve, uint32_t head, LogAddress address) {
  const uint32_t number = pool.geometry.SlotOf(address);
  if (address.none() || number >= pool.geometry.slots_per_head()) return {};
  const format::HeadSlot slot = resolve(head, number);
  const uint64_t offset = pool.geometry.OffsetInRegion(address);
  if (slot.none()) return {};
  const uint64_t in_segment = pool.geometry.segment_size - offset % pool.geometry.segment_size;
  return format::InspectObject({pool.pool_seed, head, address, slot.generation()},
                               pool.bytes.subspan(pool.geometry.RegionOffset(slot.region()) + offset, in_segment));
}

std::string Answer(const PoolBytes& pool, const ObjectView& view) {
  const bool is_value = view.header.is_value();
  const bool expired = view.deadline != 0 && view.deadline <= pool.millis;
  return is_value && !expired ? std::string(AsString(view.value)) : std::string(kAbsent);
}

using Answers = std::optional<std::string>;

// Visits the versions of an entry, the newest first. `visit` returns the answer of the get, or nothing to go to an
// older version.
template <class Visit>
std::string WalkVersions(const PoolBytes& pool, const Resolve& resolve, const IndexEntry& entry, std::string_view key,
                         Visit&& visit) {
  const uint32_t head = pool.geometry.HeadOf(entry.entry_meta().tag());
  const EntryWord word = entry.entry_word();
  const ObjectView old = Inspect(pool, resolve, head, word.old_address());
  const uint64_t oldest = old.state != ObjectState::kNothing && old.key == key ? old.header.version : 0;
  LogAddress at = word.new_address();
  uint64_t newer = UINT64_MAX;
  for (;;) {
    ObjectView view = Inspect(pool, resolve, head, at);
    if (view.key != key || view.header.version >= newer) view.state = ObjectState::kNothing;
    // Along `previous`, the walk may meet the original of an old version that was moved, or an older version.
    const bool in_between = at != word.new_address() && at != word.old_address();
    if (in_between && view.header.version <= oldest) view.state = ObjectState::kNothing;
    if (const Answers answer = visit(at, view)) return *answer;
    if (at == word.old_address()) return std::string(kAbsent);
    const bool known = view.state != ObjectState::kNothing;
    const LogAddress previous = known ? LogAddress(view.header.previous) : format::kNoAddress;
    at = previous.none() ? word.old_address() : previous;
    if (at.none()) return std::string(kAbsent);
    if (known) newer = view.header.version;
  }
}

}  // namespace

std::string ReadLikeAClient(const PoolBytes& pool, std::span<const std::byte> control, format::FlushMethod flush,
                            std::string_view key) {
  const Resolve resolve = ByControlBlock(pool, control);
  const uint64_t hash = HashKey(key);
  const format::PoolIndex index(pool.bytes, pool.geometry, pool.shard, control);
  const auto window = index.WindowOf(hash);
  for (uint64_t slot = window.begin; slot < window.end; ++slot) {
    const IndexEntry entry = index.At(slot);
    if (entry.word == 0 || entry.entry_meta().tag() != format::EntryMeta::TagOf(hash)) continue;
    const EntryWord word = entry.entry_word();
    const ObjectView newest = Inspect(pool, resolve, index.HeadOf(entry), word.new_address());
    const bool of_tag = newest.state != ObjectState::kNothing &&
                        format::EntryMeta::TagOf(newest.header.key_hash) == format::EntryMeta::TagOf(hash);
    // Another key may have this tag. A version without the tag is damage.
    if (of_tag && newest.key != key) continue;
    return WalkVersions(pool, resolve, entry, key, [&](LogAddress at, const ObjectView& view) -> Answers {
      client::ReadFacts facts;
      facts.whole = view.state == ObjectState::kWhole;
      facts.settled = (at == word.new_address() && word.settled()) || at == word.old_address();
      facts.persisted = view.header.persisted();
      facts.flushed_by_read = view.header.flushed_by_read();
      facts.flush = flush;
      client::ReadStep step = client::DecideRead(facts);
      // No other actor changes the entry here.
      if (step == client::ReadStep::kLookAgain) {
        facts.look = client::EntryLook::kUnchanged;
        step = client::DecideRead(facts);
      }
      if (step == client::ReadStep::kReturn) return Answer(pool, view);
      return step == client::ReadStep::kDamaged ? Answers(kDamaged) : std::nullopt;
    });
  }
  return std::string(kAbsent);
}

std::string ReadAfterCrash(const PoolBytes& pool, std::string_view key) {
  const Resolve resolve = ByRegionTable(pool);
  const uint64_t hash = HashKey(key);
  const format::PoolIndex index(pool.bytes, pool.geometry, pool.shard);
  const auto window = index.WindowOf(hash);
  Answers found;
  for (uint64_t slot = window.begin; slot < window.end; ++slot) {
    const IndexEntry entry = index.At(slot);
    if (entry.word == 0 || entry.entry_meta().tag() != format::EntryMeta::TagOf(hash)) continue;
    const ObjectView newest = Inspect(pool, resolve, index.HeadOf(entry), entry.entry_word().new_address());
    if (newest.state == ObjectState::kNothing) return "error: an entry names nothing";
    if (newest.key != key) continue;
    std::string answer = WalkVersions(pool, resolve, entry, key, [&](LogAddress, const ObjectView& view) {
      return view.state == ObjectState::kWhole ? Answers(Answer(pool, view)) : std::nullopt;
    });
    // A key has two entries only in the middle of a move, and then both give the same.
    if (found && *found != answer) return "error: two entries of a key, " + *found + " and " + answer;
    found = std::move(answer);
  }
  return found.value_or(std::string(kAbsent));
}

std::string FindViolation(const PoolBytes& pool) {
  const Resolve resolve = ByRegionTable(pool);
  const uint64_t version_limit =
      format::VersionLimitIn(LoadWord(pool.bytes, format::ShardRecordOffset(pool.shard))).value_or(0);
  const format::PoolIndex index(pool.bytes, pool.geometry, pool.shard);
  for (uint64_t slot = 0; slot < index.slots(); ++slot) {
    const IndexEntry entry = index.At(slot);
    const EntryWord word = entry.entry_word();
    if (word.empty() || index.IsLeftOver(slot, entry)) continue;
    const uint32_t head = index.HeadOf(entry);
    const std::string where = "slot " + std::to_string(slot) + ": ";
    const ObjectView newest = Inspect(pool, resolve, head, word.new_address());
    if (newest.state == ObjectState::kNothing) return where + "the new version has no header";
    if (entry.entry_meta().tag() != format::EntryMeta::TagOf(newest.header.key_hash)) {
      return where + "the tag is another key's";
    }
    if (newest.header.version >= version_limit) return where + "the version will be given out again";
    if (word.settled() && newest.state != ObjectState::kWhole) return where + "settled, and not whole";
    if (!word.needed_old().none()) {
      const ObjectView old = Inspect(pool, resolve, head, word.old_address());
      if (old.state != ObjectState::kWhole || old.key != newest.key) return where + "the old version is not whole";
      if (old.header.version >= newest.header.version) return where + "the old version is not older";
    }
    // (I9)
    const format::Geometry& g = pool.geometry;
    const uint64_t in_region = g.OffsetInRegion(word.new_address());
    if (word.settled() || in_region == format::kTombstoneSlotOffset) continue;
    const uint64_t segment =
        g.RegionOffset(resolve(head, g.SlotOf(word.new_address())).region()) + AlignDown(in_region, g.segment_size);
    const auto header = LoadAs<format::SegmentHeader>(pool.bytes.subspan(segment, sizeof(format::SegmentHeader)));
    if (header.settled()) {
      return where + "not settled, and its segment is marked settled";
    }
  }
  return {};
}

namespace {

std::string FindUnrestInLog(const PoolBytes& pool) {
  const format::Geometry& g = pool.geometry;
  std::set<uint32_t> heads;  // the heads that have an open segment
  std::set<uint32_t> copied_to;
  for (uint32_t number = 0; number < g.regions_per_shard; ++number) {
    const uint32_t region = g.RegionOf(pool.shard, number);
    const RegionWord word(LoadWord(pool.bytes, format::kRegionTableOffset + region * sizeof(uint64_t)));
    if (!word.linked()) continue;
    for (uint64_t segment = 0; segment < g.segments_per_region(); ++segment) {
      const std::string where = "region " + std::to_string(region) + ", segment " + std::to_string(segment) + ": ";
      const auto header = LoadAs<format::SegmentHeader>(
          pool.bytes.subspan(g.RegionOffset(region) + segment * g.segment_size, sizeof(format::SegmentHeader)));
      if (header.identity != format::SegmentHeader::Identity(word.generation())) {
        if (segment == 0) return where + "linked, and never opened";
        break;
      }
      if (header.settled()) continue;
      if (header.copies()) {
        if (!copied_to.insert(word.HeadIn(g)).second) return where + "its head has another one for copies";
        continue;
      }
      const bool open = header.state == static_cast<uint64_t>(format::SegmentState::kOpen);
      if (!open || !heads.insert(word.HeadIn(g)).second) return where + "full, and not settled";
    }
  }
  return {};
}

}  // namespace

std::string FindUnrest(const PoolBytes& pool) {
  const Resolve resolve = ByRegionTable(pool);
  std::set<std::string_view> keys;
  const format::PoolIndex index(pool.bytes, pool.geometry, pool.shard);
  for (uint64_t slot = 0; slot < index.slots(); ++slot) {
    const IndexEntry entry = index.At(slot);
    if (entry.word == 0) continue;
    const std::string where = "slot " + std::to_string(slot) + ": ";
    if (!entry.entry_word().settled()) return where + "not settled";
    const ObjectView view = Inspect(pool, resolve, index.HeadOf(entry), entry.entry_word().new_address());
    if (view.state != ObjectState::kWhole) return where + "not whole";
    if (view.header.kind != static_cast<uint8_t>(format::ObjectKind::kValue)) return where + "a tombstone";
    const uint64_t hash = HashKey(view.key);
    if (hash != view.header.key_hash || pool.geometry.ShardOf(hash) != pool.shard ||
        pool.geometry.HeadOf(hash) != index.HeadOf(entry)) {
      return where + "another shard's or head's key";
    }
    if (!index.WindowOf(hash).Has(slot)) return where + "out of its window";
    if (entry.entry_meta().distance() != index.layout().DistanceTo(slot, hash)) return where + "says a wrong distance";
    if (!keys.insert(view.key).second) return where + "its key has another entry";
  }
  return FindUnrestInLog(pool);
}

}  // namespace erda::server
