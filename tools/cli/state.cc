// stats, clean.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "erda/client.h"
#include "tools/cli/command.h"
#include "tools/cli/commands.h"

namespace erda::cli {

namespace {

struct StatsOptions {
  bool json = false;
};

struct CleanOptions {
  bool no_wait = false;
};

// What is written as a plain decimal number becomes one.
nlohmann::ordered_json JsonValue(const std::string& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && std::to_string(number) == text) return number;
  return text;
}

int Stats(Session& session, const StatsOptions& options) {
  const auto info = session.client->ServerInfo();
  if (!info.ok()) return FailWith(session, info.status());
  if (options.json) {
    auto json = nlohmann::ordered_json::object();
    for (const auto& [name, value] : *info) json[name] = JsonValue(value);
    return Print(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  }
  size_t width = 0;
  for (const auto& [name, value] : *info) width = std::max(width, name.size());
  std::string text;
  for (const auto& [name, value] : *info) text += fmt::format("{:{}}  {}\n", name, width, value);
  return Print(text);
}

uint64_t NumberOf(const std::vector<std::pair<std::string, std::string>>& info, std::string_view name) {
  const auto at = std::find_if(info.begin(), info.end(), [&](const auto& pair) { return pair.first == name; });
  return at == info.end() ? 0 : std::strtoull(at->second.c_str(), nullptr, 10);
}

// Until it is done.
int Clean(Session& session, const CleanOptions& options) {
  const auto before = session.client->ServerInfo();
  if (!before.ok()) return FailWith(session, before.status());
  if (const auto asked = session.client->Clean(); !asked.ok()) return FailWith(session, asked);
  if (options.no_wait) return 0;
  for (;;) {
    const auto info = session.client->ServerInfo();
    if (!info.ok()) return FailWith(session, info.status());
    if (NumberOf(*info, "cleaning") == 0) {
      const auto since = [&](std::string_view name) { return NumberOf(*info, name) - NumberOf(*before, name); };
      return Print(fmt::format("regions cleaned {}, bytes copied {}, regions free {}\n", since("clean_regions"),
                               since("clean_bytes_copied"), NumberOf(*info, "free_regions")));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace

void AddStats(CLI::App& sub, Session& session) {
  StatsOptions& options = Bind(sub, session, Stats);
  sub.add_flag("--json", options.json, "As one JSON object");
}

void AddClean(CLI::App& sub, Session& session) {
  CleanOptions& options = Bind(sub, session, Clean);
  sub.add_flag("--no-wait", options.no_wait, "Only ask for it");
}

}  // namespace erda::cli
