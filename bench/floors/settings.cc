#include "bench/floors/settings.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/bytes.h"
#include "fabric/verbs/address.h"
#include "tools/shared/command_line.h"

namespace erda::floors {

using fabric::verbs::ParseAddress;

namespace {

constexpr uint64_t kBlockOpsMax = 64;
constexpr double kClocksPerBlock = 100;  // A block takes at least this many times as long as a look at the clock.
// Larger values do not fit into a request with their key (ServerOptions::slot_bytes), so there would be no inline put
// to measure.
constexpr uint64_t kValueBytesMax = 16384 - RequestBytes(0);
// Kinds of operations that need room in the log: inline puts, reserve puts, and the puts before deletes.
constexpr uint64_t kPutKinds = 3;

}  // namespace

void AddOwnServer(CLI::App& app, std::string& fabric, std::string& address) {
  app.add_option("--fabric", fabric, "shm or verbs; default shm")
      ->check(CLI::IsMember({"shm", "verbs"}))
      ->type_name("NAME");
  app.add_option("-a,--address", address,
                 "Where the command's server listens, such as verbs://10.9.0.1:7700; shm needs no address")
      ->type_name("ADDRESS");
}

CLI::App* AddFloors(CLI::App& app, Settings& settings) {
  using tools::AddNumber;
  using tools::AddSize;
  constexpr uint64_t kMost = 100'000'000;
  CLI::App* floors = app.add_subcommand(
      "floors", "Measure the fabric's raw operations beside gets, puts and deletes, and their ratios");
  AddOwnServer(*floors, settings.fabric, settings.address);
  floors
      ->add_option("--raw-address", settings.raw_address,
                   "Where the peer of the raw operations listens; default the address with .raw, or with the next port")
      ->type_name("ADDRESS");
  floors->add_option("--pool", settings.pool, "dram:, a file or /dev/daxX.Y, as for erda-server; default dram:")
      ->type_name("PATH");
  AddSize(*floors, "--pool-size", settings.pool_size, "The size of a new pool; default room for all puts");
  AddSize(*floors, "--value-bytes", settings.value_bytes, "Bytes of each value; default 64");
  AddNumber<uint64_t>(*floors, "--ops", settings.ops, 1, kMost,
                      "The least number of operations of each kind; default 10000");
  AddNumber<uint64_t>(*floors, "--rounds", settings.rounds, 1, kMost,
                      "Rounds; each kind of operation has its turn in each round; default 20");
  AddNumber<uint64_t>(*floors, "--seconds", settings.seconds, 0, kMost,
                      "Stop after this time, with fewer rounds, but at least 3; 0: never; default 60");
  AddNumber<uint64_t>(
      *floors, "--block", settings.block_ops, 1, kBlockOpsMax,
      "Operations that are timed together; the default is large enough that the reading of the clock does not count");
  floors->add_option("--limit", settings.limit, "Exit with 1 if a ratio is above this")
      ->check(CLI::Range(0.001, 1e6))
      ->type_name("RATIO");
  floors
      ->add_option("--device", settings.device,
                   "The RDMA device for ib_read_lat; default the device that has the address")
      ->type_name("NAME");
  AddNumber<int>(*floors, "--gid-index", settings.gid_index, 0, 65535,
                 "The GID index for ib_read_lat; default that of the address");
  floors->add_option("--json", settings.json_path, "Also write the results to this file")->type_name("FILE");
  return floors;
}

std::string CheckAddress(const std::string& option, const std::string& fabric, const std::string& address) {
  if (address.empty()) return "";
  if (!address.starts_with(fabric + ":"))
    return fmt::format("{}: {} is not an address of --fabric {}", option, address, fabric);
  if (fabric != "verbs") return "";
  const auto parsed = ParseAddress(address);
  return parsed.ok() ? "" : fmt::format("{}: {}", option, parsed.status().message());
}

std::string CheckSettings(const Settings& settings) {
  if (settings.fabric == "verbs" && settings.address.empty()) {
    return "--fabric verbs needs an --address, such as verbs://10.9.0.1:7700";
  }
  for (const auto& [option, address] :
       {std::pair("--address", settings.address), std::pair("--raw-address", settings.raw_address)}) {
    if (auto error = CheckAddress(option, settings.fabric, address); !error.empty()) return error;
  }
  if (!settings.address.empty() && settings.raw_address.empty() && RawAddressOf(settings.address).empty()) {
    return fmt::format("--address: there is no port after that of {}; give a --raw-address", settings.address);
  }
  const std::string raw = settings.raw_address.empty() ? RawAddressOf(settings.address) : settings.raw_address;
  if (!raw.empty() && RawAddressOf(RawAddressOf(raw)).empty()) {
    return fmt::format("the benchmark needs the two ports after that of {}; choose a smaller port", raw);
  }
  if (settings.value_bytes > kValueBytesMax) {
    return fmt::format("--value-bytes: the largest value of an inline put has {} bytes here", kValueBytesMax);
  }
  if (settings.rounds > settings.ops) return "--rounds: there are more rounds than --ops; give at most as many";
  return "";
}

std::string RawAddressOf(std::string_view address) {
  if (address.starts_with("shm:")) return std::string(address) + ".raw";
  const auto parsed = ParseAddress(address);
  if (!parsed.ok() || parsed->port == UINT16_MAX) return "";
  if (parsed->port == 0) return std::string(address);
  const size_t options = std::min(address.find('?'), address.size());
  const size_t port = address.substr(0, options).rfind(':') + 1;
  return fmt::format("{}{}{}", address.substr(0, port), parsed->port + 1, address.substr(options));
}

std::string HostOf(std::string_view address) {
  const auto parsed = ParseAddress(address);
  return parsed.ok() ? parsed->host : "";
}

uint64_t BlockFor(double clock_ns, double fastest_op_ns) {
  uint64_t block = 1;
  while (block < kBlockOpsMax && static_cast<double>(block) * fastest_op_ns < kClocksPerBlock * clock_ns) block *= 2;
  return block;
}

Plan PlanFor(const Settings& settings, uint64_t block_ops) {
  Plan plan;
  plan.block_ops = block_ops;
  plan.rounds = settings.rounds;
  const uint64_t of_round = (settings.ops + settings.rounds - 1) / settings.rounds;
  plan.blocks = (of_round + block_ops - 1) / block_ops;
  plan.warm_blocks = plan.blocks / 4 + 1;
  return plan;
}

uint64_t PoolBytesFor(const Settings& settings) {
  constexpr uint64_t kLeast = 64ULL << 20;
  const Plan plan = PlanFor(settings, settings.block_ops != 0 ? settings.block_ops : kBlockOpsMax);
  const uint64_t puts = 2 * kPlacesMax + kPutKinds * plan.rounds * (plan.blocks + plan.warm_blocks) * plan.block_ops;
  // The rest is for the index, the ends of segments, and the region that the log keeps free.
  const uint64_t bytes = (puts * format::ObjectSpace(kKeyBytes, settings.value_bytes) +
                          puts / kPutKinds * format::ObjectSpace(kKeyBytes, kLargeBytes)) *
                         3 / 2;
  return AlignUp(std::max(kLeast, bytes), 1ULL << 20);
}

}  // namespace erda::floors
