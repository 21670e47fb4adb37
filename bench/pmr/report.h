// erda-bench pmr: measures four ways to make bytes of a client persistent at a server, as the paper on persistent
// memory regions compares them (docs/benchmarks/pmr.md).
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bench/floors/report.h"
#include "bench/pmr/responder.h"

namespace CLI {
class App;
}

namespace erda::pmr_bench {

enum class Path : uint8_t {
  kSsdSync,     // A message; the server writes its bytes to a disk, and answers when they are there for good.
  kPmrSync,     // A message; the server copies its bytes into the region, fences, and answers.
  kPmemDirect,  // A one-sided Write into NVM, then a flush.
  kPmrDirect,   // A one-sided Write into the region, then a flush.
};
inline constexpr size_t kPaths = 4;
// The paper's names.
inline constexpr std::array<std::string_view, kPaths> kPathNames = {"SSDSync", "PMRSync", "PMEMDirect", "PMRDirect"};

// The operation that follows a one-sided Write.
enum class Flush : uint8_t {
  kAuto,    // A Read if a NIC writes into the memory; otherwise a message.
  kRead,    // A Read of the Write's last bytes.
  kServer,  // A message: the server flushes, fences and answers.
};

struct Settings {
  std::string fabric = "shm";
  std::string address;           // Of the server. Empty with shm: a socket in a temporary folder.
  std::string folder;            // On the disk.
  std::string nvm = "dram:";     // dram:, or as nvm::OpenFront takes it, of any durability. Overwritten.
  std::string region = "dram:";  // The same.
  Flush flush = Flush::kAuto;
  std::vector<uint64_t> sizes = {64, 256, 1024, 4096, 16384, 65536};
  uint64_t ops = 500;  // Of each path and size in each round, one at a time.
  uint64_t rounds = 5;
  uint64_t clients = 4;         // For throughput, each with one operation in flight.
  uint64_t milliseconds = 300;  // Of throughput, of each path and size in each round.
  std::string json_path;
};
CLI::App* AddPmr(CLI::App& app, Settings& settings);
// Checks what the parser cannot check. Returns an empty string if all is well.
[[nodiscard]] std::string CheckSettings(const Settings& settings);

struct Row {
  uint64_t bytes = 0;
  std::array<floors::Samples, kPaths> us;              // Of each operation. Empty if the path cannot be measured.
  std::array<floors::Samples, kPaths> ops_per_second;  // Of all clients; a sample for each round.
};

struct Report {
  floors::Machine machine;
  std::string address;
  std::string device;  // Of the fabric; empty if it has none.
  std::string flush;   // How one-sided Writes are flushed: "read" or "server".
  std::string nvm_durability;
  std::string region_durability;
  bool disk_direct = false;                      // Writes do not go through the page cache.
  bool disk_in_memory = false;                   // It is no disk: a flush costs nothing.
  std::array<std::string, kPaths> not_measured;  // The reason; empty if the path was measured.
  std::vector<Row> rows;                         // In the order of their sizes.
};

[[nodiscard]] std::string ToTable(const Settings& settings, const Report& report);
[[nodiscard]] nlohmann::ordered_json ToJson(const Settings& settings, const Report& report);

}  // namespace erda::pmr_bench
