// A scheme's pool: opened or created, and how it is divided.
//
//   0            4096        8192           12288            log_offset    data_offset
//   +------------+-----------+--------------+----------------+-------------+-------------------- ... -+
//   | superblock | log head  | shard record | index          | log         | destinations              |
//   +------------+-----------+--------------+----------------+-------------+-------------------- ... -+
//
// The index is Erda's (src/index): hopscotch hashing over 16-byte slots, as in the paper, "Redo Logging, Read After
// Write and Erda leverage hopscotch hashing algorithm to index objects". The shard record holds what it notes of its
// moves.
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
  uint32_t crc;  // of the rest
  uint32_t scheme;
  uint32_t seed;  // random, of all checksums in the pool
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
  uint64_t index_entries = 0;  // of a new pool; 0: by its size, as Erda
  uint64_t log_bytes = 0;      // of a new pool; 0: by its size
};

class SchemePool {
 public:
  // kInvalidArgument: sizes that cannot be, or a pool of the other scheme. kCorruption: not a scheme's pool.
  static Result<std::unique_ptr<SchemePool>> Open(Scheme scheme, const PoolSettings& settings);
  // The same for a pool that was opened elsewhere.
  static Result<std::unique_ptr<SchemePool>> Take(std::unique_ptr<nvm::Pool> pool, Scheme scheme,
                                                  const PoolSettings& settings);

  [[nodiscard]] nvm::Pool& pool() { return *pool_; }
  // For the index: of its fields those that say where the index is, and how large.
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
  // By the superblock: index and log, and a page for destinations.
  [[nodiscard]] bool Fits() const;

  std::unique_ptr<nvm::Pool> pool_;
  Superblock superblock_{};
  format::Geometry geometry_{};
};

}  // namespace erda::schemes
