// YCSB's workloads: they choose the next operation, its record, key and value.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "bench/ycsb/zipfian.h"

namespace erda::bench {

enum class OpKind : uint8_t { kGet, kUpdate, kInsert, kReadModifyWrite };

// The choice of records for all operations but inserts.
enum class Distribution : uint8_t {
  kZipfian,  // A fixed set of the records that were loaded is popular.
  kUniform,  // Each record that was loaded is as likely as any other.
  kLatest,   // The records that were inserted last are popular.
};
[[nodiscard]] std::string_view NameOf(Distribution distribution);
[[nodiscard]] std::optional<Distribution> FindDistribution(std::string_view name);

struct Workload {
  std::string_view name;
  // Parts of a hundred; the rest is gets.
  uint32_t update_percent;
  uint32_t insert_percent;
  uint32_t rmw_percent;
  Distribution distribution;

  [[nodiscard]] constexpr uint32_t get_percent() const { return 100 - update_percent - insert_percent - rmw_percent; }
  // Returns true if the next operation depends on operations that have ended.
  [[nodiscard]] constexpr bool follows_inserts() const {
    return distribution == Distribution::kLatest || insert_percent > 0;
  }
};
inline constexpr std::array<Workload, 7> kWorkloads = {{
    {"A", 50, 0, 0, Distribution::kZipfian},
    {"B", 5, 0, 0, Distribution::kZipfian},
    {"C", 0, 0, 0, Distribution::kZipfian},
    {"D", 0, 5, 0, Distribution::kLatest},
    {"F", 0, 0, 50, Distribution::kZipfian},
    {"rmw", 0, 0, 100, Distribution::kZipfian},
    {"update", 100, 0, 0, Distribution::kZipfian},
}};
[[nodiscard]] std::optional<Workload> FindWorkload(std::string_view name);
// Returns the text "95% get of the latest, 5% insert".
[[nodiscard]] std::string MixOf(const Workload& workload);
// For a user who asks for scans, as those of YCSB's workload E.
inline constexpr std::string_view kNoScans =
    "erda-ycsb has no scans: Erda finds keys by their hash, and they have no order";

// Numbers new records. It knows the number below which all of them are stored. Any number of threads may use it.
class Inserts {
 public:
  // Records below `first` exist; at most `most` are inserted.
  Inserts(uint64_t first, uint64_t most);
  uint64_t Begin() { return next_.fetch_add(1, std::memory_order_relaxed); }
  void End(uint64_t record);
  // Returns the number below which every record is stored.
  [[nodiscard]] uint64_t limit() const { return limit_.load(std::memory_order_acquire); }

 private:
  [[nodiscard]] bool Ended(uint64_t record) const;

  const uint64_t first_;
  std::vector<std::atomic<uint64_t>> ended_;  // A bit for each record from first_ on.
  alignas(64) std::atomic<uint64_t> next_;
  alignas(64) std::atomic<uint64_t> limit_;
};

struct Op {
  OpKind kind;
  uint64_t record;
};

// The operations of one thread.
class OpSource {
 public:
  // Requires: `inserts` outlives the source, and begins at the number of records loaded.
  OpSource(const Workload& workload, uint64_t records, uint64_t seed, Inserts& inserts);
  Op Next();

 private:
  Workload workload_;
  Random random_;
  Zipfian zipfian_;
  Scatter scatter_;
  Inserts& inserts_;
};

// "user" and the twenty digits of the record's hash. Different records have different keys.
using Key = std::array<char, 24>;
[[nodiscard]] Key KeyOf(uint64_t record);
inline std::string_view AsView(const Key& key) { return {key.data(), key.size()}; }

// Pseudo-random values that name their key: the record and a sequence number, then bytes that follow from both.
// Immutable, so any number of threads may share one.
class Values {
 public:
  static constexpr size_t kHeaderBytes = 16;

  explicit Values(size_t value_bytes);
  [[nodiscard]] size_t value_bytes() const { return value_bytes_; }
  // REQUIRES: out.size() == value_bytes().
  void Fill(std::span<char> out, uint64_t record, uint64_t sequence) const;
  // Returns the fault of a value of this record, or an empty string. REQUIRES: value_bytes() >= kHeaderBytes.
  [[nodiscard]] std::string Check(std::string_view value, uint64_t record) const;

 private:
  // Returns the bytes after the header.
  [[nodiscard]] std::string_view Body(uint64_t record, uint64_t sequence) const;

  size_t value_bytes_;
  std::string noise_;
};

}  // namespace erda::bench
