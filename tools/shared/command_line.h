// Shared by all programs: parsing with one-line errors, sizes, times and numbers.
#pragma once

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "erda/polling.h"
#include "erda/status.h"

namespace erda::tools {

inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

// Prints "erda-cli: message" to stderr, on one line whatever the message contains. Returns the exit code.
inline int Fail(std::string_view program, std::string message, int exit_code) {
  while (!message.empty() && message.back() == '\n') message.pop_back();
  std::replace(message.begin(), message.end(), '\n', ' ');
  fmt::print(stderr, "{}: {}\n", program, message);
  return exit_code;
}

// Returns the exit code if the program is done after parsing: 0 for --help and --version, kExitUsage for a wrong
// command line. `explain` may return a better text than the parser's for a wrong command line, or an empty string.
inline std::optional<int> Parse(CLI::App& app, int argc, char** argv,
                                std::string (*explain)(const CLI::App& app) = nullptr) {
  app.set_version_flag("--version", app.get_name() + " " + ERDA_VERSION, "Print the version and exit");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::Error& error) {
    if (std::string better = explain != nullptr ? explain(app) : ""; !better.empty()) {
      return Fail(app.get_name(), std::move(better), kExitUsage);
    }
    return Fail(app.get_name(), fmt::format("{} (see --help)", error.what()), kExitUsage);
  }
  return std::nullopt;
}

// "64", "64K", "1.5G", "2TiB": bytes. The units are powers of two: K or KiB, M or MiB, G or GiB, T or TiB. A number
// with a point needs a unit, and has at most six digits after the point. A part of a byte is dropped.
inline std::optional<uint64_t> ParseSize(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  constexpr std::string_view kDigits = "0123456789";
  constexpr size_t kFractionDigitsMax = 6;  // Shifted by 40 bits they fit into 64.
  uint64_t whole = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, whole);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(rest - text.data()));

  uint64_t fraction = 0;
  uint64_t fraction_scale = 1;
  const bool has_point = text.starts_with('.');
  if (has_point) {
    text.remove_prefix(1);
    const size_t digits = std::min(text.find_first_not_of(kDigits), text.size());
    if (digits == 0 || digits > kFractionDigitsMax) return std::nullopt;
    for (const char digit : text.substr(0, digits)) {
      fraction = fraction * 10 + static_cast<uint64_t>(digit - '0');
      fraction_scale *= 10;
    }
    text.remove_prefix(digits);
  }

  if (text.empty()) return has_point ? std::nullopt : std::optional(whole);
  const size_t power = kUnits.find(static_cast<char>(text.front() & ~0x20));
  text.remove_prefix(1);
  if (power == std::string_view::npos || !(text.empty() || text == "iB" || text == "ib")) return std::nullopt;
  const unsigned shift = 10 * (static_cast<unsigned>(power) + 1);
  if (whole > std::numeric_limits<uint64_t>::max() >> shift) return std::nullopt;
  return (whole << shift) + (fraction << shift) / fraction_scale;
}

// Parses a time: "500ms", "10s", "2m", "10". A number without a unit means seconds. At most a day.
inline std::optional<std::chrono::milliseconds> ParseTime(std::string_view text) {
  constexpr uint64_t kMost = 86'400'000;
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit(rest, static_cast<size_t>(end - rest));
  uint64_t each = 0;
  if (unit == "ms") each = 1;
  if (unit.empty() || unit == "s") each = 1000;
  if (unit == "m") each = 60'000;
  if (each == 0 || number > kMost / each) return std::nullopt;
  return std::chrono::milliseconds(number * each);
}

// Adds an option that takes a size.
inline CLI::Option* AddSize(CLI::App& app, const std::string& name, uint64_t& value, const std::string& help) {
  const auto to_bytes = [](std::string& text) {
    const auto size = ParseSize(text);
    if (!size) return fmt::format("'{}' is not a size: give bytes, or a number with K, M, G or T, as 1.5G", text);
    text = std::to_string(*size);
    return std::string();
  };
  return app.add_option(name, value, help)->transform(CLI::Validator(to_bytes, "", "size"))->type_name("BYTES");
}

// Accepts plain numbers from low to high.
template <class T>
CLI::Validator NumberFrom(T low, T high) {
  const auto check = [low, high](const std::string& text) {
    T number{};
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc() && rest == end && number >= low && number <= high) return std::string();
    return fmt::format("'{}' is not a number from {} to {}", text, low, high);
  };
  return CLI::Validator(check, "", "number");
}

// Adds an option that takes such a number.
template <class T>
CLI::Option* AddNumber(CLI::App& app, const std::string& name, T& value, T low, T high, const std::string& help) {
  return app.add_option(name, value, help)->check(NumberFrom<T>(low, high))->type_name("N");
}

// Adds --polling, for servers and clients.
inline void AddPolling(CLI::App& app, Polling& polling, const std::string& who) {
  static const std::map<std::string, Polling> kKinds = {
      {"adaptive", Polling::kAdaptive}, {"busy", Polling::kBusy}, {"sleep", Polling::kSleep}};
  app.add_option_function<std::string>(
         "--polling", [&polling](const std::string& name) { polling = kKinds.at(name); },
         "How " + who + ": adaptive (look for some microseconds, then sleep), busy (never sleep) or sleep (at once)")
      ->check(CLI::IsMember({"adaptive", "busy", "sleep"}))
      ->type_name("KIND")
      ->default_str("adaptive");
}

// Returns the text, after its subject unless the text contains the subject.
inline std::string Describe(std::string_view about, std::string_view text) {
  return text.find(about) != std::string_view::npos ? std::string(text) : fmt::format("{}: {}", about, text);
}
inline std::string Describe(std::string_view address, const Status& status) {
  return Describe(address, std::string_view(status.ToString()));
}

}  // namespace erda::tools
