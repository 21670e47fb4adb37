#include "inspect/salvage_frame.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/superblock.h"
#include "inspect/checksum_back.h"

namespace erda::inspect {

using format::Geometry;
using format::kFormatVersion;
using format::ObjectHeader;
using format::Superblock;

std::optional<LoneObject> LoneObjects::At(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(ObjectHeader)) return std::nullopt;
  LoneObject object;
  object.header = LoadAs<ObjectHeader>(bytes);
  const ObjectHeader& header = object.header;
  constexpr uint8_t kFlags = ObjectHeader::kPersistedFlag | ObjectHeader::kFlushedByReadFlag |
                             ObjectHeader::kExpiresFlag | ObjectHeader::kLeft;
  if (header.kind != static_cast<uint8_t>(format::ObjectKind::kValue) || header.key_size == 0 ||
      header.key_size > format::kKeyBytesMax || (header.flags & ~kFlags) != 0) {
    return std::nullopt;
  }
  const uint64_t label = header.label_size();
  if (bytes.size() < format::ObjectBytes(label, header.value_size) || header.value_size > budget_) return std::nullopt;
  budget_ -= header.value_size;
  const auto value = bytes.subspan(format::ValueOffset(label), header.value_size);
  if (format::ObjectChecksum(header, value) != LoadAs<uint32_t>(bytes.subspan(format::ChecksumOffset(label)))) {
    return std::nullopt;
  }
  object.key = AsString(bytes.subspan(header.key_offset(), header.key_size));
  object.deadline = header.expires() ? LoadAs<uint64_t>(bytes.subspan(format::kLabelOffset)) : 0;
  return object;
}

namespace {

// Returns whether the superblock is valid, whatever the size of the file. A file that is shorter than the pool can be
// salvaged, too.
bool Verifies(const Superblock& copy) {
  return copy.magic == format::kPoolMagic && format::IsReadable(copy.format_version) &&
         format::SuperblockCrc(copy) == copy.crc && format::CheckGeometry(copy.geometry).ok();
}

format::RegionWord RegionWordIn(std::span<const std::byte> pool, uint32_t region) {
  const uint64_t at = format::kRegionTableOffset + region * sizeof(uint64_t);
  if (at + sizeof(uint64_t) > pool.size()) return {};
  return format::RegionWord(LoadAs<uint64_t>(pool.subspan(at)));
}

// Returns the bytes of the segment that the file has.
std::span<const std::byte> SegmentIn(std::span<const std::byte> pool, const Geometry& g, uint32_t region,
                                     uint64_t segment) {
  const uint64_t at = g.RegionOffset(region) + segment * g.segment_size;
  if (at >= pool.size()) return {};
  return pool.subspan(at, std::min(g.segment_size, pool.size() - at));
}

// Rates a geometry by the linked regions. Each region counts 1 if the region table and the region's first segment tell
// the same generation, and -1 if they do not.
int64_t FitOf(std::span<const std::byte> pool, const Geometry& g) {
  int64_t fit = 0;
  for (uint32_t region = 0; region < g.regions(); ++region) {
    const auto word = RegionWordIn(pool, region);
    if (!word.linked()) continue;
    const auto linked = LinkedWord(g, region, word);
    fit += linked && GenerationIn(SegmentIn(pool, g, region, 0)) == linked->generation() ? 1 : -1;
  }
  return fit;
}

// Counts the headers at the beginnings of segments. If two geometries have the same rate, the one that finds more
// headers is right, and then the one with the larger segments.
uint64_t HeadersIn(std::span<const std::byte> pool, const Geometry& g) {
  uint64_t headers = 0;
  for (uint32_t region = 0; region < g.regions() && g.RegionOffset(region) < pool.size(); ++region) {
    for (uint64_t segment = 0; segment < g.segments_per_region(); ++segment) {
      headers += GenerationIn(SegmentIn(pool, g, region, segment)) ? 1 : 0;
    }
  }
  return headers;
}

std::optional<Geometry> Made(format::GeometryWish wish, uint64_t file_size) {
  if (wish.pool_size == 0) wish.pool_size = file_size;
  auto geometry = format::ChooseGeometry(wish);
  if (!geometry.ok()) return std::nullopt;
  if (wish.pool_size >= file_size) return *geometry;
  const auto grown = format::GrownGeometry(*geometry, file_size);
  return grown.ok() ? *grown : *geometry;
}

// Returns the seed with which 15 of 16 objects were written, if their places are those that the region table and the
// segments' headers tell.
std::optional<uint32_t> VoteForSeed(std::span<const std::byte> pool, const Geometry& g) {
  constexpr size_t kVotes = 256;
  constexpr size_t kVotesOfSegment = 4;
  std::unordered_map<uint32_t, size_t> votes;
  size_t all = 0;
  for (uint32_t region = 0; region < g.regions() && g.RegionOffset(region) < pool.size() && all < kVotes; ++region) {
    const auto word = LinkedWord(g, region, RegionWordIn(pool, region));
    if (!word) continue;
    for (uint64_t segment = 0; segment < g.segments_per_region() && all < kVotes; ++segment) {
      const auto bytes = SegmentIn(pool, g, region, segment);
      const uint32_t generation = GenerationIn(bytes).value_or(word->generation());
      LoneObjects objects(4 * g.segment_size);
      size_t here = 0;
      for (uint64_t at = format::FirstObjectOffset(segment); at < bytes.size() && here < kVotesOfSegment;
           at += format::kGranuleBytes) {
        const auto object = objects.At(bytes.subspan(at));
        if (!object) continue;
        const auto address = g.AddressOf(word->SlotIn(g), segment * g.segment_size + at);
        const CoveredBytes covered(object->header, object->key, object->deadline, word->HeadIn(g), address, generation);
        ++votes[Crc32cBefore(object->header.header_crc, covered.all())];
        ++here;
        ++all;
        at += format::SpaceOf(object->header) - format::kGranuleBytes;
      }
    }
  }
  const auto best =
      std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  // If the places are wrong, the objects tell several seeds.
  if (best == votes.end() || best->second < all - all / 16) return std::nullopt;
  return best->first;
}

struct Candidate {
  Geometry geometry{};
  FrameSource source = FrameSource::kDefaults;
  int64_t fit = 0;
  uint64_t headers = 0;
};

// Returns the candidates with a positive rate, the best first.
std::vector<Candidate> ByFit(std::span<const std::byte> pool, std::vector<Candidate> candidates) {
  for (Candidate& candidate : candidates) {
    candidate.fit = FitOf(pool, candidate.geometry);
    if (candidate.fit > 0) candidate.headers = HeadersIn(pool, candidate.geometry);
  }
  std::erase_if(candidates, [](const Candidate& candidate) { return candidate.fit <= 0; });
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::tuple(a.fit, a.headers, a.geometry.segment_size) >
           std::tuple(b.fit, b.headers, b.geometry.segment_size);
  });
  return candidates;
}

bool HasUuid(const Superblock& copy) {
  return std::any_of(copy.uuid.begin(), copy.uuid.end(), [](uint8_t byte) { return byte != 0; });
}

// Returns what the wish gives by the present rules and by the former ones. Empty if no pool can meet it.
std::vector<Candidate> ByAllRules(format::GeometryWish wish, uint64_t file_size, FrameSource source) {
  std::vector<Candidate> candidates;
  for (const bool roomy_index : {false, true}) {
    wish.roomy_index = roomy_index;
    if (const auto made = Made(wish, file_size)) candidates.push_back({*made, source});
  }
  return candidates;
}

// Takes the geometry that the user gives.
Result<SalvageFrame> FrameAsMade(std::span<const std::byte> pool, const std::vector<Superblock>& copies,
                                 const Superblock* counts, const format::GeometryWish& wish) {
  std::vector<Candidate> candidates = ByAllRules(wish, pool.size(), FrameSource::kOptions);
  if (candidates.empty())
    return Status(Code::kInvalidArgument, "no pool can have been made with these options; give those that made it");
  const Geometry usual = candidates.front().geometry;
  const auto fitting = ByFit(pool, std::move(candidates));
  const Geometry& made = fitting.empty() ? usual : fitting.front().geometry;
  if (counts != nullptr)
    return SalvageFrame{made, format::PoolSeed(counts->uuid), counts->hash_seed, FrameSource::kOptions};
  if (const auto seed = VoteForSeed(pool, made)) return SalvageFrame{made, *seed, {}, FrameSource::kOptions};
  for (const Superblock& copy : copies) {
    if (HasUuid(copy)) return SalvageFrame{made, format::PoolSeed(copy.uuid), {}, FrameSource::kOptions};
  }
  return Status(Code::kCorruption,
                "neither superblock is readable, and no object is at the places of these options and the region table; "
                "give the options that made the pool. If these made it, nothing can be read");
}

// Takes the geometry of a damaged superblock, or the default one, if the pool's contents fit it.
Result<SalvageFrame> FrameThatFits(std::span<const std::byte> pool, const std::vector<Superblock>& copies) {
  std::vector<Candidate> candidates;
  for (const Superblock& copy : copies) {
    if (!format::CheckGeometry(copy.geometry).ok()) continue;
    candidates.push_back({copy.geometry, FrameSource::kDamagedSuperblock});
  }
  const std::vector<Candidate> told = candidates;
  for (uint32_t shards = 1; shards <= format::kShardsMax; ++shards) {
    for (const Candidate& usual : ByAllRules({.shards = shards}, pool.size(), FrameSource::kDefaults))
      candidates.push_back(usual);
  }
  for (const Candidate& candidate : ByFit(pool, std::move(candidates))) {
    const auto seed = VoteForSeed(pool, candidate.geometry);
    if (seed) return SalvageFrame{candidate.geometry, *seed, {}, candidate.source};
  }
  // The region table is lost, too. The damaged copy may still tell the right uuid. If it does not, no object verifies.
  for (const Candidate& candidate : told) {
    for (const Superblock& copy : copies) {
      if (HasUuid(copy)) return SalvageFrame{candidate.geometry, format::PoolSeed(copy.uuid), {}, candidate.source};
    }
  }
  return Status(
      Code::kCorruption,
      "neither superblock is readable, and nothing else tells the pool's geometry; give the options that made "
      "it (--size, --shards, --region-size, --segment-size, --index-entries, --grow-to)");
}

}  // namespace

Result<SalvageFrame> FindSalvageFrame(std::span<const std::byte> pool, const SalvageOptions& options) {
  if (pool.size() < format::kRegionTableOffset) {
    return Status(Code::kCorruption, "it has " + std::to_string(pool.size()) + " bytes, fewer than every pool has");
  }
  std::vector<Superblock> copies;
  for (const uint64_t offset : format::kSuperblockOffsets) copies.push_back(LoadAs<Superblock>(pool.subspan(offset)));
  const Superblock* counts = nullptr;
  for (const Superblock& copy : copies) {
    if (Verifies(copy) && (counts == nullptr || copy.generation > counts->generation)) counts = &copy;
  }
  if (counts != nullptr && !options.made) {
    return SalvageFrame{counts->geometry, format::PoolSeed(counts->uuid), counts->hash_seed, FrameSource::kSuperblock};
  }
  for (const Superblock& copy : copies) {
    if (copy.magic == format::kPoolMagic && !format::IsReadable(copy.format_version) &&
        format::SuperblockCrc(copy) == copy.crc) {
      return Status(Code::kInvalidArgument, "it has format version " + std::to_string(copy.format_version) +
                                                ", and this program reads version " + std::to_string(kFormatVersion) +
                                                ": use the erda-pool of its version");
    }
  }

  return options.made ? FrameAsMade(pool, copies, counts, *options.made) : FrameThatFits(pool, copies);
}

}  // namespace erda::inspect
