// The counts of a shard's activity, for monitoring: requests by kind, outcome and time, and requests by fabric. They
// stand after the control block. So clients that read the control block for their work do not read the counts with it.
//
//   byte 0                            5120           5320           5520 5632                  6144        6344  6400
//   +--------------------------------+--------------+--------------+----+---------------------+-----------+-----+
//   | 16 kinds of 320 bytes, by      | times: steps | times:       | 0  | 8 fabrics of 64     | times:    | 0   |
//   | RequestOp; 0: asks for the time| that persist | regions that |    | bytes               | a journal |     |
//   |                                |              | are cleaned  |    |                     | holds     |     |
//   +--------------------------------+--------------+--------------+----+---------------------+-----------+-----+
//   kind:   10 counts by Code, 5 words of 0, times
//   times:  24 counts by bucket, sum in nanoseconds
//   fabric: scheme (8 bytes, ends with 0), device (24, ends with 0), connections, requests, refused, violations
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <iterator>
#include <span>

#include "base/bytes.h"
#include "erda/activity.h"
#include "format/check.h"
#include "format/control_block.h"
#include "format/messages.h"

namespace erda::format {

struct TimeCounts {
  uint64_t buckets[LatencyHistogram::kBuckets];
  uint64_t nanos;
};
ERDA_FORMAT_SIZE(TimeCounts, 200);
ERDA_FORMAT_FIELD(TimeCounts, nanos, 192);

struct KindCounts {
  uint64_t outcomes[OperationStats::kOutcomes];
  uint64_t reserved[5];
  TimeCounts times;
};
ERDA_FORMAT_SIZE(KindCounts, 320);
ERDA_FORMAT_FIELD(KindCounts, times, 120);

struct FabricCounts {
  std::array<char, 8> scheme;
  std::array<char, 24> device;
  uint64_t connections;
  uint64_t requests;
  uint64_t refused;
  uint64_t violations;
};
ERDA_FORMAT_SIZE(FabricCounts, 64);
ERDA_FORMAT_FIELD(FabricCounts, connections, 32);

struct ActivityBlock {
  KindCounts kinds[16];
  TimeCounts persist;
  TimeCounts clean_region;
  uint64_t reserved[14];
  FabricCounts fabrics[8];
  TimeCounts hold;
  uint64_t reserved1[7];
};
ERDA_FORMAT_SIZE(ActivityBlock, 6400);
ERDA_FORMAT_FIELD(ActivityBlock, persist, 5120);
ERDA_FORMAT_FIELD(ActivityBlock, clean_region, 5320);
ERDA_FORMAT_FIELD(ActivityBlock, fabrics, 5632);
ERDA_FORMAT_FIELD(ActivityBlock, hold, 6144);

// The names by RequestOp. The name of number 0 is that of messages that ask for the time.
inline constexpr const char* kRequestKindNames[] = {
    "time",  "put_inline", "reserve",       "commit",    "delete",    "report",
    "clean", "delegate",   "put_delegated", "give_back", "increment", "put_staged",
};
inline constexpr size_t kRequestKinds = std::size(kRequestKindNames);
static_assert(kRequestKinds == static_cast<size_t>(RequestOp::kPutStaged) + 1);
static_assert(kRequestKinds <= std::size(ActivityBlock{}.kinds));

// Returns the bucket of a step that took this long.
constexpr size_t BucketOf(uint64_t nanos) {
  constexpr auto kFirst = static_cast<uint64_t>(LatencyHistogram::UpperBound(0).count());
  const auto bucket = static_cast<size_t>(std::bit_width((nanos - (nanos > 0 ? 1 : 0)) / kFirst));
  return std::min(bucket, LatencyHistogram::kBuckets - 1);
}

// These are offset and size in the control region.
constexpr uint64_t ActivityOffset(const Geometry& geometry) { return ControlBytes(geometry); }
constexpr uint64_t ControlRegionBytes(const Geometry& geometry) {
  return ActivityOffset(geometry) + AlignUp(sizeof(ActivityBlock), 4096);
}

// Adds a shard's activity to the sum. The bytes may be a copy, or the block itself while the shard counts. REQUIRES:
// they are those of an ActivityBlock, and aligned as one.
void AddActivity(std::span<const std::byte> bytes, Activity* sum);

}  // namespace erda::format
