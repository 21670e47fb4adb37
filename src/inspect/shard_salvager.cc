#include "inspect/shard_salvager.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "inspect/checksum_back.h"

namespace erda::inspect {

using format::IndexEntry;
using format::kGranuleBytes;
using format::LogAddress;
using format::ObjectKind;
using format::ObjectState;
using format::ObjectView;
using format::RegionWord;

namespace {

void AddOnce(std::vector<uint32_t>* to, uint32_t generation) {
  if (std::find(to->begin(), to->end(), generation) == to->end()) to->push_back(generation);
}

}  // namespace

ShardSalvager::ShardSalvager(std::span<const std::byte> pool, const SalvageFrame& frame, uint32_t shard,
                             const SalvageOptions& options, SalvageReport* report)
    : pool_(pool),
      g_(frame.geometry),
      seed_(frame.seed),
      hash_seed_(frame.hash_seed),
      shard_(shard),
      options_(options),
      report_(*report),
      regions_(g_.regions_per_shard),
      region_in_(uint64_t{g_.heads_per_shard} * g_.slots_per_head()) {}

Status ShardSalvager::Run(const TakeValue& take) {
  PlaceRegions();
  ReadIndex();
  for (uint32_t number = 0; number < g_.regions_per_shard; ++number) WalkRegion(g_.RegionOf(shard_, number));
  Choose();
  return TakeAll(take);
}

std::span<const std::byte> ShardSalvager::BytesAt(uint64_t offset) const {
  if (offset >= pool_.size() || offset < g_.regions_offset) return {};
  const uint64_t left = g_.segment_size - (offset - g_.regions_offset) % g_.segment_size;
  return pool_.subspan(offset, std::min(left, pool_.size() - offset));
}

// REQUIRES: a header that verified is there.
std::string_view ShardSalvager::KeyAt(uint64_t offset) const {
  const auto bytes = BytesAt(offset);
  const auto header = LoadAs<format::ObjectHeader>(bytes);
  return AsString(bytes.subspan(header.key_offset(), header.key_size));
}

// --- Where regions belong

void ShardSalvager::PlaceRegions() {
  std::vector<uint32_t> rest;
  for (uint32_t number = 0; number < g_.regions_per_shard; ++number) {
    const uint32_t region = g_.RegionOf(shard_, number);
    Region& of = regions_[number];
    const uint64_t begin = g_.RegionOffset(region);
    if (begin >= pool_.size()) break;
    for (uint64_t segment = 0; segment < g_.segments_per_region(); ++segment) {
      const auto generation = GenerationIn(BytesAt(begin + segment * g_.segment_size));
      if (generation) AddOnce(&of.generations, *generation);
    }
    const RegionWord word(
        LoadAs<uint64_t>(pool_.subspan(format::kRegionTableOffset + region * sizeof(uint64_t), sizeof(uint64_t))));
    if (const auto linked = LinkedWord(g_, region, word)) {
      AddOnce(&of.generations, linked->generation());
      Place(region, linked->HeadIn(g_), linked->SlotIn(g_), false);
      // The word may be of another time than the region.
      const uint64_t first = begin + format::FirstObjectOffset(0);
      const auto bytes = BytesAt(first);
      const bool fits = Look(first, g_.segment_size).state != ObjectState::kNothing;
      if (!fits && !IsZero(bytes.first(std::min<size_t>(bytes.size(), sizeof(format::ObjectHeader)))))
        rest.push_back(region);
    } else {
      if (word == RegionWord::OfIndex(word.generation(), word.run()) && word.run() < g_.runs_max()) {
        of.run = word.run();
        ++report_.regions_index;
      }
      // Nothing in it counts, and some of it may be zeroed; or nothing but decay is in it.
      of.unused = word == RegionWord::Emptied(word.generation()) ||
                  (word == RegionWord::Free(word.generation()) && of.generations.empty());
      rest.push_back(region);
    }
    for (const uint32_t generation : of.generations) generation_max_ = std::max(generation_max_, generation);
  }
  for (const uint32_t region : rest) {
    const Region& of = RegionAt(region);
    if (of.run && of.generations.empty()) continue;
    const uint64_t begin = g_.RegionOffset(region);
    if (IsZero(pool_.subspan(begin, std::min(g_.region_size, pool_.size() - begin)))) continue;
    const bool placed = of.placed;
    if (FindPlace(region)) {
      report_.regions_found += placed ? 0 : 1;
    } else if (!of.run && !placed && !of.unused) {
      ++report_.regions_unread;
      Tell("of region " + std::to_string(region) + " nothing can be read", std::nullopt, begin);
    }
  }
}

// found: its objects say so, and not the table alone.
void ShardSalvager::Place(uint32_t region, uint32_t head, uint32_t slot, bool found) {
  Region& of = RegionAt(region);
  of.placed = true;
  of.head = head;
  of.slot = slot;
  uint32_t& in = region_in_[(head - shard_ * g_.heads_per_shard) * uint64_t{g_.slots_per_head()} + slot];
  if (in == 0 || found) in = region + 1;
}

// Each object's header crc covers head, address and generation. With the two first, the crc tells the third
// (Crc32cBefore). One generation that is known, or at least likely, and that the most objects agree on, is the
// region's.
bool ShardSalvager::FindPlace(uint32_t region) {
  constexpr size_t kSamples = 12;
  constexpr uint32_t kLikelyAfter = 1024;
  constexpr std::array<std::byte, CoveredBytes::kGenerationBytes> kZeroes{};
  Region& of = RegionAt(region);
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, size_t> votes;  // head, slot, generation
  LoneObjects objects(4 * g_.region_size);
  size_t samples = 0;
  const uint32_t first_head = shard_ * g_.heads_per_shard;
  for (uint64_t at = 0; at < g_.region_size && samples < kSamples; at += kGranuleBytes) {
    const auto bytes = BytesAt(g_.RegionOffset(region) + at);
    if (bytes.empty()) break;
    const auto object = objects.At(bytes);
    if (!object) continue;
    ++samples;
    const CoveredBytes covered(object->header, object->key, object->deadline, 0, LogAddress(), 0);
    const uint32_t behind = Crc32cBefore(object->header.header_crc, covered.behind_generation());
    const uint32_t with_zeroes = ~Crc32cBefore(behind, kZeroes);
    for (uint32_t head = first_head; head < first_head + g_.heads_per_shard; ++head) {
      for (uint32_t slot = 0; slot < g_.slots_per_head(); ++slot) {
        const uint64_t place = head | uint64_t{g_.AddressOf(slot, at).raw()} << 32;
        const uint32_t generation = ~Crc32c(seed_, BytesOf(place)) ^ with_zeroes;
        const bool known = std::find(of.generations.begin(), of.generations.end(), generation) != of.generations.end();
        const bool likely =
            of.generations.empty() && generation > 0 && generation <= uint64_t{generation_max_} + kLikelyAfter;
        if (known || likely) ++votes[{head, slot, generation}];
      }
    }
    at += format::SpaceOf(object->header) - kGranuleBytes;
  }
  const auto best =
      std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (best == votes.end()) return false;
  const auto& [head, slot, generation] = best->first;
  AddOnce(&of.generations, generation);
  Place(region, head, slot, true);
  return true;
}

// --- Objects

ObjectView ShardSalvager::Look(uint64_t offset, uint64_t bytes) const {
  const uint64_t in_regions = offset - g_.regions_offset;
  const auto region = static_cast<uint32_t>(in_regions / g_.region_size);
  const Region& of = regions_[g_.NumberInShard(region)];
  auto span = BytesAt(offset);
  span = span.first(std::min<uint64_t>(span.size(), bytes));
  if (!of.placed || span.size() < sizeof(format::ObjectHeader)) return {};
  format::Place place{seed_, of.head, g_.AddressOf(of.slot, in_regions % g_.region_size), 0};
  for (const uint32_t generation : of.generations) {
    place.generation = generation;
    const ObjectView view = format::InspectHeader(place, span);
    // The key counts that the hash is of: no key is in two shards. (Without the hash seed nothing tells.)
    if (view.state == ObjectState::kNothing) continue;
    const bool hash_is_keys =
        view.header.is_chunk() || !hash_seed_ || HashKey(view.key, *hash_seed_) == view.header.key_hash;
    return hash_is_keys ? format::InspectObject(place, span) : ObjectView();
  }
  return {};
}

ShardSalvager::Found ShardSalvager::Follow(uint32_t head, LogAddress address) const {
  const uint32_t head_in_shard = head - shard_ * g_.heads_per_shard;
  const uint32_t slot = g_.SlotOf(address);
  if (head_in_shard >= g_.heads_per_shard || slot >= g_.slots_per_head() || address.none()) return {};
  const uint32_t region = region_in_[head_in_shard * uint64_t{g_.slots_per_head()} + slot];
  if (region == 0) return {};
  Found found;
  found.offset = g_.RegionOffset(region - 1) + g_.OffsetInRegion(address);
  found.view = Look(found.offset, g_.segment_size);
  return found;
}

// --- What the index says

void ShardSalvager::ReadIndex() {
  ReadEntries(g_.FirstSlotOffset(shard_, 0), g_.index_slots, 0);
  for (uint32_t number = 0; number < g_.regions_per_shard; ++number) {
    if (!regions_[number].run) continue;
    ReadEntries(g_.RegionOffset(g_.RegionOf(shard_, number)), g_.run_slots(),
                g_.index_slots + *regions_[number].run * g_.run_slots());
  }
}

void ShardSalvager::ReadEntries(uint64_t offset, uint64_t slots, uint64_t first_slot) {
  for (uint64_t i = 0; i < slots; ++i) {
    const uint64_t at = offset + i * sizeof(IndexEntry);
    if (at + sizeof(IndexEntry) > pool_.size()) return;
    const auto entry = LoadAs<IndexEntry>(pool_.subspan(at, sizeof(IndexEntry)));
    if (entry.word != 0) ReadEntry(entry, first_slot + i);
  }
}

// By any number of blocks: an entry that was left in its old block names what it named, or what was before.
bool ShardSalvager::IsHome(uint64_t slot, uint32_t distance, uint64_t key_hash) const {
  const uint64_t block = slot >> g_.block_shift;
  const uint64_t in_block = slot & (g_.block_slots() - 1);
  const uint64_t bits = (uint64_t{1} << std::bit_width(block)) - 1;
  if ((static_cast<uint32_t>(key_hash) & bits) != block) return false;
  if (distance == format::EntryMeta::kFar) return true;  // in some window, whatever the record says of those
  return distance < format::kNeighbourhood && g_.HomeInBlock(key_hash) + distance == in_block;
}

void ShardSalvager::ReadEntry(const IndexEntry& entry, uint64_t slot) {
  const format::EntryMeta meta = entry.entry_meta();
  const format::EntryWord word = entry.entry_word();
  const bool near = meta.distance() < format::kNeighbourhood;
  if (g_.ShardOf(meta.tag()) != shard_ || (!near && meta.distance() != format::EntryMeta::kFar)) return;
  const uint32_t head = g_.HeadOf(meta.tag());
  const auto is_its = [&](const Found& found) {
    const auto& header = found.view.header;
    return found.view.state != ObjectState::kNothing && !header.is_chunk() &&
           format::EntryMeta::TagOf(header.key_hash) == meta.tag() && IsHome(slot, meta.distance(), header.key_hash);
  };
  const Found newest = Follow(head, word.new_address());
  const bool is_its_own = is_its(newest);
  const bool whole = is_its_own && newest.view.state == ObjectState::kWhole;
  if (whole) {
    Name(newest, newest.view.header.is(ObjectKind::kTombstone) ? Best::kNamed | Best::kDeleted : Best::kNamed);
    return;
  }
  if (word.settled() && is_its_own) {
    Name(newest, Best::kNamed | Best::kDamaged);
    return;
  }
  if (!is_its_own) lost_.emplace(meta.tag(), LostEntry{slot, meta.distance()});
  if (word.settled()) return;
  if (is_its_own) in_flight_.insert(newest.view.header.key_hash);
  // It was in flight. As recovery does: the newest whole version between, or the old one.
  uint64_t version = is_its_own ? newest.view.header.version : 0;
  LogAddress at = is_its_own ? LogAddress(newest.view.header.previous) : format::kNoAddress;
  while (!at.none() && at != word.old_address()) {
    const Found between = Follow(head, at);
    if (!is_its(between) || between.view.header.version >= version) break;
    if (between.view.state == ObjectState::kWhole) {
      Name(between, Best::kNamed);
      return;
    }
    version = between.view.header.version;
    at = LogAddress(between.view.header.previous);
  }
  const Found old = Follow(head, word.old_address());
  if (is_its(old) && old.view.state == ObjectState::kWhole) Name(old, Best::kNamed);
}

// A key by its hash; of keys with one hash, the others by that and one more each.
ShardSalvager::Best* ShardSalvager::Find(uint64_t key_hash, std::string_view key) {
  for (uint64_t at = key_hash;; ++at) {
    Best& best = best_[at];
    if (best.offset() == 0 || KeyAt(best.offset()) == key) return &best;
  }
}

void ShardSalvager::Name(const Found& found, uint64_t flags) {
  Best* best = Find(found.view.header.key_hash, found.view.key);
  if (best->offset() != 0 && best->version >= found.view.header.version) return;
  *best = {found.view.header.version, found.offset | flags};
}

// --- What the log has

void ShardSalvager::WalkRegion(uint32_t region) {
  if (!RegionAt(region).placed) return;
  ++report_.regions_read;
  LookAtTombstone(region);
  for (uint64_t segment = 0; segment < g_.segments_per_region(); ++segment) WalkSegment(region, segment);
}

// Of the last delete there, done or not. A version that nothing names is older than it, and gone, or newer.
void ShardSalvager::LookAtTombstone(uint32_t region) {
  const ObjectView view = Look(g_.RegionOffset(region) + format::kTombstoneSlotOffset, format::kTombstoneSlotBytes);
  if (view.state != ObjectState::kWhole || !view.header.is(ObjectKind::kTombstone)) return;
  uint64_t& newest = tombstones_[view.header.key_hash];
  newest = std::max(newest, view.header.version);
}

void ShardSalvager::WalkSegment(uint32_t region, uint64_t segment) {
  const uint64_t begin = g_.RegionOffset(region) + segment * g_.segment_size;
  const auto bytes = BytesAt(begin);
  const uint64_t end = bytes.size();
  const auto skip_zeroes = [&bytes](uint64_t at) {
    while (at + sizeof(uint64_t) <= bytes.size() && LoadAs<uint64_t>(bytes.subspan(at)) == 0) at += sizeof(uint64_t);
    return AlignDown(at, kGranuleBytes);
  };
  const uint64_t first = format::FirstObjectOffset(segment);
  bool on_its_way = GenerationIn(bytes).has_value();  // by headers that verify, from the beginning on
  if (!on_its_way && skip_zeroes(0) + kGranuleBytes <= end) {
    ++report_.segments_damaged;
    Tell("segment " + std::to_string(segment) + " of region " + std::to_string(region) + " has no good header",
         std::nullopt, begin);
  }
  uint64_t chunk_end = 0;
  for (uint64_t at = first; at + sizeof(format::ObjectHeader) <= end;) {
    const bool in_chunk = at < chunk_end;
    const ObjectView view = Look(begin + at, (in_chunk ? chunk_end : end) - at);
    if (view.state == ObjectState::kNothing || (in_chunk && view.header.is_chunk())) {
      // Behind the objects of a chunk stands anything. Behind those of a segment are zeroes, up to its end.
      if (!in_chunk) on_its_way = false;
      const uint64_t next = std::max(skip_zeroes(at), at + kGranuleBytes);
      const bool skipped = !in_chunk && !IsZero(bytes.subspan(at, std::min(kGranuleBytes, end - at)));
      report_.bytes_skipped += skipped ? kGranuleBytes : 0;
      at = in_chunk ? std::min(next, chunk_end) : next;
      continue;
    }
    if (view.header.is_chunk()) {
      chunk_end = at + format::SpaceOf(view.header);
      at += format::kChunkObjectsAt;
      continue;
    }
    const bool proven = on_its_way && !in_chunk;
    if (view.header.is_value()) Add(view, begin + at, proven);
    // What is neither whole nor proven may claim any size.
    at += proven || view.state == ObjectState::kWhole ? format::SpaceOf(view.header) : kGranuleBytes;
  }
}

void ShardSalvager::Add(const ObjectView& view, uint64_t offset, bool proven) {
  const uint64_t version = view.header.version;
  if (g_.ShardOf(view.header.key_hash) != shard_) return;
  if (view.state != ObjectState::kWhole) {
    Best& newest = unfinished_[view.header.key_hash];
    if (version > newest.version) newest = {version, offset};
    return;
  }
  Best* best = Find(view.header.key_hash, view.key);
  if (best->offset() == 0) {
    *best = {version, offset};
    return;
  }
  const bool is_copy = version == best->version && best->is(Best::kDamaged);  // the cleaner's, or what that is of
  if (best->is(Best::kNamed) && version > best->version && !proven && !options_.newest) {
    uint64_t& newest = unproven_[view.header.key_hash];
    newest = std::max(newest, version);
  } else if (is_copy) {
    *best = {version, offset | Best::kNamed};
  } else if (version > best->version) {
    *best = {version, offset | (best->offset_and_flags & Best::kNamed)};
  } else if (best->is(Best::kDamaged)) {
    Best& older = older_[best->offset()];
    if (version > older.version) older = {version, offset};
  }
}

// --- What is taken

ShardSalvager::LostEntry* ShardSalvager::LostOf(uint64_t key_hash) {
  const auto [from, to] = lost_.equal_range(format::EntryMeta::TagOf(key_hash));
  for (auto it = from; it != to; ++it) {
    if (IsHome(it->second.slot, it->second.distance, key_hash)) return &it->second;
  }
  return nullptr;
}

void ShardSalvager::Tell(std::string what, std::optional<std::string_view> key, std::optional<uint64_t> offset) {
  if (report_.lost.size() >= options_.listed) return;
  SalvageReport::Lost lost;
  lost.shard = shard_;
  lost.what = std::move(what);
  if (key) lost.key = std::string(*key);
  lost.offset = offset;
  report_.lost.push_back(std::move(lost));
}

void ShardSalvager::Choose() {
  for (const auto& [at, best] : best_) {
    if (best.offset() == 0) continue;
    ChooseOne(LoadAs<format::ObjectHeader>(BytesAt(best.offset())).key_hash, best);
  }
  for (const auto& [key_hash, version] : unfinished_) {
    if (best_.contains(key_hash) || in_flight_.contains(key_hash)) continue;
    ++report_.unfinished;
    Tell("its only version was never finished, or is damaged", KeyAt(version.offset()), version.offset());
  }
  for (auto& [tag, lost] : lost_) {
    if (lost.told) continue;
    ++report_.damaged;
    Tell("index slot " + std::to_string(lost.slot) + " of the index names a version that cannot be read at all",
         std::nullopt, std::nullopt);
  }
  std::sort(taken_.begin(), taken_.end(), [](const Taken& a, const Taken& b) { return a.offset < b.offset; });
}

void ShardSalvager::ChooseOne(uint64_t key_hash, const Best& best) {
  const std::string_view key = KeyAt(best.offset());
  LostEntry* lost = best.is(Best::kNamed) ? nullptr : LostOf(key_hash);
  if (lost != nullptr) lost->told = true;
  const auto tombstone = tombstones_.find(key_hash);
  const bool deleted = !best.is(Best::kNamed) && tombstone != tombstones_.end() && tombstone->second > best.version;
  if (best.is(Best::kDeleted) || deleted) {
    ++report_.deleted;
    return;
  }
  if (const auto unproven = unproven_.find(key_hash); unproven != unproven_.end() && unproven->second > best.version) {
    ++report_.doubtful;
    Tell("a newer version is in the log, and the index does not name it: --newest takes it", key, best.offset());
  }
  if (best.is(Best::kDamaged) || lost != nullptr) {
    const auto older = older_.find(best.offset());
    const bool has_older = lost != nullptr || older != older_.end();
    if (!has_older || !options_.older) {
      ++report_.damaged;
      Tell(has_older ? "the newest version is damaged; --older writes the one before it" : "the value is damaged", key,
           best.offset());
      return;
    }
    ++report_.older;
    Tell("the newest version is damaged, and the one before it was written", key, best.offset());
    taken_.push_back({lost != nullptr ? best.offset() : older->second.offset(), false});
    return;
  }
  if (const auto newer = unfinished_.find(key_hash);
      newer != unfinished_.end() && !best.is(Best::kNamed) && newer->second.version > best.version) {
    ++report_.unfinished;
    Tell("a newer version was never finished, or is damaged; the one before it was written", key,
         newer->second.offset());
  }
  taken_.push_back({best.offset(), best.is(Best::kNamed)});
}

Status ShardSalvager::TakeAll(const TakeValue& take) {
  for (const Taken& taken : taken_) {
    const ObjectView view = Look(taken.offset, g_.segment_size);
    if (view.state != ObjectState::kWhole) {  // it was, just now
      ++report_.damaged;
      continue;
    }
    if (auto status = take({view.key, view.value, view.deadline, taken.named}); !status.ok()) return status;
    ++(taken.named ? report_.named : report_.unnamed);
    report_.bytes += view.key.size() + view.value.size();
  }
  return {};
}

}  // namespace erda::inspect
