// The work of a server since it started, and how long it took. The server's own process calls Server::activity().
// A client calls Client::ServerActivity(), which reads the counts one-sidedly.
#pragma once

// GCC 10 says 201709 for -std=c++20.
#if __cplusplus < 201709L
#error "Erda needs C++20: compile with -std=c++20 or later, in CMake with CMAKE_CXX_STANDARD 20"
#endif
#if __cplusplus >= 201709L

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "erda/status.h"

namespace erda {

// Durations of events of one kind, counted in buckets. Each bucket ends at twice the bound of the bucket before it.
struct LatencyHistogram {
  static constexpr size_t kBuckets = 24;
  // counts[i] is the number of events that took at most UpperBound(i), and more than UpperBound(i - 1).
  std::array<uint64_t, kBuckets> counts{};
  uint64_t sum_nanos = 0;  // Sum of all durations.

  // Returns the upper bound of a bucket: 256 ns for the first, 1.07 s for the one before the last. The last bucket has
  // no upper bound: it counts every longer event.
  static constexpr std::chrono::nanoseconds UpperBound(size_t bucket) {
    return std::chrono::nanoseconds(uint64_t{256} << bucket);
  }
  [[nodiscard]] constexpr uint64_t count() const {
    uint64_t count = 0;
    for (const uint64_t n : counts) count += n;
    return count;
  }
  // Returns an estimate of a quantile: the duration that this share of the events (0 to 1) did not exceed. The estimate
  // assumes that the durations in a bucket are spread evenly over it. It lies in the right bucket, so it is wrong by
  // less than a factor of two. In the first bucket it is wrong by less than 256 ns. For the last bucket, returns its
  // lower bound. Returns 0 if no event was counted.
  [[nodiscard]] constexpr std::chrono::nanoseconds Quantile(double share) const {
    const double rank = share * static_cast<double>(count());
    double below = 0;
    for (size_t i = 0; i < kBuckets; ++i) {
      const auto here = static_cast<double>(counts[i]);
      if (counts[i] == 0 || (below + here < rank)) {
        below += here;
        continue;
      }
      const auto begin = static_cast<double>(i == 0 ? 0 : UpperBound(i - 1).count());
      if (i == kBuckets - 1) return UpperBound(i - 1);
      const double part = rank > below ? (rank - below) / here : 0;
      const double end = static_cast<double>(UpperBound(i).count());
      return std::chrono::nanoseconds(static_cast<int64_t>(begin + (end - begin) * part));
    }
    return std::chrono::nanoseconds(0);
  }
  constexpr LatencyHistogram& operator+=(const LatencyHistogram& other) {
    for (size_t i = 0; i < kBuckets; ++i) counts[i] += other.counts[i];
    sum_nanos += other.sum_nanos;
    return *this;
  }
  // Leaves the events since an earlier reading of the same server. Requires: `earlier` is that reading.
  constexpr LatencyHistogram& operator-=(const LatencyHistogram& earlier) {
    for (size_t i = 0; i < kBuckets; ++i) counts[i] -= earlier.counts[i];
    sum_nanos -= earlier.sum_nanos;
    return *this;
  }
};

// Requests of one kind. Gets and scans are one-sided: no server sees or counts them.
struct OperationStats {
  static constexpr size_t kOutcomes = static_cast<size_t>(Code::kInternal) + 1;

  // The name of the kind: "put_inline", "put_staged", "reserve", "commit", "put_delegated", "delegate", "give_back",
  // "delete", "increment", "report", "clean" or "time". docs/operations.md describes each.
  std::string kind;
  // The number of answers with each Code. Not found and conflict are answers like ok. A request that breaks the
  // protocol gets no answer, and only `violations` counts it.
  std::array<uint64_t, kOutcomes> outcomes{};
  // Time from when the shard saw the request until it had handed the answer to the fabric. It includes the time in
  // which the request waited for room, for writes of other clients, or for its client's turn. It does not include the
  // way to the server and back. The shard counts a request in `outcomes` just before it hands over the answer, and here
  // just after that.
  LatencyHistogram time;

  [[nodiscard]] constexpr uint64_t count() const {
    uint64_t count = 0;
    for (const uint64_t n : outcomes) count += n;
    return count;
  }
  // Returns the name of a Code's number: CodeName with underscores, such as "not_found".
  static std::string OutcomeName(size_t outcome) {
    std::string name(CodeName(static_cast<Code>(outcome)));
    std::replace(name.begin(), name.end(), ' ', '_');
    return name;
  }
};

// Connections and requests of one fabric.
struct FabricStats {
  std::string scheme;        // "shm"
  std::string device;        // The NIC's name, at most 23 bytes of it; empty for shm.
  uint64_t connections = 0;  // Connections now: one for each client and shard.
  uint64_t requests = 0;     // Requests answered.
  uint64_t refused = 0;      // Requests answered with an error, and clients that a shard did not let in.
  uint64_t violations = 0;   // Connections closed because the peer broke the protocol.
};

// Sums over all shards. A reader copies the numbers while they grow, so one may be older than another.
struct Activity {
  std::vector<OperationStats> operations;  // Every kind, also those without requests.
  // The time that a step of a shard waited for the NVM, until all puts of the step were persistent and published. The
  // shard times one such step in 64.
  LatencyHistogram persist;
  // The time from when a shard asked the disk of the pool's journal to hold what it had stored, until the disk held it.
  // Nothing without a journal.
  LatencyHistogram hold;
  LatencyHistogram clean_region;     // The time from the choice of a region until the cleaner has looked at all of it.
  std::vector<FabricStats> fabrics;  // At most eight. The last entry includes the counts of any further fabric.
};

}  // namespace erda

#endif  // C++20
