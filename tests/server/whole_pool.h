// The bytes of a whole pool, made of those of a Store. A Store has no superblock.
#pragma once

#include <array>
#include <cstring>
#include <vector>

#include "base/bytes.h"
#include "base/test_hash.h"
#include "format/superblock.h"
#include "inspect/inspection.h"
#include "server/store.h"

namespace erda::server {

// The PoolSeed of this uuid is that of every Store.
inline constexpr std::array<uint8_t, 16> kStoreUuid = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0x5c, 0x51, 0x16, 0xa7};

// Copy A of the superblock is from the time before the pool was used, and copy B counts.
inline std::vector<std::byte> WholePool(const PoolBytes& pool, bool clean) {
  std::vector<std::byte> bytes(pool.bytes.begin(), pool.bytes.end());
  for (uint32_t copy = 0; copy < 2; ++copy) {
    format::Superblock superblock{};
    superblock.magic = format::kPoolMagic;
    superblock.format_version = format::kFormatVersion;
    superblock.uuid = kStoreUuid;
    superblock.generation = copy + 1;
    superblock.clean = clean || copy == 0 ? 1 : 0;
    superblock.geometry = pool.geometry;
    superblock.hash_seed = kTestHashSeed;
    superblock.crc = format::SuperblockCrc(superblock);
    std::memcpy(bytes.data() + format::kSuperblockOffsets[copy], &superblock, sizeof(superblock));
  }
  return bytes;
}

}  // namespace erda::server
