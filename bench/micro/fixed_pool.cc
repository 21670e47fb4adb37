#include "bench/micro/fixed_pool.h"

#include <utility>

#include "base/bytes.h"
#include "format/superblock.h"
#include "nvm/pool.h"
#include "nvm/writer.h"

namespace erda::micro {

namespace {

constexpr uint64_t kPoolBytes = 128 << 20;
constexpr HashSeed kHashSeed = {0x0706050403020100, 0x0f0e0d0c0b0a0908};

}  // namespace

Result<std::unique_ptr<server::FormattedPool>> MakeFixedPool() {
  const nvm::PoolOptions options{.path = "dram:", .size = kPoolBytes};
  const format::GeometryWish wish{.pool_size = kPoolBytes, .shards = 1};
  auto geometry = format::ChooseGeometry(wish);
  if (!geometry.ok()) return geometry.status();
  auto pool = nvm::Pool::Open(options);
  if (!pool.ok()) return pool.status();
  format::Superblock superblock{};
  superblock.magic = format::kPoolMagic;
  superblock.format_version = format::kFormatVersion;
  superblock.uuid.fill(0x5e);
  superblock.generation = 1;
  superblock.clean = 1;
  superblock.geometry = *geometry;
  superblock.hash_seed = kHashSeed;
  superblock.crc = format::SuperblockCrc(superblock);
  nvm::Writer nvm(**pool);
  nvm.Write(format::kSuperblockOffsets[0], BytesOf(superblock));
  nvm.Persist(format::kSuperblockOffsets[0], sizeof(superblock));
  return server::FormattedPool::Take(*std::move(pool), options, wish);
}

}  // namespace erda::micro
