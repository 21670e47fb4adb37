// What the programs share: parsing with one-line errors, sizes, the options of a client.
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

#include "erda/client.h"
#include "erda/polling.h"
#include "erda/status.h"

namespace erda::tools {

inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

// "erda-cli: message" on stderr, on one line whatever the message holds. Returns the exit code.
inline int Fail(std::string_view program, std::string message, int exit_code) {
  while (!message.empty() && message.back() == '\n') message.pop_back();
  std::replace(message.begin(), message.end(), '\n', ' ');
  fmt::print(stderr, "{}: {}\n", program, message);
  return exit_code;
}

// The exit code if the program is done after parsing: 0 for --help and --version, kExitUsage for what does not parse.
inline std::optional<int> Parse(CLI::App& app, int argc, char** argv) {
  app.set_version_flag("--version", app.get_name() + " " + ERDA_VERSION, "Print the version and exit");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::Error& error) {
    return Fail(app.get_name(), fmt::format("{} (see --help)", error.what()), kExitUsage);
  }
  return std::nullopt;
}

// "64", "64K", "64M", "64G": bytes, in powers of two.
inline std::optional<uint64_t> ParseSize(std::string_view text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [suffix, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return std::nullopt;
  constexpr std::string_view kSuffixes = "KMG";
  unsigned shift = 0;
  if (suffix != end) {
    const size_t power = kSuffixes.find(static_cast<char>(*suffix & ~0x20));
    if (power == std::string_view::npos || suffix + 1 != end) return std::nullopt;
    shift = 10 * (static_cast<unsigned>(power) + 1);
  }
  if (number > std::numeric_limits<uint64_t>::max() >> shift) return std::nullopt;
  return number << shift;
}

// An option that takes a size.
inline CLI::Option* AddSize(CLI::App& app, const std::string& name, uint64_t& value, const std::string& help) {
  const auto to_bytes = [](std::string& text) {
    const auto size = ParseSize(text);
    if (!size) return fmt::format("'{}' is not a size: give bytes, or a number with K, M or G", text);
    text = std::to_string(*size);
    return std::string();
  };
  return app.add_option(name, value, help)->transform(CLI::Validator(to_bytes, "", "size"))->type_name("BYTES");
}

// Accepts the plain numbers from low to high.
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

// An option that takes such a number.
template <class T>
CLI::Option* AddNumber(CLI::App& app, const std::string& name, T& value, T low, T high, const std::string& help) {
  return app.add_option(name, value, help)->check(NumberFrom<T>(low, high))->type_name("N");
}

// --polling, for servers and clients.
inline void AddPolling(CLI::App& app, Polling& polling, const std::string& who) {
  static const std::map<std::string, Polling> kKinds = {
      {"adaptive", Polling::kAdaptive}, {"busy", Polling::kBusy}, {"sleep", Polling::kSleep}};
  app.add_option_function<std::string>(
         "--polling", [&polling](const std::string& name) { polling = kKinds.at(name); },
         "How " + who + ": adaptive (looks for a while, then sleeps), busy (never sleeps) or sleep (at once)")
      ->check(CLI::IsMember({"adaptive", "busy", "sleep"}))
      ->type_name("KIND")
      ->default_str("adaptive");
}

// --address, --timeout-ms, --ack, --path, --cache-entries, --polling, --token-file. `address` and `options` are filled
// in by Parse.
inline void AddClientOptions(CLI::App& app, std::string& address, ClientOptions& options) {
  app.add_option("-a,--address", address, "The server, as in shm:/path/to/socket or verbs://host:port")
      ->required()
      ->envname("ERDA_ADDRESS")
      ->type_name("ADDRESS");
  const auto set_timeout = [&options](int64_t ms) { options.timeout = std::chrono::milliseconds(ms); };
  app.add_option_function<int64_t>("--timeout-ms", set_timeout,
                                   "For connecting and for each operation, 1 to 3600000; default 5000")
      ->check(NumberFrom<int64_t>(1, 3'600'000))
      ->type_name("N");
  static const std::map<std::string, Ack> kAcks = {{"placed", Ack::kPlaced}, {"persisted", Ack::kPersisted}};
  static const std::map<std::string, PutPath> kPaths = {{"auto", PutPath::kAuto},
                                                        {"inline", PutPath::kInline},
                                                        {"reserve", PutPath::kReserve},
                                                        {"delegate", PutPath::kDelegate}};
  app.add_option_function<std::string>(
         "--ack", [&options](const std::string& name) { options.ack = kAcks.at(name); },
         "When a put is done: placed (survives any process) or persisted (also what the pool's medium survives); "
         "default persisted. In a file on an ordinary disk both are the same: acknowledged puts survive the death of "
         "any process, but not a power cut or a crash of the kernel")
      ->check(CLI::IsMember({"placed", "persisted"}))
      ->type_name("KIND");
  app.add_option_function<std::string>(
         "--path", [&options](const std::string& name) { options.put_path = kPaths.at(name); },
         "How a put travels: inline (in the request), reserve (one-sidedly), delegate (one-sidedly, into space that "
         "the client was given ahead) or auto (inline or delegate, by size); default auto")
      ->check(CLI::IsMember({"auto", "inline", "reserve", "delegate"}))
      ->type_name("PATH");
  AddNumber<uint32_t>(app, "--cache-entries", options.cache_entries, 0, 1U << 30,
                      "Keys whose places are remembered for later gets; default 65536");
  AddPolling(app, options.polling, "calls wait");
  app.add_option(
         "--token-file", options.token_file,
         "A file with the token that the server asks for, in its first line; nobody else may be able to read it")
      ->type_name("FILE");
}

// The text, with what it is about in front unless the text names it.
inline std::string Describe(std::string_view about, std::string_view text) {
  return text.find(about) != std::string_view::npos ? std::string(text) : fmt::format("{}: {}", about, text);
}
inline std::string Describe(std::string_view address, const Status& status) {
  return Describe(address, std::string_view(status.ToString()));
}

}  // namespace erda::tools
