// A scheme's pool: opened or created, and its division.
//
//   0            4096        8192           12288            log_offset    data_offset
//   +------------+-----------+--------------+----------------+-------------+-------------------- ... -+
//   | superblock | log head  | shard record | index          | log         | destinations              |
//   +------------+-----------+--------------+----------------+-------------+-------------------- ... -+
//
// The index is Erda's (src/index): hopscotch hashing over 16-byte slots. The paper: "Redo Logging, Read After Write and
// Erda leverage hopscotch hashing algorithm to index objects". The shard record holds the index's notes of its moves.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "bench/schemes/scheme.h"
#include "erda/status.h"
#include "format/check.h"
#include "format/geometry.h"
#include "format/superblock.h"
#include "nvm/pool.h"
#include "nvm/writer.h"

namespace erda::schemes {

struct Superblock {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t crc;  // Of the rest.
  uint32_t scheme;
  uint32_t seed;  // Random, of all checksums in the pool.
  uint64_t pool_size;
  uint64_t index_slots;
  uint64_t log_bytes;
};
ERDA_FORMAT_SIZE(Superblock, 48);
ERDA_FORMAT_FIELD(Superblock, crc, 12);

// Bytes of the log that were applied, and are free.
inline constexpr uint64_t kLogHeadOffset = 4096;
inline constexpr uint64_t kIndexOffset = 12288;
static_assert(kIndexOffset >= format::kShardRecordsOffset + sizeof(format::ShardRecord));

struct PoolSettings {
  nvm::PoolOptions pool;
  uint64_t index_entries = 0;  // Of a new pool; 0: by its size, as in Erda.
  uint64_t log_bytes = 0;      // Of a new pool; 0: by its size.
};

class SchemePool {
 public:
  // Returns kInvalidArgument if the sizes are impossible, or if the pool belongs to the other scheme. Returns
  // kCorruption if it is not a scheme's pool.
  static Result<std::unique_ptr<SchemePool>> Open(Scheme scheme, const PoolSettings& settings);
  // Does the same with a pool that was opened elsewhere.
  static Result<std::unique_ptr<SchemePool>> Take(std::unique_ptr<nvm::Pool> pool, Scheme scheme,
                                                  const PoolSettings& settings);

  [[nodiscard]] nvm::Pool& pool() { return *pool_; }
  // Returns the geometry for the index. Only the fields that say where the index is, and how large, are set.
  [[nodiscard]] const format::Geometry& geometry() const { return geometry_; }
  [[nodiscard]] uint32_t seed() const { return superblock_.seed; }
  [[nodiscard]] uint64_t log_offset() const;
  [[nodiscard]] uint64_t log_bytes() const { return superblock_.log_bytes; }
  [[nodiscard]] uint64_t data_offset() const { return log_offset() + log_bytes(); }
  [[nodiscard]] uint64_t data_end() const;

 private:
  explicit SchemePool(std::unique_ptr<nvm::Pool> pool) : pool_(std::move(pool)) {}
  [[nodiscard]] Status Create(Scheme scheme, const PoolSettings& settings);
  [[nodiscard]] Status Check(Scheme scheme);
  void SetGeometry();
  // Returns true if, by the superblock, the pool has room for index, log, and a page of destinations.
  [[nodiscard]] bool Fits() const;

  std::unique_ptr<nvm::Pool> pool_;
  Superblock superblock_{};
  format::Geometry geometry_{};
};

}  // namespace erda::schemes
