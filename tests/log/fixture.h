// What the tests of the log share: the log of one shard of two over tiny regions, and objects written as the server
// writes them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/geometry.h"
#include "format/log_layout.h"
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

  // A new server takes up the same pool.
  Status Reopen(uint64_t version_limit = UINT64_MAX);
  // The same after one that died; with nothing in flight.
  Status ReopenAfterCrash();
  // What the last ReopenAfterCrash found was plain.
  [[nodiscard]] bool found_plain() const { return found_plain_; }

  // Reserves room for an object of so many bytes, a multiple of the granule, with the next version; nothing if there is
  // none.
  std::optional<Space> Reserve(uint64_t bytes, uint32_t head_of_shard = 0);
  // The same, and writes header and key. `bytes` is at least 48.
  std::optional<Space> Append(uint64_t bytes, uint32_t head_of_shard = 0);
  // Header and key of an object of so many bytes.
  void WriteHeader(uint32_t head, const Space& space, uint64_t bytes, uint64_t version);
  // An entry names the place from now on, settled / does not any more.
  void Name(const Space& space, uint32_t head_of_shard = 0);
  void Unname(const Space& space, uint32_t head_of_shard = 0);
  // Appends objects of that size until another region is linked to the head; false if none is.
  bool FillRegion(uint64_t bytes = 496, uint32_t head_of_shard = 0);
  // All regions to which nothing is appended any more.
  [[nodiscard]] std::vector<LinkedRegion> Full();
  // How much of the full region in a slot of the first head is needed.
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
  // What the clients see.
  [[nodiscard]] format::HeadSlot Published(uint32_t head_of_shard, uint32_t slot) const;
  [[nodiscard]] uint64_t PublishedGeneration() const;

 private:
  void MakeLog();

  format::Geometry geometry_{};
  std::unique_ptr<nvm::Pool> pool_;
  std::optional<nvm::Writer> nvm_;
  std::vector<uint64_t> control_;
  std::unique_ptr<ShardLog> log_;
  bool found_plain_ = false;
};

// What an empty segment 0, and any other, has for objects.
inline uint64_t RoomIn(const TestLog& log, uint64_t segment) {
  return log.geometry().segment_size - format::FirstObjectOffset(segment);
}

}  // namespace erda::log
