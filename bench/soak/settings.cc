#include "bench/soak/settings.h"

#include <CLI/CLI.hpp>
#include <limits>

#include "base/random.h"
#include "bench/ycsb/workload.h"
#include "format/geometry.h"
#include "format/object.h"
#include "tools/shared/command_line.h"

namespace erda::soak {

namespace {

constexpr uint64_t kKeyBytes = sizeof(bench::Key);

uint64_t RandomOf(uint64_t record, uint64_t number) { return Random::Mix(Random::Mix(record + 1) + number); }

}  // namespace

CLI::App* AddSoak(CLI::App& app, Settings& settings) {
  using tools::AddNumber;
  CLI::App* soak = app.add_subcommand("soak", "Overwrite a nearly full store again and again, and verify all reads");
  soak->add_option(
          "--pool", settings.pool,
          "A file that does not exist yet; it stays. Default one in a temporary folder, which the command removes")
      ->type_name("PATH");
  tools::AddSize(*soak, "--pool-size", settings.pool_size, "The pool's size; default 64M");
  AddNumber<uint64_t>(*soak, "--times", settings.times, 1, 1'000'000,
                      "How many times the pool's size is written; default 20");
  AddNumber<uint64_t>(*soak, "--live", settings.live, 1, 100, "Live data, in percent of the usable share; default 80");
  AddNumber<uint32_t>(*soak, "--clients", settings.clients, 1, 256, "Clients, each with a separate thread; default 4");
  AddNumber<uint64_t>(*soak, "--seed", settings.seed, 0, std::numeric_limits<uint64_t>::max(),
                      "The seed for the choice of operations and keys; default 1");
  return soak;
}

bool IsDelete(uint64_t record, uint64_t number) {
  return number == 0 || RandomOf(record, number) / kValueBytes.size() % kDeletesOneIn == 0;
}

size_t SizeClassOf(uint64_t record, uint64_t number) { return RandomOf(record, number) % kValueBytes.size(); }

uint64_t SpaceOf(uint64_t record, uint64_t number) {
  return format::ObjectSpace(kKeyBytes, IsDelete(record, number) ? 0 : kValueBytes[SizeClassOf(record, number)]);
}

Result<uint64_t> KeysFor(const Settings& settings) {
  const auto geometry = format::ChooseGeometry({.pool_size = settings.pool_size});
  if (!geometry.ok()) return geometry.status();
  if (format::ValueBytesMax(*geometry, kKeyBytes) < kValueBytes.back()) {
    return Status(Code::kInvalidArgument, "--pool-size: such a small pool cannot store values of " +
                                              std::to_string(kValueBytes.back()) + " bytes");
  }
  uint64_t sum = 0;
  for (const uint32_t bytes : kValueBytes) sum += format::ObjectSpace(kKeyBytes, bytes);
  const double present = 1 - 1.0 / kDeletesOneIn;
  const double bytes_of_key = present * static_cast<double>(sum) / static_cast<double>(kValueBytes.size());
  const double live = format::UsableShare(*geometry) * static_cast<double>(settings.live) / 100;
  const auto keys = static_cast<uint64_t>(live * static_cast<double>(settings.pool_size) / bytes_of_key);
  if (keys < settings.clients)
    return Status(Code::kInvalidArgument,
                  "--clients: the pool has fewer keys than clients; give fewer clients or a larger --pool-size");
  return keys;
}

}  // namespace erda::soak
