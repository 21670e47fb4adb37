#include "log/fixture.h"

#include "base/bytes.h"

namespace erda::log {

using format::ObjectHeader;
using format::RegionWord;

TestLog::TestLog(LogShape shape) {
  constexpr uint64_t kShards = 2;
  const uint64_t pool_size = (uint64_t{256} << 10) + kShards * shape.regions * shape.region_size;
  auto geometry = format::ChooseGeometry({.pool_size = pool_size,
                                          .shards = kShards,
                                          .region_size = shape.region_size,
                                          .segment_size = shape.segment_size,
                                          .index_entries = 128});
  EXPECT_TRUE(geometry.ok()) << geometry.status().ToString();
  geometry_ = *geometry;
  geometry_.regions_per_shard = shape.regions;
  geometry_.heads_per_shard = shape.heads;
  EXPECT_TRUE(format::CheckGeometry(geometry_).ok());
  auto pool = nvm::Pool::Open({.path = "dram:", .size = pool_size});
  EXPECT_TRUE(pool.ok()) << pool.status().ToString();
  pool_ = *std::move(pool);
  nvm_.emplace(*pool_);
  const Status status = Reopen();
  EXPECT_TRUE(status.ok()) << status.ToString();
}

void TestLog::MakeLog() {
  control_.assign(format::ControlBytes(geometry_) / sizeof(uint64_t), 0);
  const auto control = std::as_writable_bytes(std::span<uint64_t>(control_));
  index_.reset();
  log_ = std::make_unique<ShardLog>(*nvm_, geometry_, kPoolSeed, kShard, control);
  index_.emplace(*nvm_, geometry_, kShard, index::Published::In(control, geometry_), log_.get());
}

Status TestLog::Reopen(uint64_t version_limit) {
  MakeLog();
  return log_->Recover().Open(version_limit);
}

Status TestLog::ReopenAfterCrash() {
  MakeLog();
  const auto visit = [](const format::ObjectView&) {};
  LogRecovery recovery = log_->Recover();
  if (auto status = recovery.OpenAfterCrash(UINT64_MAX, visit); !status.ok()) return status;
  if (auto status = recovery.CheckNamed(); !status.ok()) return status;
  found_plain_ = recovery.plain();
  recovery.FlushFound();
  recovery.Repair();
  log_->Close();
  return {};
}

std::optional<TestLog::Space> TestLog::Reserve(uint64_t bytes, uint32_t head_of_shard) {
  auto space = log_->Reserve(head(head_of_shard), bytes, next_version);
  if (!space.ok()) {
    EXPECT_EQ(space.status().code(), Code::kResourceExhausted);
    return std::nullopt;
  }
  ++next_version;
  return *space;
}

std::optional<TestLog::Space> TestLog::Append(uint64_t bytes, uint32_t head_of_shard) {
  const uint64_t version = next_version;
  const auto space = Reserve(bytes, head_of_shard);
  if (space) WriteHeader(head(head_of_shard), *space, bytes, version);
  return space;
}

void TestLog::WriteHeader(uint32_t head, const Space& space, uint64_t bytes, uint64_t version) {
  const std::string key = "key";
  ObjectHeader header{};
  header.key_size = static_cast<uint16_t>(key.size());
  header.kind = static_cast<uint8_t>(format::ObjectKind::kValue);
  header.value_size = static_cast<uint32_t>(bytes - format::ValueOffset(key.size()));
  header.version = version;
  header.header_crc = format::HeaderCrc(log_->PlaceOf(head, space.address), header, key);
  nvm_->Write(space.offset, BytesOf(header));
  nvm_->Write(space.offset + format::kLabelOffset, AsBytes(key));
  nvm_->Persist(space.offset, format::ChecksumOffset(key.size()));
}

void TestLog::Name(const Space& space, uint32_t head_of_shard) {
  const auto word = format::EntryWord().Published(space.address).Settled();
  log_->OnEntryChanged(head(head_of_shard), format::EntryWord(), word);
}

void TestLog::Unname(const Space& space, uint32_t head_of_shard) {
  const auto word = format::EntryWord().Published(space.address).Settled();
  log_->OnEntryChanged(head(head_of_shard), word, format::EntryWord());
}

bool TestLog::FillRegion(uint64_t bytes, uint32_t head_of_shard) {
  const uint32_t free = log_->regions().free_regions();
  while (log_->regions().free_regions() == free) {
    if (!Append(bytes, head_of_shard)) return false;
  }
  return true;
}

std::vector<LinkedRegion> TestLog::Full() {
  std::vector<LinkedRegion> full;
  counts().ForEachFull([&](const LinkedRegion& region) { full.push_back(region); });
  return full;
}

Use TestLog::UseOf(uint32_t slot) {
  for (const auto& region : Full()) {
    if (region.head == head() && region.slot == slot) return region.use;
  }
  ADD_FAILURE() << "slot " << slot << " has no full region";
  return {};
}

void TestLog::ZeroAndFree(uint32_t region) {
  nvm_->ZeroOut(geometry_.RegionOffset(region), geometry_.region_size);
  nvm_->Fence();
  log_->FreeEmptied(region);
}

RegionWord TestLog::region_word(uint32_t of_shard) const {
  return RegionWord(nvm_->Load64(format::kRegionTableOffset + region(of_shard) * sizeof(uint64_t)));
}

void TestLog::StoreRegionWord(uint32_t of_shard, uint64_t raw) {
  nvm_->Store64(format::kRegionTableOffset + region(of_shard) * sizeof(uint64_t), raw);
}

uint32_t TestLog::FreeRegions() const {
  uint32_t free = 0;
  for (uint32_t i = 0; i < geometry_.regions_per_shard; ++i) free += region_word(i).linked() ? 0 : 1;
  return free;
}

format::SegmentHeader TestLog::SegmentOf(const Space& space) const {
  const uint64_t in_segment = space.address.offset_in_slot() % geometry_.segment_size;
  return LoadAs<format::SegmentHeader>(bytes().subspan(space.offset - in_segment));
}

format::HeadSlot TestLog::Published(uint32_t head_of_shard, uint32_t slot) const {
  const auto control = std::as_bytes(std::span(control_));
  return format::HeadSlot(LoadAs<uint64_t>(control.subspan(format::HeadSlotOffset(geometry_, head_of_shard, slot))));
}

uint64_t TestLog::PublishedGeneration() const {
  return LoadAs<format::ControlBlock>(std::as_bytes(std::span(control_))).head_generation;
}

}  // namespace erda::log
