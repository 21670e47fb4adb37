#include "tools/shared/client_options.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <system_error>
#include <thread>

#include "tools/shared/command_line.h"
#include "tools/shared/config_file.h"

namespace erda::tools {

void AddClientOptions(CLI::App& app, ClientChoice& choice) {
  ClientOptions& options = choice.options;
  app.add_option("-a,--address", choice.address,
                 "The server, as in shm:/path/to/socket or verbs://host:port; default shm:/run/erda/socket")
      ->envname("ERDA_ADDRESS")
      ->type_name("ADDRESS");
  const auto to_time = [](const std::string& text) {
    return ParseTime(text) ? std::string() : fmt::format("'{}' is not a time: give it as in 500ms, 10s or 2m", text);
  };
  app.add_option_function<std::string>(
         "--wait", [&choice](const std::string& text) { choice.wait = ParseTime(text); },
         "How long to try while no server listens, as in 500ms, 10s or 2m; default 2s (erda-cli ping: 0s)")
      ->check(CLI::Validator(to_time, "", "time"))
      ->type_name("TIME");
  app.add_option("--config", choice.config,
                 "A file with options; default ~/.config/erda/client.toml, or /etc/erda/client.toml, if it exists")
      ->envname("ERDA_CLIENT_CONFIG")
      ->type_name("FILE")
      ->configurable(false);
  const auto set_timeout = [&options](int64_t ms) { options.timeout = std::chrono::milliseconds(ms); };
  app.add_option_function<int64_t>("--timeout-ms", set_timeout,
                                   "Milliseconds for connecting and for each operation, 1 to 3600000; default 5000")
      ->check(NumberFrom<int64_t>(1, 3'600'000))
      ->type_name("N");
  static const std::map<std::string, Ack> kAcks = {{"placed", Ack::kPlaced}, {"persisted", Ack::kPersisted}};
  static const std::map<std::string, PutPath> kPaths = {{"auto", PutPath::kAuto},
                                                        {"inline", PutPath::kInline},
                                                        {"reserve", PutPath::kReserve},
                                                        {"delegate", PutPath::kDelegate}};
  app.add_option_function<std::string>(
         "--ack", [&options](const std::string& name) { options.ack = kAcks.at(name); },
         "When a put is done: placed (it survives the death of any process) or persisted (also all that the pool's "
         "medium survives); default persisted. In a file on an ordinary disk both are the same. Acknowledged puts then "
         "survive the death of any process, but not a power cut or a crash of the kernel")
      ->check(CLI::IsMember({"placed", "persisted"}))
      ->type_name("KIND");
  app.add_option_function<std::string>(
         "--path", [&options](const std::string& name) { options.put_path = kPaths.at(name); },
         "How a put travels: in the request (inline), or one-sidedly (reserve, delegate). With reserve the client asks "
         "for space, and with delegate the server gave it space ahead. Default auto: the client chooses")
      ->check(CLI::IsMember({"auto", "inline", "reserve", "delegate"}))
      ->type_name("PATH");
  AddNumber<uint32_t>(app, "--cache-entries", options.cache_entries, 0, 1U << 30,
                      "How many keys' places the client remembers for later gets; default 65536");
  AddPolling(app, options.polling, "calls wait");
  app.add_option(
         "--token-file", options.token_file,
         "A file with the token that the server asks for, in its first line. Other users must not be able to read it")
      ->envname("ERDA_TOKEN_FILE")
      ->type_name("FILE");
}

namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The configuration file of the user, or of the machine. Empty: neither exists.
std::string DefaultConfigFile() {
  std::string own = Environment("XDG_CONFIG_HOME");
  if (const std::string home = Environment("HOME"); own.empty() && !home.empty()) own = home + "/.config";
  std::error_code none;
  if (!own.empty()) {
    own += "/erda/client.toml";
    if (std::filesystem::exists(own, none)) return own;
  }
  const std::string common = "/etc/erda/client.toml";
  return std::filesystem::exists(common, none) ? common : "";
}

}  // namespace

std::optional<std::string> TakeClientConfig(CLI::App& app, ClientChoice& choice) {
  if (const std::string file = choice.config.empty() ? DefaultConfigFile() : choice.config; !file.empty()) {
    if (auto wrong = TakeConfigFile(app, file)) return wrong;
  }
  if (app.get_option("--address")->count() == 0) choice.address = kDefaultAddress;
  return std::nullopt;
}

Status WaitForServer(const std::string& program, const std::string& address, std::chrono::milliseconds wait,
                     const std::function<Status()>& connect) {
  constexpr std::chrono::milliseconds kStep{20};
  constexpr std::chrono::milliseconds kToldAfter{400};
  const auto begin = std::chrono::steady_clock::now();
  bool told = false;
  for (;;) {
    Status status = connect();
    if (status.code() != Code::kUnavailable) return status;
    const auto passed = std::chrono::steady_clock::now() - begin;
    if (passed >= wait) {
      if (wait.count() == 0) return status;
      return {status.code(), fmt::format("{} (waited {:g} s; --wait waits longer)", status.message(),
                                         std::chrono::duration<double>(wait).count())};
    }
    if (passed >= kToldAfter && !told && isatty(STDERR_FILENO) == 1) {
      fmt::print(stderr, "{}: waiting for a server at {}\n", program, address);
      told = true;
    }
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(kStep, wait - passed));
  }
}

}  // namespace erda::tools
