// The commands stats, clean and ping.
#include "tools/erda-cli/state.h"

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
#include "erda/status.h"
#include "tools/erda-cli/command.h"

namespace erda::cli {

namespace {

struct StatsOptions {
  bool json = false;
};

struct CleanOptions {
  bool no_wait = false;
};

struct PingOptions {
  uint32_t count = 1;
  uint32_t interval_ms = 1000;
};

// Returns a number if the text is a plain decimal number, and otherwise the text.
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

// Cleans, and waits until the cleaning is done.
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

// --- Ping

using Microseconds = std::chrono::duration<double, std::micro>;

template <class Body>
Microseconds TimeOf(Body&& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::steady_clock::now() - start;
}

// Times a request that a shard has to answer, and that changes nothing. It is a delete with a condition: that the key
// has a version that no key has. A read-only client has no requests. It connects once more instead, and each shard
// answers.
Result<std::string> RequestTime(Session& session, const std::string& key) {
  Status status;
  const Microseconds request =
      TimeOf([&] { status = session.client->Delete(key, DeleteOptions{.if_version = UINT64_MAX}); });
  if (status.code() == Code::kConflict) return fmt::format("request {:.1f} us", request.count());
  if (status.code() != Code::kPermissionDenied) return status;
  const Microseconds connect = TimeOf([&] { status = Client::Connect(session.address, session.options).status(); });
  if (!status.ok()) return status;
  return fmt::format("connect {:.1f} us", connect.count());
}

// Times a request and a get. The server's processor has no part in the get.
int Ping(Session& session, const PingOptions& options) {
  const std::string key = "erda-cli ping";
  for (uint32_t i = 0; i < options.count; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(options.interval_ms));
    const auto request = RequestTime(session, key);
    if (!request.ok()) return FailWith(session, request.status());
    Status status;
    const Microseconds get = TimeOf([&] { status = session.client->Get(key).status(); });
    if (!status.ok() && status.code() != Code::kNotFound) return FailWith(session, status);
    const std::string text = fmt::format("{}: {}, get {:.1f} us\n", session.address, *request, get.count());
    if (const int code = Print(text); code != 0) return code;
  }
  return 0;
}

}  // namespace

void AddStats(CLI::App& sub, Session& session) {
  StatsOptions& options = Bind(sub, session, Stats);
  sub.add_flag("--json", options.json, "Print one JSON object");
}

void AddClean(CLI::App& sub, Session& session) {
  CleanOptions& options = Bind(sub, session, Clean);
  sub.add_flag("--no-wait", options.no_wait, "Only ask the server to clean, and do not wait");
}

void AddPing(CLI::App& sub, Session& session) {
  PingOptions& options = Bind(sub, session, Ping);
  tools::AddNumber<uint32_t>(sub, "-n,--count", options.count, 1, UINT32_MAX, "The number of pings; default 1");
  tools::AddNumber<uint32_t>(sub, "--interval-ms", options.interval_ms, 0, 3'600'000,
                             "Milliseconds from one ping to the next; default 1000");
}

}  // namespace erda::cli
