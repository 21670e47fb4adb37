// The bytes of one shard of the pool that is inspected, by their places. Does not judge them. Any thread may use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/hash.h"
#include "format/log_layout.h"
#include "format/object.h"
#include "format/superblock.h"

namespace erda::inspect {

class ShardBytes {
 public:
  // REQUIRES: the pool has all bytes of the superblock's geometry, and the superblock outlives this object.
  ShardBytes(std::span<const std::byte> pool, const format::Superblock& superblock, uint32_t shard)
      : pool_(pool),
        geometry_(superblock.geometry),
        seed_(format::PoolSeed(superblock.uuid)),
        hash_seed_(superblock.hash_seed),
        shard_(shard) {}

  [[nodiscard]] const format::Geometry& geometry() const { return geometry_; }
  [[nodiscard]] uint32_t seed() const { return seed_; }
  [[nodiscard]] const HashSeed& hash_seed() const { return hash_seed_; }
  [[nodiscard]] uint32_t shard() const { return shard_; }
  [[nodiscard]] uint64_t first_head() const { return uint64_t{shard_} * geometry_.heads_per_shard; }

  // REQUIRES: the range is in the pool.
  [[nodiscard]] std::span<const std::byte> At(uint64_t offset, uint64_t size) const {
    return pool_.subspan(offset, size);
  }
  template <class T>
  [[nodiscard]] T Load(uint64_t offset) const {
    return LoadAs<T>(At(offset, sizeof(T)));
  }
  [[nodiscard]] format::RegionWord RegionWordOf(uint32_t region) const {
    return format::RegionWord(Load<uint64_t>(format::kRegionTableOffset + region * sizeof(uint64_t)));
  }

 private:
  const std::span<const std::byte> pool_;
  const format::Geometry& geometry_;
  const uint32_t seed_;
  const HashSeed hash_seed_;
  const uint32_t shard_;
};

}  // namespace erda::inspect
