#include "bench/schemes/server/scheme_pool.h"

#include <algorithm>
#include <bit>
#include <random>
#include <string>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "bench/schemes/entry.h"

namespace erda::schemes {

namespace {

constexpr std::array<char, 8> kPoolMagic = {'E', 'R', 'D', 'A', 'S', 'C', 'H', 'M'};
constexpr uint32_t kPoolVersion = 2;
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kPoolBytesPerIndexSlot = 256;  // As in Erda.
constexpr uint64_t kLogBytesMin = 16 * kPageBytes;
constexpr uint64_t kLogBytesDefault = 8 << 20;  // As large as the paper's segments.

uint32_t CrcOf(const Superblock& superblock) {
  Superblock copy = superblock;
  copy.crc = 0;
  return Crc32c(0, BytesOf(copy));
}

}  // namespace

Result<std::unique_ptr<SchemePool>> SchemePool::Open(Scheme scheme, const PoolSettings& settings) {
  auto opened = nvm::Pool::Open(settings.pool);
  if (!opened.ok()) return opened.status();
  return Take(*std::move(opened), scheme, settings);
}

Result<std::unique_ptr<SchemePool>> SchemePool::Take(std::unique_ptr<nvm::Pool> opened, Scheme scheme,
                                                     const PoolSettings& settings) {
  std::unique_ptr<SchemePool> pool(new SchemePool(std::move(opened)));
  nvm::Pool& bytes = pool->pool();
  // A device always exists. A given size, and zeroes in place of the superblock, mean that it is to become a pool.
  const bool blank_device = bytes.is_device() && settings.pool.size != 0 && bytes.size() >= kIndexOffset &&
                            IsZero(bytes.bytes().first(kIndexOffset));
  const bool create = bytes.created() || blank_device;
  const Status status = create ? pool->Create(scheme, settings) : pool->Check(scheme);
  if (status.ok()) return pool;
  bytes.RemoveIfCreated();
  return Status(status.code(), "pool " + settings.pool.path + ": " + std::string(status.message()));
}

uint64_t SchemePool::log_offset() const { return AlignUp(geometry_.FirstSlotOffset(1, 0), kPageBytes); }

uint64_t SchemePool::data_end() const { return AlignDown(superblock_.pool_size, kGranule); }

void SchemePool::SetGeometry() {
  geometry_.pool_size = superblock_.pool_size;
  geometry_.index_slots = superblock_.index_slots;
  geometry_.block_shift = static_cast<uint16_t>(std::countr_zero(superblock_.index_slots));  // One block, of any size.
  geometry_.index_offset = kIndexOffset;
  geometry_.shards = 1;
  geometry_.heads_per_shard = 1;
}

bool SchemePool::Fits() const {
  // Divides, so that nothing can overflow.
  return superblock_.index_slots <= superblock_.pool_size / sizeof(format::IndexEntry) &&
         superblock_.log_bytes <= superblock_.pool_size && data_offset() + kPageBytes <= data_end();
}

Status SchemePool::Create(Scheme scheme, const PoolSettings& settings) {
  superblock_.magic = kPoolMagic;
  superblock_.version = kPoolVersion;
  superblock_.scheme = static_cast<uint32_t>(scheme);
  superblock_.seed = std::random_device()();
  superblock_.pool_size = pool_->size();
  const uint64_t wanted = settings.index_entries != 0 ? settings.index_entries : pool_->size() / kPoolBytesPerIndexSlot;
  superblock_.index_slots = std::bit_ceil(std::clamp(wanted, format::kIndexSlotsMin, uint64_t{1} << 48));
  const uint64_t log_bytes = settings.log_bytes != 0
                                 ? settings.log_bytes
                                 : std::clamp(AlignDown(pool_->size() / 8, kPageBytes), kLogBytesMin, kLogBytesDefault);
  superblock_.log_bytes = AlignUp(log_bytes, kPageBytes);
  if (superblock_.log_bytes < kLogBytesMin) {
    return {Code::kInvalidArgument, "the log must have at least " + std::to_string(kLogBytesMin) + " bytes"};
  }
  SetGeometry();
  if (!Fits()) {
    return {Code::kInvalidArgument,
            "its index, its log and values do not fit into " + std::to_string(pool_->size()) + " bytes"};
  }
  superblock_.crc = CrcOf(superblock_);
  nvm::Writer writer(*pool_);
  // The old contents of a device are unknown. Entries in its log do not verify, since the seed is new.
  if (!pool_->created()) writer.ZeroOut(kLogHeadOffset, log_offset() - kLogHeadOffset);
  writer.Fence();
  writer.Write(0, BytesOf(superblock_));  // Last: this makes it a pool.
  writer.Persist(0, sizeof(superblock_));
  return {};
}

Status SchemePool::Check(Scheme scheme) {
  if (pool_->size() < kIndexOffset) return {Code::kCorruption, "it is not a pool of a compared scheme"};
  superblock_ = LoadAs<Superblock>(pool_->bytes());
  if (superblock_.magic != kPoolMagic) return {Code::kCorruption, "it is not a pool of a compared scheme"};
  if (superblock_.version != kPoolVersion || CrcOf(superblock_) != superblock_.crc) {
    return {Code::kCorruption, "its superblock is damaged or of another version"};
  }
  if (superblock_.pool_size != pool_->size()) return {Code::kInvalidArgument, "it was made with another size"};
  if (superblock_.scheme != static_cast<uint32_t>(scheme)) {
    return {Code::kInvalidArgument, "the server of the other scheme made it"};
  }
  SetGeometry();
  if (superblock_.index_slots < format::kIndexSlotsMin || !std::has_single_bit(superblock_.index_slots) ||
      superblock_.log_bytes < kLogBytesMin || superblock_.log_bytes % kPageBytes != 0 || !Fits()) {
    return {Code::kCorruption, "its superblock has numbers out of range"};
  }
  // The server that made it may have died before the superblock was persistent.
  nvm::Writer(*pool_).Persist(0, sizeof(superblock_));
  return {};
}

}  // namespace erda::schemes
