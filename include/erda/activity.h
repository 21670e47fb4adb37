// What a server has done since it started, and how long that took: Server::activity() for the server's own process,
// Client::ServerActivity() for its clients, who read it one-sidedly.
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

// How long something took each time, counted in buckets of which each ends at twice as much as the one before.
struct LatencyHistogram {
  static constexpr size_t kBuckets = 24;
  // Of bucket i: took at most UpperBound(i), and more than UpperBound(i - 1).
  std::array<uint64_t, kBuckets> counts{};
  uint64_t sum_nanos = 0;  // of all times together

  // From 256 ns to 1.07 s. The last bucket has none: all is there that took longer than the one before it ends.
  static constexpr std::chrono::nanoseconds UpperBound(size_t bucket) {
    return std::chrono::nanoseconds(uint64_t{256} << bucket);
  }
  [[nodiscard]] constexpr uint64_t count() const {
    uint64_t count = 0;
    for (const uint64_t n : counts) count += n;
    return count;
  }
  // An estimate of the time that this share of all, 0 to 1, did not exceed: as if the times of a bucket were spread
  // evenly over it. So it lies in the right bucket, and is wrong by less than a factor of two (of the first bucket, by
  // less than 256 ns); of the last one it is where that begins. 0 if there was nothing.
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
  // What came since an earlier reading of the same server.
  constexpr LatencyHistogram& operator-=(const LatencyHistogram& earlier) {
    for (size_t i = 0; i < kBuckets; ++i) counts[i] -= earlier.counts[i];
    sum_nanos -= earlier.sum_nanos;
    return *this;
  }
};

// The requests of one kind. Gets and scans are none: they are one-sided, and no server sees them.
struct OperationStats {
  static constexpr size_t kOutcomes = static_cast<size_t>(Code::kInternal) + 1;

  // "put_inline", "put_staged", "reserve", "commit", "put_delegated", "delegate", "give_back", "delete", "increment",
  // "report", "clean" or "time"; docs/operations.md says what each is.
  std::string kind;
  // How many were answered with each Code. Not found and conflict are answers like ok. A request that breaks the
  // protocol has no answer, and is in no count but `violations`.
  std::array<uint64_t, kOutcomes> outcomes{};
  // From when the shard saw the request until it had handed the answer to the fabric; the time in which it waited for
  // room, for what others write, or for its client's turn is in it, the way there and back is not. A request is counted
  // above just before its answer is handed over, and here just behind that.
  LatencyHistogram time;

  [[nodiscard]] constexpr uint64_t count() const {
    uint64_t count = 0;
    for (const uint64_t n : outcomes) count += n;
    return count;
  }
  // Of that number: CodeName's with underscores, "not_found".
  static std::string OutcomeName(size_t outcome) {
    std::string name(CodeName(static_cast<Code>(outcome)));
    std::replace(name.begin(), name.end(), ' ', '_');
    return name;
  }
};

// What came by one fabric.
struct FabricStats {
  std::string scheme;        // "shm"
  std::string device;        // the NIC's name, at most 23 bytes of it; empty for shm
  uint64_t connections = 0;  // Now: one for each client and shard.
  uint64_t requests = 0;     // answered
  uint64_t refused = 0;      // of these with an error; and clients that a shard did not let in
  uint64_t violations = 0;   // connections closed because the peer broke the protocol
};

// Sums over all shards. The numbers are read while they grow: one may lag behind another by what happens meanwhile.
struct Activity {
  std::vector<OperationStats> operations;  // every kind, whether there were any or not
  // Steps of shards in which they waited for the NVM: until all that was put in a step was persistent and published.
  // Such steps are timed one in 64.
  LatencyHistogram persist;
  LatencyHistogram clean_region;     // from when a region was chosen to be cleaned until all of it was looked at
  std::vector<FabricStats> fabrics;  // eight at most: what comes by others is counted with the last
};

}  // namespace erda

#endif  // C++20
