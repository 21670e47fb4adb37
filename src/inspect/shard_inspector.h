// Looks through a shard of a pool: its record and the regions, the log (log_inspection.cc), the index
// (index_inspection.cc). Reads only, and trusts nothing that it reads.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "format/index_layout.h"
#include "format/log_layout.h"
#include "inspect/inspection.h"

namespace erda::inspect {

class ShardInspector {
 public:
  ShardInspector(std::span<const std::byte> pool, uint32_t shard, const Options& options, PoolReport* report)
      : pool_(pool),
        g_(report->superblock.geometry),
        seed_(format::PoolSeed(report->superblock.uuid)),
        hash_seed_(report->superblock.hash_seed),
        options_(options),
        runs_(g_.runs_max()),
        layout_(g_, shard, runs_),
        regions_(g_.heads_per_shard * g_.slots_per_head(), kNoRegion),
        report_(*report) {
    shard_.shard = shard;
  }

  ShardReport Inspect() {
    LinkRegions();
    LookAtRecord();
    for (uint32_t i = 0; i < g_.heads_per_shard; ++i) LookAtHead(i);
    LookAtIndex();
    return std::move(shard_);
  }

 private:
  static constexpr uint32_t kNoRegion = UINT32_MAX;

  [[nodiscard]] std::span<const std::byte> Bytes(uint64_t offset, uint64_t size) const {
    return pool_.subspan(offset, size);
  }
  [[nodiscard]] uint64_t FirstHead() const { return uint64_t{shard_.shard} * g_.heads_per_shard; }
  [[nodiscard]] format::RegionWord RegionWordOf(uint32_t region) const {
    return format::RegionWord(
        LoadAs<uint64_t>(Bytes(format::kRegionTableOffset + region * sizeof(uint64_t), sizeof(uint64_t))));
  }
  [[nodiscard]] format::IndexEntry EntryAt(uint64_t slot) const {
    return LoadAs<format::IndexEntry>(Bytes(layout_.SlotOffset(slot), sizeof(format::IndexEntry)));
  }

  void Add(Damage damage) {
    ++report_.damage_count;
    damage.shard = shard_.shard;
    if (report_.damage.size() < options_.damage_listed) report_.damage.push_back(std::move(damage));
  }
  void Add(std::string what) {
    Damage damage;
    damage.what = std::move(what);
    Add(std::move(damage));
  }

  [[nodiscard]] uint32_t HeadOf(const format::IndexEntry& entry) const { return g_.HeadOf(entry.entry_meta().tag()); }

  void LookAtRecord();
  void LookAtBlocks(format::CheckedWord record);
  void LinkRegions();
  void LookAtHead(uint32_t head_in_shard);
  void LookAtSegment(HeadReport* head, uint32_t slot, uint32_t region, uint64_t segment);
  void LookAtIndex();
  void LookAtEntry(uint64_t slot, const format::IndexEntry& entry);
  void LookAtUnsettled(uint64_t slot, const format::IndexEntry& entry, const format::ObjectView& newest);
  [[nodiscard]] std::string FindFault(uint64_t slot, const format::IndexEntry& entry,
                                      const format::ObjectView& newest) const;
  [[nodiscard]] bool IsKeyOf(uint64_t slot, format::EntryMeta meta, uint64_t key_hash) const;
  void AddEntry(uint64_t slot, const format::IndexEntry& entry, std::string what);

  [[nodiscard]] uint32_t& RegionIn(uint64_t head_in_shard, uint32_t slot) {
    return regions_[head_in_shard * g_.slots_per_head() + slot];
  }
  // kNoRegion if no entry can lead there.
  [[nodiscard]] uint32_t RegionAt(uint32_t head, format::LogAddress address) const;
  // The pool's bytes from an address to the end of its chunk or segment; empty if no entry can lead there.
  [[nodiscard]] std::span<const std::byte> BytesAt(uint32_t head, format::LogAddress address) const;
  [[nodiscard]] format::Place PlaceOf(uint32_t head, format::LogAddress address) const;
  [[nodiscard]] format::ObjectView Header(uint32_t head, format::LogAddress address) const {
    return format::InspectHeader(PlaceOf(head, address), BytesAt(head, address));
  }
  // The segment's header says that what is there is settled.
  [[nodiscard]] bool CountsAsSettled(uint32_t head, format::LogAddress address) const;
  // With the value, if that can still be read; unread_ says if not.
  format::ObjectView Whole(uint32_t head, format::LogAddress address);
  // An entry names the object.
  void CountLive(uint32_t head, format::LogAddress address, uint64_t space);

  const std::span<const std::byte> pool_;
  const format::Geometry& g_;
  const uint32_t seed_;
  const HashSeed hash_seed_;
  const Options& options_;
  std::vector<uint32_t> runs_;  // of the index, as in a control block
  format::IndexLayout layout_;
  std::vector<uint32_t> regions_;  // by head and slot
  PoolReport& report_;
  ShardReport shard_;

  // Of the head at hand.
  struct Walked {
    bool any = false;
    bool opened_all = true;      // of the region at hand, so far
    uint64_t segment_first = 0;  // version of the segment before
    uint64_t newest_first = 0;   // of all segments of the head
    bool newest_is_open = false;
  };
  Walked walked_;
  // Bytes of values that may still be read. In a sound pool no two entries lead to one object, so the log's size is
  // enough; where they do, this keeps the time in bounds.
  uint64_t budget_ = 0;
  bool budget_spent_ = false;
  bool unread_ = false;  // the last value that Whole was to read
  // A chunk of the log that a client fills. It may write any size into a header there, so what its objects take of the
  // budget, and of what counts as live, is bounded by the chunk: it hides no damage elsewhere.
  struct Chunk {
    uint64_t end = 0;  // in the pool
    uint64_t budget = 0;
    uint64_t not_live = 0;
    bool claims_more = false;  // its objects, than it has
  };
  using Chunks = std::map<uint64_t, Chunk>;  // by where their objects begin in the pool
  // The chunk that an offset in the pool is in, or the end.
  template <class AnyChunks>
  [[nodiscard]] static auto FindChunk(AnyChunks& chunks, uint64_t offset) {
    const auto after = chunks.upper_bound(offset);
    if (after == chunks.begin() || offset >= std::prev(after)->second.end) return chunks.end();
    return std::prev(after);
  }
  // Null: the address is in none.
  [[nodiscard]] Chunk* ChunkOf(uint32_t head, format::LogAddress address);
  Chunks chunks_;
};

}  // namespace erda::inspect
