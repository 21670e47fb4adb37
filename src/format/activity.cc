#include "format/activity.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

#include "base/printable.h"

namespace erda::format {

namespace {

// Pairs with the shard's relaxed stores. The counts need no order among them.
uint64_t Load(const uint64_t& word) {
  return std::atomic_ref<uint64_t>(const_cast<uint64_t&>(word)).load(std::memory_order_relaxed);
}

void AddTimes(const TimeCounts& times, LatencyHistogram* sum) {
  for (size_t i = 0; i < LatencyHistogram::kBuckets; ++i) sum->counts[i] += Load(times.buckets[i]);
  sum->sum_nanos += Load(times.nanos);
}

// The text comes from a peer. It may have any bytes, and no terminating 0.
template <size_t N>
std::string TextOf(const std::array<char, N>& chars) {
  return Printable({chars.begin(), std::find(chars.begin(), chars.end(), '\0')});
}

}  // namespace

void AddActivity(std::span<const std::byte> bytes, Activity* sum) {
  const auto& block = *reinterpret_cast<const ActivityBlock*>(bytes.data());
  sum->operations.resize(kRequestKinds);
  for (size_t kind = 0; kind < kRequestKinds; ++kind) {
    OperationStats& operation = sum->operations[kind];
    operation.kind = kRequestKindNames[kind];
    for (size_t i = 0; i < OperationStats::kOutcomes; ++i) {
      operation.outcomes[i] += Load(block.kinds[kind].outcomes[i]);
    }
    AddTimes(block.kinds[kind].times, &operation.time);
  }
  AddTimes(block.persist, &sum->persist);
  AddTimes(block.clean_region, &sum->clean_region);
  AddTimes(block.hold, &sum->hold);
  for (const FabricCounts& counts : block.fabrics) {
    const std::string scheme = TextOf(counts.scheme);
    const std::string device = TextOf(counts.device);
    if (scheme.empty()) continue;
    auto fabric = std::ranges::find_if(
        sum->fabrics, [&](const FabricStats& each) { return each.scheme == scheme && each.device == device; });
    if (fabric == sum->fabrics.end()) {
      sum->fabrics.push_back({.scheme = scheme, .device = device});
      fabric = std::prev(sum->fabrics.end());
    }
    fabric->connections += Load(counts.connections);
    fabric->requests += Load(counts.requests);
    fabric->refused += Load(counts.refused);
    fabric->violations += Load(counts.violations);
  }
}

}  // namespace erda::format
