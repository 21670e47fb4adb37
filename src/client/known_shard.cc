#include "client/known_shard.h"

#include <cstring>

#include "base/bytes.h"

namespace erda::client {

void KnownShard::Reset(const format::HelloReply& hello) {
  geometry_ = hello.geometry;
  pool_seed_ = format::PoolSeed(hello.pool_uuid);
  runs_.assign(geometry_.runs_max(), 0);
  layout_.emplace(geometry_, shard_, runs_);
  displacements_ = 0;
  time_ = 0;  // the server may be another one, with an earlier time
}

void KnownShard::LearnControl(std::span<const std::byte> control) {
  slots_.resize(uint64_t{geometry_.heads_per_shard} * geometry_.slots_per_head());
  const auto slots = control.subspan(format::kControlHeadsOffset, slots_.size() * sizeof(uint64_t));
  if (std::memcmp(slots_.data(), slots.data(), slots.size()) != 0) {
    ++slot_changes_;
    std::memcpy(slots_.data(), slots.data(), slots.size());
  }
  std::memcpy(runs_.data(), control.data() + format::RunsOffset(geometry_), runs_.size() * sizeof(uint32_t));
  Learn(LoadAs<Reading>(control));
}

void KnownShard::Learn(const Reading& reading) {
  displacements_ = std::max(displacements_, reading.displacements);
  LearnTime(reading.time);
  if (reading.blocks > layout_->blocks() && reading.blocks <= geometry_.blocks_max()) {
    layout_->SetBlocks(reading.blocks);
  }
  const format::Reaches reaches(reading.reaches);
  if (reaches != layout_->reaches()) layout_->SetReaches(layout_->reaches().With(reaches));
}

}  // namespace erda::client
