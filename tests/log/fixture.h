// The tests of the log share this fixture: the log of one shard of two, over tiny regions. It writes headers and keys
// as the server writes them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/control_block.h"
#include "format/geometry.h"
#include "format/log_layout.h"
#include "index/index.h"
#include "index/published.h"
#include "log/shard_log.h"
#include "nvm/pool.h"
#include "nvm/writer.h"

namespace erda::log {

struct LogShape {
  uint32_t regions = 6;  // of each shard
  uint32_t heads = 2;    // of each shard
  uint64_t region_size = 16384;
  uint64_t segment_size = 4096;
};

class TestLog {
 public:
  static constexpr uint32_t kShard = 1;
  static constexpr uint32_t kPoolSeed = 0x1234;
  using Space = log::Space;

  explicit TestLog(LogShape shape = {});

  [[nodiscard]] const format::Geometry& geometry() const { return geometry_; }
  [[nodiscard]] uint32_t head(uint32_t of_shard = 0) const { return kShard * geometry_.heads_per_shard + of_shard; }
  [[nodiscard]] uint32_t region(uint32_t of_shard) const { return geometry_.RegionOf(kShard, of_shard); }
  [[nodiscard]] std::span<std::byte> bytes() const { return pool_->view().bytes; }
  [[nodiscard]] nvm::Writer& nvm() { return *nvm_; }
  ShardLog& operator*() { return *log_; }
  ShardLog* operator->() { return log_.get(); }

  // A new server takes up the same pool, by `LogRecovery::Open`.
  Status Reopen(uint64_t version_limit = UINT64_MAX);
  // A new server takes up the same pool by `LogRecovery::OpenAfterCrash`, with nothing in flight.
  Status ReopenAfterCrash();
  // Returns `LogRecovery::plain()` of the last ReopenAfterCrash.
  [[nodiscard]] bool found_plain() const { return found_plain_; }

  // Reserves room for an object of `bytes` bytes, with the next version. Returns nothing if the log has no room.
  // Requires: `bytes` is a multiple of the granule.
  std::optional<Space> Reserve(uint64_t bytes, uint32_t head_of_shard = 0);
  // Reserves room, and writes header and key there. Requires: `bytes` is at least 48.
  std::optional<Space> Append(uint64_t bytes, uint32_t head_of_shard = 0);
  // Writes header and key of an object of `bytes` bytes.
  void WriteHeader(uint32_t head, const Space& space, uint64_t bytes, uint64_t version);
  // Tells the log that a settled entry names the object, or no longer names it.
  void Name(const Space& space, uint32_t head_of_shard = 0);
  void Unname(const Space& space, uint32_t head_of_shard = 0);
  // Appends objects of `bytes` bytes until the log links another region to the head. Returns false if it can link none.
  bool FillRegion(uint64_t bytes = 496, uint32_t head_of_shard = 0);
  // Returns the regions that the log has filled, and to which it appends nothing more.
  [[nodiscard]] std::vector<LinkedRegion> Full();
  // Returns the log's counts. Nothing waits to be counted: no put is published here.
  [[nodiscard]] RegionCounts counts() { return log_->counts(index_->TellPublished()); }
  // Returns the counts of the full region in a head slot of the first head.
  [[nodiscard]] Use UseOf(uint32_t slot);
  // Fills an emptied region with zeroes, and frees it.
  void ZeroAndFree(uint32_t region);
  // The version that the next Reserve takes.
  uint64_t next_version = 1;

  [[nodiscard]] format::RegionWord region_word(uint32_t of_shard) const;
  void StoreRegionWord(uint32_t of_shard, uint64_t raw);
  [[nodiscard]] uint32_t FreeRegions() const;
  [[nodiscard]] format::SegmentHeader SegmentOf(const Space& space) const;
  [[nodiscard]] format::SegmentState StateOf(const Space& space) const {
    return static_cast<format::SegmentState>(SegmentOf(space).state);
  }
  // The control block as clients read it.
  [[nodiscard]] format::HeadSlot Published(uint32_t head_of_shard, uint32_t slot) const;
  [[nodiscard]] uint64_t PublishedGeneration() const;

 private:
  void MakeLog();

  format::Geometry geometry_{};
  std::unique_ptr<nvm::Pool> pool_;
  std::optional<nvm::Writer> nvm_;
  std::vector<uint64_t> control_;
  std::unique_ptr<ShardLog> log_;
  std::optional<index::Index> index_;  // Reports to the log. It has no entries.
  bool found_plain_ = false;
};

// Returns the bytes that an empty segment has for objects. Segment 0 begins with a tombstone slot and has fewer.
inline uint64_t RoomIn(const TestLog& log, uint64_t segment) {
  return log.geometry().segment_size - format::FirstObjectOffset(segment);
}

}  // namespace erda::log
