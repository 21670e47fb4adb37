#include "bench/shortage/report.h"

#include <fmt/core.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

#include "bench/shortage/board.h"
#include "tools/shared/command_line.h"

namespace erda::shortage {

namespace {

bool IsServer(std::string_view text) {
  const size_t sign = text.rfind('=');
  if (sign == std::string_view::npos || text.find(':') >= sign) return false;
  int pid = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + sign + 1, end, pid);
  return error == std::errc() && rest == end && pid > 0;
}

}  // namespace

CLI::App* AddShortage(CLI::App& app, Settings& settings) {
  CLI::App* shortage =
      app.add_subcommand("shortage", "Measure a client that puts beside processes that want the same processors");
  shortage
      ->add_option("--busy", settings.busy,
                   "Numbers of busy processes: 2 compute, 2r only get, 2p and 2rp keep to one processor each; default "
                   "0,2r,2,2p,4,8,16")
      ->delimiter(',')
      ->type_name("N,...");
  shortage
      ->add_option("--also", settings.also,
                   "Measure this running server, too: its address and its process, as redis:/tmp/redis.sock=123")
      ->delimiter(',')
      ->type_name("ADDRESS=PID,...");
  tools::AddPolling(*shortage, settings.polling, "Erda's clients wait");
  tools::AddNumber<uint64_t>(*shortage, "--updates-per-second", settings.updates_per_second, 0, 1'000'000,
                             "Rate of the updates; 0, the default: one after the other");
  tools::AddNumber<uint64_t>(*shortage, "--seconds", settings.seconds, 1, 60, "Of each measurement; default 1");
  tools::AddNumber<uint64_t>(*shortage, "--rounds", settings.rounds, 1, 1000, "Rounds; default 3");
  tools::AddNumber<uint64_t>(*shortage, "--value-bytes", settings.value_bytes, 16, 4096,
                             "Bytes of each value; default 64");
  shortage->add_option("--json", settings.json_path, "Also write the results to this file")->type_name("FILE");
  return shortage;
}

std::vector<Busy> ParseBusy(const std::vector<std::string>& texts) {
  std::vector<Busy> all;
  for (const std::string& text : texts) {
    Busy busy;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, busy.processes);
    const std::string_view kind(rest, end);
    busy.read = kind.starts_with('r');
    busy.pinned = kind.ends_with('p');
    const bool known = kind.empty() || kind == "r" || kind == "p" || kind == "rp";
    if (error != std::errc() || !known || busy.processes >= Board::kPlaces) return {};
    all.push_back(busy);
  }
  return all;
}

std::string CheckSettings(const Settings& settings) {
  if (ParseBusy(settings.busy).empty()) {
    return fmt::format("--busy: give numbers up to {}, such as 2, 2r, 2p or 2rp", Board::kPlaces - 1);
  }
  for (const std::string& text : settings.also) {
    if (!IsServer(text)) return fmt::format("--also: {}: give an address and a process, ADDRESS=PID", text);
  }
  return {};
}

std::string ToTable(const Settings& settings, const Report& report) {
  std::string text = fmt::format("one writer, values of {} bytes; medians of {} rounds of {} s\n\n",
                                 settings.value_bytes, settings.rounds, settings.seconds);
  text += fmt::format("{:>10} {:>5} {:>10} {:>9} {:>9} {:>10} {:>6} {:>6} {:>15} {:>15} {:>9}\n", "server", "busy",
                      "updates/s", "p50", "p99", "gets/s", "kept", "share", "processor us", "sleeps", "preempted");
  for (const Line& line : report.lines) {
    text += fmt::format(
        "{:>10} {:>5} {:>10.0f} {:>9.1f} {:>9.1f} {:>10.0f} {:>6.2f} {:>6.2f} {:>7.2f} {:>7.2f} "
        "{:>7.2f} {:>7.2f} {:>9.3f}\n",
        line.server, line.busy, line.updates, line.p50_us, line.p99_us, line.gets,
        line.gets_alone > 0 ? line.gets / line.gets_alone : 0, line.busy_share, line.writer_us, line.server_us,
        line.writer_sleeps, line.server_sleeps, line.preempted);
  }
  text +=
      "\np50, p99: microseconds of an update. gets/s: of all readers. kept: gets with the writer over gets without "
      "it.\n"
      "share: processor time of the busy processes with the writer over that without it.\n"
      "processor us, sleeps: of an update, writer and server. preempted: the same for both together.\n";
  return text;
}

nlohmann::ordered_json ToJson(const Settings& settings, const Report& report) {
  nlohmann::ordered_json json = {{"value_bytes", settings.value_bytes},
                                 {"seconds", settings.seconds},
                                 {"rounds", settings.rounds},
                                 {"updates_per_second", settings.updates_per_second}};
  for (const Line& line : report.lines) {
    json["lines"].push_back({{"server", line.server},
                             {"busy", line.busy},
                             {"updates_per_second", line.updates},
                             {"p50_us", line.p50_us},
                             {"p99_us", line.p99_us},
                             {"gets_per_second", line.gets},
                             {"gets_per_second_alone", line.gets_alone},
                             {"busy_share", line.busy_share},
                             {"writer_us", line.writer_us},
                             {"server_us", line.server_us},
                             {"writer_sleeps", line.writer_sleeps},
                             {"server_sleeps", line.server_sleeps},
                             {"preempted", line.preempted}});
  }
  return json;
}

}  // namespace erda::shortage
