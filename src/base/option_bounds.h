// The bounds of every numeric option, in one table for C++, C and Python. The server and client check options here,
// too, after the programs have parsed their flags.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "erda/status.h"

namespace erda {

struct OptionBounds {
  const char* name;
  int64_t least;
  int64_t most;
  const char* rule = "";  // A rule for the numbers between the bounds.
  bool zero_too = false;  // 0 is allowed although it is below `least`.
};

inline constexpr struct {
  OptionBounds queue_depth{"queue_depth", 1, 256};
  OptionBounds cache_entries{"cache_entries", 0, 1 << 30};
  // 34 years. In nanoseconds, and added to the clock, it stays far below 64 bits.
  OptionBounds timeout{"timeout (in ms)", 1, int64_t{1} << 40};
  OptionBounds ack{"ack", 0, 1};
  OptionBounds put_path{"put_path", 0, 3};
  OptionBounds polling{"polling", 0, 2};
} kClientBounds;

inline constexpr OptionBounds kTtlBounds{"ttl (in ms)", 1, int64_t{1} << 48};

// The sizes depend on each other; docs/operations.md says which fit a pool. This table has only their outer bounds.
inline constexpr struct {
  OptionBounds pool_size{"pool_size", 0, int64_t{1} << 52};
  OptionBounds shards{"shards", 0, 64};
  OptionBounds region_size{"region_size", 0, 256 << 20};
  OptionBounds segment_size{"segment_size", 0, 256 << 20};
  OptionBounds index_entries{"index_entries", 0, int64_t{1} << 48};
  OptionBounds grow_to{"grow_to", 0, int64_t{1} << 52};
  OptionBounds max_clients{"max_clients", 1, 65536};
  OptionBounds slots_per_client{"slots_per_client", 1, 256};
  OptionBounds slot_bytes{"slot_bytes", 2048, 65536, ", and a multiple of 64"};
  OptionBounds reservations_per_client{"reservations_per_client", 1, 1 << 20};
  OptionBounds clients_per_token{"clients_per_token", 0, 65536};
  OptionBounds requests_per_second{"requests_per_second", 100, 1'000'000'000, "", true};
  OptionBounds connects_per_second{"connects_per_second", 0, 1'000'000};
  OptionBounds shm_access{"shm_access", 0, 2};
  OptionBounds pool_writes{"pool_writes", 0, 2};
  OptionBounds staging_bytes{"staging_bytes", 0, 1 << 30};
  OptionBounds flush{"flush", 0, 2};
  OptionBounds sync{"sync (in ms)", 0, 86'400'000};
  OptionBounds journal_size{"journal_size", 4 << 20, int64_t{1} << 52, "", true};
  OptionBounds journal_interval{"journal_interval (in ms)", 0, 86'400'000};
  OptionBounds scrub_rate{"scrub_rate", 0, int64_t{1} << 48};
  OptionBounds polling{"polling", 0, 2};
  OptionBounds spin{"spin (in us)", 0, 1'000'000'000};
  OptionBounds nvm_write_latency{"nvm_write_latency (in ns)", 0, 1'000'000'000};
} kServerBounds;

// Checks options one by one, and keeps the first one that is out of its bounds.
class Bounds {
 public:
  template <class Number>
  void Check(const OptionBounds& bounds, Number value) {
    const bool inside = std::cmp_greater_equal(value, bounds.least) && std::cmp_less_equal(value, bounds.most);
    if (!inside && !(bounds.zero_too && value == 0)) Refuse(bounds, std::to_string(value));
  }
  void Refuse(const OptionBounds& bounds, const std::string& value) {
    if (!status_.ok()) return;
    status_ = {Code::kInvalidArgument, std::string(bounds.name) + " must be " + (bounds.zero_too ? "0, or " : "") +
                                           std::to_string(bounds.least) + " to " + std::to_string(bounds.most) +
                                           bounds.rule + ", not " + value};
  }
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  Status status_;
};

}  // namespace erda
