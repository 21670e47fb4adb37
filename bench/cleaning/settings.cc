#include "bench/cleaning/settings.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <limits>

#include "bench/floors/settings.h"
#include "tools/shared/command_line.h"

namespace erda::cleaning {

namespace {

constexpr uint64_t kValueBytesMax = 1 << 20;
// Above this share there is no room for idle slices.
constexpr uint64_t kLiveMax = 80;

}  // namespace

CLI::App* AddCleaning(CLI::App& app, Settings& settings) {
  using tools::AddNumber;
  using tools::AddSize;
  constexpr uint64_t kMost = 100'000'000;
  CLI::App* cleaning =
      app.add_subcommand("cleaning", "Measure latencies while the log is cleaned, and count what the cleaner copies");
  floors::AddOwnServer(*cleaning, settings.fabric, settings.address);
  cleaning->add_option("--pool", settings.pool, "dram:, or a file or /dev/daxX.Y without keys; default dram:")
      ->type_name("PATH");
  AddSize(*cleaning, "--pool-size", settings.pool_size, "The pool's size; default 256M, with --quick 64M");
  AddSize(*cleaning, "--value-bytes", settings.value_bytes, "Bytes of each value; default 1024");
  AddNumber<uint64_t>(*cleaning, "--live", settings.live, 1, kLiveMax,
                      "Live data while latencies are measured, in percent of the log; default 70");
  AddNumber<uint64_t>(*cleaning, "--rate", settings.rate, 1, kMost,
                      "Puts in a second beside the measured operations, in both states; default 50000");
  AddNumber<uint64_t>(*cleaning, "--rounds", settings.rounds, 1, kMost,
                      "Rounds; in each, every workload has one slice idle and one while the log is cleaned; default "
                      "24, with --quick 2");
  AddNumber<uint64_t>(
      *cleaning, "--slice-ms", settings.slice_ms, 1, kMost,
      "The longest time of a slice, which also ends when it has used its room; default 150, with --quick 100");
  AddNumber<uint64_t>(
      *cleaning, "--times", settings.times, 1, kMost,
      "How many times the log is overwritten to count what the cleaner copies; default 3, with --quick 1");
  AddNumber<uint64_t>(*cleaning, "--seed", settings.seed, 0, std::numeric_limits<uint64_t>::max(),
                      "The seed for the choice of operations and keys; default 1");
  cleaning->add_flag("--quick", settings.quick, "Take only some seconds, which is too short for meaningful figures");
  cleaning->add_option("--json", settings.json_path, "Also write the results to this file")->type_name("FILE");
  return cleaning;
}

void Complete(Settings& settings) {
  const auto fill = [&](uint64_t& value, uint64_t usual, uint64_t quick) {
    if (value == 0) value = settings.quick ? quick : usual;
  };
  fill(settings.pool_size, 256 << 20, 64 << 20);
  fill(settings.rounds, 24, 2);
  fill(settings.slice_ms, 150, 100);
  fill(settings.times, 3, 1);
}

std::string CheckSettings(const Settings& settings) {
  if (auto error = floors::CheckAddress("--address", settings.fabric, settings.address); !error.empty()) return error;
  if (settings.value_bytes > kValueBytesMax)
    return fmt::format("--value-bytes: the largest value has {} bytes here", kValueBytesMax);
  if (settings.fabric == "verbs" && settings.address.empty()) {
    return "--fabric verbs needs an --address, such as verbs://10.9.0.1:7700";
  }
  return "";
}

}  // namespace erda::cleaning
