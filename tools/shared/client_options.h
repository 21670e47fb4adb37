// Shared by programs that are clients: their options, the places where these come from, and the wait for a server that
// is starting.
//
// A program takes an option from the first of these that has it: the command line, the environment (ERDA_ADDRESS,
// ERDA_TOKEN_FILE), the configuration file, the default.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "erda/client.h"
#include "erda/status.h"

namespace erda::tools {

// The address of the package's server.
inline constexpr const char* kDefaultAddress = "shm:/run/erda/socket";
// A shell that starts a server in the background runs the next line before the server listens. This is long enough for
// a server that has nothing to recover, and short enough for a wrong address.
inline constexpr std::chrono::milliseconds kDefaultWait{2000};

struct ClientChoice {
  std::string address;
  ClientOptions options;
  std::optional<std::chrono::milliseconds> wait;  // Set if it is given.
  std::string config;                             // The configuration file, if it is given.
};

// --address, --wait, --config, --timeout-ms, --ack, --path, --cache-entries, --polling, --token-file. Parse fills in
// `choice`.
void AddClientOptions(CLI::App& app, ClientChoice& choice);

// After Parse: takes the other options from the configuration file, if there is one, and then the default address.
// Returns the fault of the file. --config or ERDA_CLIENT_CONFIG names the file. Otherwise it is the first that exists
// of $XDG_CONFIG_HOME/erda/client.toml (by default ~/.config/erda/client.toml) and /etc/erda/client.toml.
[[nodiscard]] std::optional<std::string> TakeClientConfig(CLI::App& app, ClientChoice& choice);

// Calls `connect` at least once, until it returns anything other than kUnavailable, or the time is over.
[[nodiscard]] Status WaitForServer(const std::string& program, const std::string& address,
                                   std::chrono::milliseconds wait, const std::function<Status()>& connect);

}  // namespace erda::tools
