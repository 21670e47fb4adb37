// Compares the logs that can stand in front of a store. Each of the two programs does so for its own store.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/ycsb/histogram.h"
#include "erda/status.h"

namespace erda::kv {

struct Settings {
  std::string fabric = "shm";
  std::string address;             // Of the server. Empty with shm: a socket in a temporary folder.
  std::string folder;              // On the disk.
  std::string nvm = "dram:";       // As of erda-bench pmr.
  std::string region = "dram:";    // The same.
  uint64_t front_bytes = 8 << 20;  // Of NVM and region.
  uint64_t clients = 1;
  uint64_t records = 100'000;
  uint64_t milliseconds = 1000;  // Of each figure.
};

// One of the paper's workloads, with one of its access stacks.
struct Row {
  std::string access;
  std::string workload;
  double ops_per_second = 0;
  bench::Histogram put;  // In nanoseconds.
  bench::Histogram get;
};

Result<std::vector<Row>> Run(const Settings& settings);
[[nodiscard]] std::string ToTable(const Settings& settings, const std::vector<Row>& rows);

}  // namespace erda::kv
