// erda-bench journal: measures a power-safe pool beside the durable writes of its disk.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/floors/report.h"
#include "bench/ycsb/histogram.h"

namespace CLI {
class App;
}

namespace erda::journal_bench {

struct Settings {
  std::string folder;  // On the disk that is measured.
  uint64_t pool_size = 256 << 20;
  uint64_t journal_size = 256 << 20;
  uint64_t value_bytes = 1024;
  uint64_t keys = 20'000;
  uint64_t clients = 16;
  uint64_t depth = 16;
  uint64_t rounds = 5;
  uint64_t milliseconds = 2000;  // Of each figure in each round.
  bool disk_only = false;
  std::string json_path;
};
CLI::App* AddJournal(CLI::App& app, Settings& settings);
// Checks what the parser cannot check. Returns an empty string if all is well.
[[nodiscard]] std::string CheckSettings(const Settings& settings);

// Times in microseconds.
struct Disk {
  bool direct = false;         // Writes do not go through the page cache.
  bool in_memory = false;      // It is no disk: a flush costs nothing.
  floors::Samples flushed;     // 4 KiB, and then a flush.
  floors::Samples durable;     // 4 KiB with RWF_DSYNC.
  floors::Samples sequential;  // 1 MiB after the other, each with a flush.

  // Of the faster of the two kinds of small writes.
  [[nodiscard]] double median_write_us() const;
  [[nodiscard]] double mean_write_us() const;
  [[nodiscard]] double bytes_per_second() const;
};

// Puts of several clients, with several in flight for each.
struct Load {
  uint64_t clients = 1;
  uint64_t depth = 1;
  floors::Samples puts_per_second;  // A sample for each round.
  bench::Histogram put;             // In nanoseconds.
  // In one life of a server, from its start to its clean stop. So all checkpoints are in it.
  uint64_t bytes_put = 0;      // Of values.
  uint64_t bytes_written = 0;  // By the server's process, beyond those of a life without puts.

  [[nodiscard]] double written_per_put() const;
};

struct Report {
  floors::Machine machine;
  std::string durability;
  Disk disk;
  floors::Samples put_us;   // One client, one put at a time, in turn with the disk's small writes.
  std::vector<Load> loads;  // One put at a time; the clients, with one and with several in flight.
  // Gets of other keys while nothing is put, and while one client puts with several in flight. In nanoseconds.
  bench::Histogram get_idle;
  bench::Histogram get_busy;
  // Milliseconds from a kill of the server until the next one is ready.
  floors::Samples restart_with_image;
  floors::Samples restart_without_image;  // From the pool file and the ring, neither of them in the page cache.

  // A put of one client over a durable write of 4 KiB. The means tell more of a disk whose flushes are now fast and now
  // slow.
  [[nodiscard]] double median_put_over_write() const { return put_us.median() / disk.median_write_us(); }
  [[nodiscard]] double mean_put_over_write() const { return put_us.mean() / disk.mean_write_us(); }
  // The bytes of values that the load puts in a second, over those that the disk takes one after the other.
  [[nodiscard]] double share_of_disk(const Load& load, uint64_t value_bytes) const;
  [[nodiscard]] double get_busy_over_idle() const;
};

[[nodiscard]] std::string ToTable(const Settings& settings, const Report& report);
[[nodiscard]] nlohmann::ordered_json ToJson(const Settings& settings, const Report& report);

}  // namespace erda::journal_bench
