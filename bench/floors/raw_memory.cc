#include "bench/floors/raw_memory.h"

#include <fcntl.h>
#include <libpmem.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/bytes.h"
#include "format/log_layout.h"
#include "format/superblock.h"

namespace erda::floors {

namespace {

constexpr uint64_t kPageBytes = 4096;

}  // namespace

Result<std::unique_ptr<RawMemory>> RawMemory::Open(const std::string& pool, uint64_t bytes) {
  std::unique_ptr<RawMemory> raw(new RawMemory());
  if (pool == "dram:") {
    auto memory = SharedMemory::Create("erda-raw", AlignUp(bytes, kPageBytes));
    if (!memory.ok()) return memory.status();
    raw->memory_ = *std::move(memory);
    raw->area_ = {0, bytes};
    return raw;
  }
  if (auto status = raw->MapFile(pool); !status.ok()) return status;
  if (auto status = raw->FindArea(bytes); !status.ok()) return status;
  return raw;
}

RawMemory::~RawMemory() {
  if (!mapped_.empty()) pmem_unmap(mapped_.data(), mapped_.size());
}

// Maps the file as nvm::Pool does, but without the lock, which the server holds.
Status RawMemory::MapFile(const std::string& path) {
  read_write_ = UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  read_only_ = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!read_write_ || !read_only_) return ErrnoStatus("cannot open pool " + path);
  size_t size = 0;
  int is_pmem = 0;
  void* at = pmem_map_file(path.c_str(), 0, 0, 0, &size, &is_pmem);
  if (at == nullptr) return ErrnoStatus("cannot map pool " + path);
  mapped_ = {static_cast<std::byte*>(at), size};
  is_pmem_ = is_pmem != 0;
  return {};
}

// Finds the area after the first page of the region, so that it contains no segment header that the server reads.
Status RawMemory::FindArea(uint64_t bytes) {
  const auto found = format::FindSuperblock(mapped_);
  if (!found.ok()) return found.status();
  const format::Geometry& geometry = found->superblock.geometry;
  const uint32_t last = geometry.regions() - 1;
  region_word_at_ = format::kRegionTableOffset + last * sizeof(uint64_t);
  area_.offset = geometry.RegionOffset(last) + kPageBytes;
  area_.bytes = std::min(bytes, geometry.region_size - kPageBytes);
  if (!untouched())
    return {Code::kResourceExhausted,
            "the pool is full, and the raw operations need its last region; give a larger --pool-size"};
  return {};
}

MemoryView RawMemory::view() const {
  return mapped_.empty() ? memory_.view() : MemoryView{mapped_, read_write_.get(), read_only_.get()};
}

void RawMemory::Persist(uint64_t offset, uint64_t bytes) const {
  if (is_pmem_) pmem_persist(mapped_.data() + offset, bytes);
}

bool RawMemory::untouched() const {
  if (mapped_.empty()) return true;
  // The shard stores the region word as one word. Its generation would reveal an earlier use.
  auto& word = *reinterpret_cast<uint64_t*>(mapped_.data() + region_word_at_);
  return std::atomic_ref<uint64_t>(word).load(std::memory_order_acquire) == format::RegionWord::Free(0).raw();
}

}  // namespace erda::floors
