#include "server/cleaning/merge_pace.h"

namespace erda::server {

namespace {

// How much faster than the puts the cleaner walks, and how far it may walk at once.
constexpr double kHaste = 1.5;
constexpr uint64_t kStartBytes = 64 << 10;

}  // namespace

void MergePace::Begin(uint64_t region_size, uint64_t dead_bytes) {
  appended_ = log_.tails().appended();
  walked_ = queues_.walked.load(std::memory_order_relaxed);
  bytes_per_byte_ = kHaste * static_cast<double>(region_size) / static_cast<double>(dead_bytes);
}

void MergePace::Update(bool hurry) {
  uint64_t allowance = UINT64_MAX;
  if (!hurry) {
    const auto appended = static_cast<double>(log_.tails().appended() - appended_);
    allowance = walked_ + kStartBytes + static_cast<uint64_t>(appended * bytes_per_byte_);
  }
  const uint64_t before = queues_.allowance.load(std::memory_order_relaxed);
  const bool little_more = allowance >= before && allowance - before < kStartBytes;
  if (little_more && (allowance != UINT64_MAX || allowance == before)) return;  // not worth waking the cleaner
  queues_.allowance.store(allowance, std::memory_order_relaxed);
  queues_.bell.Ring();
}

}  // namespace erda::server
