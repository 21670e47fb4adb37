// The activity of a shard: what it did, and for how long. It lies in the shard's control block, where clients and
// Server::activity() read it. The shard's thread writes, and any thread reads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "format/activity.h"

namespace erda::server {

// As with Counters, there is one writer and any number of readers, and all accesses are relaxed.
class ActivityCounts {
 public:
  ActivityCounts(std::span<std::byte> control, const format::Geometry& geometry)
      : block_(*reinterpret_cast<format::ActivityBlock*>(control.data() + format::ActivityOffset(geometry))) {}

  // kind: a RequestOp, or 0.
  void CountAnswer(uint8_t kind, Code code) { Add(block_.kinds[kind].outcomes[static_cast<size_t>(code)], 1); }
  void TimeAnswers(uint8_t kind, Nanoseconds each, uint64_t n) { AddTimes(block_.kinds[kind].times, each, n); }
  void TimePersist(Nanoseconds time) { AddTimes(block_.persist, time, 1); }
  void TimeHold(Nanoseconds time) { AddTimes(block_.hold, time, 1); }
  void TimeCleanRegion(Nanoseconds time) { AddTimes(block_.clean_region, time, 1); }

  static constexpr size_t kFabrics = std::size(format::ActivityBlock{}.fabrics);
  // REQUIRES, as of the others: number < kFabrics.
  void NameFabric(size_t number, std::string_view scheme, std::string_view device) {
    format::FabricCounts& fabric = block_.fabrics[number];
    scheme.copy(fabric.scheme.data(), fabric.scheme.size() - 1);
    device.copy(fabric.device.data(), fabric.device.size() - 1);
  }
  void CountConnection(size_t fabric, bool comes) { Add(block_.fabrics[fabric].connections, comes ? 1 : ~uint64_t{0}); }
  void CountRequest(size_t fabric) { Add(block_.fabrics[fabric].requests, 1); }
  void CountRefused(size_t fabric) { Add(block_.fabrics[fabric].refused, 1); }
  void CountViolation(size_t fabric) { Add(block_.fabrics[fabric].violations, 1); }

  [[nodiscard]] std::span<const std::byte> bytes() const { return BytesOf(block_); }

 private:
  static void Add(uint64_t& word, uint64_t n) {
    const std::atomic_ref<uint64_t> counter(word);
    counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  static void AddTimes(format::TimeCounts& times, Nanoseconds each, uint64_t n) {
    const auto nanos = static_cast<uint64_t>(std::max(each, Nanoseconds(0)).count());
    Add(times.buckets[format::BucketOf(nanos)], n);
    Add(times.nanos, n * nanos);
  }

  format::ActivityBlock& block_;
};

}  // namespace erda::server
