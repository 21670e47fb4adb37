#include "client/scan.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "base/planted.h"

namespace erda::client {

using format::IndexEntry;

namespace {

// A page ends after this number of blocks, so that it ends even if the index is nearly empty.
constexpr size_t kBlocksMax = 64;
// The scan looks at a stretch again at most this often. If that is not enough, a client changes an entry on purpose, or
// a peer lies.
constexpr uint32_t kLooksMax = 10'000;

constexpr uint64_t kPlaces = uint64_t{1} << 32;

// Returns the place at a position.
uint32_t PlaceAt(uint32_t position, uint32_t depth) {
  if (depth == 0) return position;
  const uint32_t within = 32 - depth;
  const uint32_t interval = static_cast<uint32_t>(uint64_t{position} >> within);
  return Scan::PlaceOf(interval) | (position & static_cast<uint32_t>((uint64_t{1} << within) - 1));
}

}  // namespace

uint32_t Scan::PlaceOf(uint32_t hash_low) {
  uint32_t place = hash_low;
  for (uint32_t bits = 16, mask = 0x0000ffff; bits > 0; bits /= 2, mask ^= mask << bits) {
    place = ((place >> bits) & mask) | ((place & mask) << bits);
  }
  return place;
}

uint32_t Scan::PositionOf(uint32_t place, uint32_t depth) {
  if (depth == 0) return place;
  const uint32_t within = 32 - depth;
  const uint32_t interval = PlaceOf(place) & (UINT32_MAX >> within);
  return static_cast<uint32_t>(uint64_t{interval} << within) |
         (place & static_cast<uint32_t>((uint64_t{1} << within) - 1));
}

Scan::Scan(Engine& engine, const ScanOptions& options)
    : engine_(engine),
      options_(options),
      pool_(static_cast<uint16_t>(engine.connections().pool().seed())),
      shards_(engine.connections().links().size()) {
  const ScanCursor cursor = ScanCursor::From(options.cursor);
  if (options.cursor == 0) return;
  if (!CanBe(cursor)) {
    Fail({Code::kInvalidArgument, "the cursor of a scan is 0, or what the page before it told, of the same pool"});
    return;
  }
  shard_ = cursor.shard;
  depth_ = cursor.depth;
  begin_ = PlaceAt(cursor.position, depth_);
}

// Returns true if a scan of this pool can have told the cursor. No scan chooses a depth that the index cannot have, or
// has one at the beginning of a shard.
bool Scan::CanBe(const ScanCursor& cursor) const {
  if (cursor.pool != pool_ || cursor.shard >= engine_.connections().links().size()) return false;
  const auto depth_max = static_cast<uint32_t>(std::bit_width(engine_.connections().pool().geometry.blocks_max()) - 1);
  return cursor.position != 0 ? cursor.depth <= depth_max : cursor.depth == 0;
}

// Without memory the page fails, and ends when nothing is under way.
bool Scan::GoOn() try {
  for (;;) {
    while (status_.ok() && followed_ < found_.size() && HasRoom()) Follow(followed_++);
    if (under_way_ > 0) return false;
    if (!status_.ok() || complete_) return true;
    if (!HasRoom()) return false;
    if (ranged_ && again_.empty()) {
      EndRound();
    } else if (ranged_ && ++looks_ > kLooksMax) {
      Fail({Code::kTimeout,
            "an index entry changed too often while the scan read its key; scan again with the same cursor"});
    } else {
      ReadBlock();
    }
  }
} catch (const std::bad_alloc&) {
  Fail(Status(Code::kResourceExhausted));
  return under_way_ == 0;
}

Result<ScanPage> Scan::Take() {
  if (!status_.ok()) return status_;
  return std::move(page_);
}

// --- A stretch of places

// Reads the block of the next place. If the scan looks at places again, reads the block where they are now.
void Scan::ReadBlock() {
  found_.clear();
  followed_ = 0;
  const auto place = ranged_ ? again_.front() : static_cast<uint32_t>(begin_);
  ++under_way_;
  auto status = engine_.ReadBlock(shard_, PlaceOf(place), [this](const Result<BlockView>& block) {
    --under_way_;
    if (!block.ok()) return Fail(block.status());
    try {
      OnBlock(*block);
    } catch (const std::bad_alloc&) {
      Fail(Status(Code::kResourceExhausted));
    }
  });
  if (status.ok()) return;
  --under_way_;
  Fail(std::move(status));
}

void Scan::OnBlock(const BlockView& block) {
  if (static_cast<uint16_t>(engine_.connections().pool().seed()) != pool_) {
    return Fail({Code::kInvalidArgument, "the server has another pool now, where this scan cannot go on"});
  }
  const uint64_t begin = PlaceOf(static_cast<uint32_t>(block.first.block));
  const uint64_t end = begin + (kPlaces >> block.depth);
  looks_again_ = ranged_;
  // The places in this block that the scan looks at again. If a place has no entry any more, its key was removed.
  std::vector<uint32_t> again;
  std::vector<Found> astray;
  std::erase_if(again_, [&](uint32_t place) {
    const bool here = place >= begin && place < end;
    if (here) again.push_back(place);
    return here;
  });
  const std::byte* at = block.slots.data();
  const size_t slots = block.slots.size() / sizeof(IndexEntry);
  for (size_t i = 0; i < slots; ++i, at += sizeof(IndexEntry)) {
    IndexEntry entry;
    std::memcpy(&entry, at, sizeof(entry));
    if (entry.word == 0) continue;
    const uint32_t place = PlaceOf(entry.entry_meta().tag());
    // An entry that does not belong into the block. A split may have moved its key away, or the entry is damaged. The
    // scan follows it to tell which, once, where the block begins.
    const bool strays = place < begin || place >= end;
    const bool of_stretch = strays ? begin_ == begin : place >= begin_;
    const bool wanted = looks_again_ ? std::ranges::binary_search(again, place) : of_stretch;
    if (!wanted) continue;
    Found found{place, block.first};
    found.entry.slot += i;
    found.entry.entry = entry;
    (strays ? astray : found_).push_back(found);
  }
  if (!looks_again_) {
    if (begin_ == 0)
      depth_ =
          static_cast<uint32_t>(std::bit_width(engine_.connections().links()[shard_]->known.layout().blocks()) - 1);
    CutAt(end);
  }
  found_.insert(found_.end(), astray.begin(), astray.end());
}

// Ends the stretch at the end of the block, at the end of the interval, or at the place where the page is full.
void Scan::CutAt(uint64_t end) {
  ranged_ = true;
  looks_ = 0;
  told_before_ = page_.keys.size();
  const uint64_t interval = kPlaces >> depth_;
  end_ = std::min(end, begin_ / interval * interval + interval);
  std::erase_if(found_, [&](const Found& found) { return found.place >= end_; });
  // A full page ends between two places: keys that share one stay together.
  std::ranges::sort(found_, {}, &Found::place);
  for (size_t i = 0; i < found_.size(); ++i) {
    const bool full = page_.keys.size() + i >= options_.keys || bytes_ >= options_.bytes;
    if (full && i > 0 && found_[i].place != found_[i - 1].place) {
      end_ = found_[i].place;
      found_.resize(i);
      break;
    }
    bytes_ += BytesOf(found_[i].entry);
  }
}

// Returns the number of bytes that a get of the entry reads: only the label if that is enough. The entry of a large
// object says only that the object is large.
uint64_t Scan::BytesOf(const FoundEntry& found) const {
  const format::EntryMeta meta = found.entry.entry_meta();
  const uint64_t bytes =
      meta.may_be_larger() ? engine_.connections().pool().geometry.segment_size : meta.size_hint_bytes();
  return options_.values || !found.entry.entry_word().settled() ? bytes : std::min(bytes, kLabelBytesRead);
}

void Scan::EndRound() {
  ranged_ = false;
  ++blocks_;
  const uint64_t interval = kPlaces >> depth_;
  uint64_t position = PositionOf(static_cast<uint32_t>(begin_), depth_) + (end_ - begin_);
  begin_ = end_;
  if (end_ % interval == 0) begin_ = position < kPlaces ? PlaceAt(static_cast<uint32_t>(position), depth_) : 0;
  if (position == kPlaces) {
    ++shard_;
    depth_ = 0;
    position = 0;
  }
  page_.part = (shard_ + static_cast<double>(position) / kPlaces) / static_cast<double>(shards_);
  if (shard_ == shards_) {
    complete_ = true;
  } else if (page_.keys.size() >= options_.keys || bytes_ >= options_.bytes || blocks_ >= kBlocksMax) {
    complete_ = true;
    page_.next = ScanCursor{shard_, depth_, static_cast<uint32_t>(position), pool_}.raw();
  }
}

// --- Entries

void Scan::Follow(size_t number) {
  ++under_way_;
  auto status = engine_.GetEntry(found_[number].entry, options_.values,
                                 [this, number](std::string_view key, const Result<VersionedView>& got) {
                                   --under_way_;
                                   try {
                                     OnEntry(number, key, got);
                                   } catch (const std::bad_alloc&) {
                                     Fail(Status(Code::kResourceExhausted));
                                   }
                                 });
  if (status.ok()) return;
  --under_way_;
  Fail(std::move(status));
}

void Scan::OnEntry(size_t number, std::string_view key, const Result<VersionedView>& got) {
  const uint32_t place = found_[number].place;
  const bool counts = place >= begin_ && place < end_;
  switch (got.status().code()) {
    case Code::kOk:
      return counts ? Keep(number, key, *got) : void();
    case Code::kNotFound:
      return;
    case Code::kConflict: {
      if (!counts || Planted(Flaw::kScanForgetsChanged)) return;
      const auto at = std::ranges::lower_bound(again_, place);
      if (at == again_.end() || *at != place) again_.insert(at, place);
      return;
    }
    case Code::kCorruption:
      if (counts || key.empty()) ++page_.damaged;  // A known key counts only in its stretch.
      return;
    default:
      Fail(got.status());
  }
}

void Scan::Keep(size_t number, std::string_view key, const VersionedView& found) {
  // Two entries at one place may be two keys, and perhaps the scan looks again at only one of them. Or they are one
  // key, which was removed and put again while the client read the block.
  const auto is_at = [&](size_t other) { return other < found_.size() && found_[other].place == found_[number].place; };
  const auto is_it = [&](const ScannedKey& other) { return other.key == key; };
  const bool perhaps_told = looks_again_ || is_at(number - 1) || is_at(number + 1);
  const auto first = page_.keys.begin() + static_cast<std::ptrdiff_t>(told_before_);
  if (perhaps_told && std::any_of(first, page_.keys.end(), is_it)) return;
  page_.keys.push_back({std::string(key), std::string(options_.values ? found.value : std::string_view()),
                        found.version, found.expires});
}

void Scan::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

}  // namespace erda::client
