// erda-cli: one operation on a server, from a shell.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "erda/client.h"
#include "erda/status.h"
#include "tools/command_line.h"
#include "tools/dump/dump.h"
#include "tools/progress.h"
#include "tools/scan_pages.h"

namespace {

using erda::Client;
using erda::Code;
using erda::Status;
using erda::tools::Fail;

constexpr const char* kProgram = "erda-cli";
constexpr int kExitOther = 5;
constexpr const char* kFooter = R"(
Keys and values that begin with a dash go behind --, as in: put -- -key -value

Exit codes: 0 done, 1 not found, 2 bad usage or argument, 3 server unavailable or timeout,
            4 resource exhausted, 6 conflict, 5 anything else.

Examples: erda-cli -a shm:/run/erda.sock put greeting hello
          erda-cli -a shm:/run/erda.sock get greeting
          erda-cli -a shm:/run/erda.sock put photo - < photo.jpg
          erda-cli -a shm:/run/erda.sock get --raw photo > copy.jpg
          erda-cli -a shm:/run/erda.sock put --if-absent lock "$HOSTNAME"
          erda-cli -a shm:/run/erda.sock put --ttl 30000 session 4711
          erda-cli -a shm:/run/erda.sock incr visits
          erda-cli -a shm:/run/erda.sock dump all.dump
          erda-cli -a shm:/run/other.sock load all.dump)";

struct Arguments {
  std::string address;
  erda::ClientOptions options;
  std::string key;
  std::string value;
  uint64_t version = 0;
  bool if_version = false;
  bool if_absent = false;
  bool with_version = false;
  bool with_expiry = false;
  int64_t ttl = 0;  // in milliseconds; 0: none
  int64_t delta = 1;
  bool raw = false;
  bool json = false;
  bool no_wait = false;
  std::string file;
};

int ExitCode(Code code) {
  switch (code) {
    case Code::kOk:
      return 0;
    case Code::kNotFound:
      return 1;
    case Code::kInvalidArgument:
      return erda::tools::kExitUsage;
    case Code::kUnavailable:
    case Code::kTimeout:
      return 3;
    case Code::kResourceExhausted:
      return 4;
    case Code::kConflict:
      return 6;
    default:
      return kExitOther;
  }
}

int FailWith(const Arguments& arguments, const Status& status) {
  if (status.code() == Code::kNotFound) {
    fmt::print(stderr, "not found\n");
    return ExitCode(status.code());
  }
  return Fail(kProgram, erda::tools::Describe(arguments.address, status), ExitCode(status.code()));
}

int Finish(const Arguments& arguments, const Status& status) { return status.ok() ? 0 : FailWith(arguments, status); }

// All of it, or the exit code of a failure.
int Print(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() && std::fflush(stdout) == 0) return 0;
  return Fail(kProgram, fmt::format("cannot write to stdout: {}", std::strerror(errno)), kExitOther);
}

std::optional<std::string> ReadStdin() {
  std::string all;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t size = read(STDIN_FILENO, buffer.data(), buffer.size());
    if (size == 0) return all;
    if (size > 0) all.append(buffer.data(), static_cast<size_t>(size));
    if (size < 0 && errno != EINTR) return std::nullopt;
  }
}

int Get(Client& client, const Arguments& arguments) {
  auto got = client.GetVersioned(arguments.key);
  if (!got.ok()) return FailWith(arguments, got.status());
  std::string& value = got->value;
  if (arguments.with_expiry) {
    value.insert(0, fmt::format("{} ", got->expires ? got->expires->time_since_epoch().count() : 0));
  }
  if (arguments.with_version) value.insert(0, fmt::format("{} ", got->version));
  if (!arguments.raw) value.push_back('\n');
  return Print(value);
}

int Put(Client& client, const Arguments& arguments) {
  std::optional<std::string> from_stdin;
  if (arguments.value == "-") {
    from_stdin = ReadStdin();
    if (!from_stdin) return Fail(kProgram, fmt::format("cannot read stdin: {}", std::strerror(errno)), kExitOther);
  }
  erda::PutOptions options;
  if (arguments.if_version) options.if_version = arguments.version;
  if (arguments.if_absent) options.if_version = erda::kAbsent;
  if (arguments.ttl != 0) options.ttl = std::chrono::milliseconds(arguments.ttl);
  const auto version = client.Put(arguments.key, from_stdin ? *from_stdin : arguments.value, options);
  if (!version.ok()) return FailWith(arguments, version.status());
  return arguments.with_version ? Print(fmt::format("{}\n", *version)) : 0;
}

int Delete(Client& client, const Arguments& arguments) {
  if (!arguments.if_version) return Finish(arguments, client.Delete(arguments.key));
  return Finish(arguments, client.Delete(arguments.key, erda::DeleteOptions{arguments.version}));
}

int Increment(Client& client, const Arguments& arguments) {
  const auto sum = client.Increment(arguments.key, arguments.delta);
  return sum.ok() ? Print(fmt::format("{}\n", *sum)) : FailWith(arguments, sum.status());
}

// What is written as a plain decimal number becomes one.
nlohmann::ordered_json JsonValue(const std::string& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && std::to_string(number) == text) return number;
  return text;
}

int Stats(Client& client, const Arguments& arguments) {
  const auto info = client.ServerInfo();
  if (!info.ok()) return FailWith(arguments, info.status());
  if (arguments.json) {
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
int Clean(Client& client, const Arguments& arguments) {
  const auto before = client.ServerInfo();
  if (!before.ok()) return FailWith(arguments, before.status());
  if (const auto asked = client.Clean(); !asked.ok()) return FailWith(arguments, asked);
  if (arguments.no_wait) return 0;
  for (;;) {
    const auto info = client.ServerInfo();
    if (!info.ok()) return FailWith(arguments, info.status());
    if (NumberOf(*info, "cleaning") == 0) {
      const auto since = [&](std::string_view name) { return NumberOf(*info, name) - NumberOf(*before, name); };
      return Print(fmt::format("regions cleaned {}, bytes copied {}, regions free {}\n", since("clean_regions"),
                               since("clean_bytes_copied"), NumberOf(*info, "free_regions")));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// --- Dump and load

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

bool ShowsProgress() { return erda::tools::Progress::HasTerminal(); }

// What is said of it goes where the dump does not.
int TellDumped(const Arguments& arguments, const erda::tools::Dumped& dumped) {
  const std::string text = fmt::format("keys {}, bytes {}\n", dumped.keys, dumped.bytes);
  if (arguments.file != "-") {
    if (const int code = Print(text); code != 0) return code;
  } else {
    fmt::print(stderr, "{}", text);
  }
  if (dumped.damaged == 0) return 0;
  return Fail(kProgram, fmt::format("{} keys are damaged in the pool, and not in the dump", dumped.damaged),
              kExitOther);
}

int Keys(Client& client, const Arguments& arguments) {
  erda::ScanOptions options;
  options.values = false;
  uint64_t damaged = 0;
  int code = 0;
  const auto print = [&](const erda::ScanPage& page) {
    std::string text;
    for (const erda::ScannedKey& each : page.keys) text.append(each.key).push_back('\n');
    code = Print(text);
    damaged += page.damaged;
    return code == 0 ? Status() : Status(erda::Code::kInternal);  // it was told
  };
  const Status status = erda::tools::ForEachPage(client, options, print);
  if (code != 0) return code;
  if (!status.ok()) return FailWith(arguments, status);
  return damaged == 0 ? 0 : Fail(kProgram, fmt::format("{} keys are damaged in the pool", damaged), kExitOther);
}

// A file gets its name when it is whole, and on the medium: what had it before stays until then.
int Dump(Client& client, const Arguments& arguments) {
  const auto failed = [&](const std::string& file) {
    return Fail(kProgram, fmt::format("cannot write {}: {}", file, std::strerror(errno)), kExitOther);
  };
  if (arguments.file == "-") {
    const auto dumped = erda::tools::Dump(client, stdout, ShowsProgress());
    if (!dumped.ok()) return FailWith(arguments, dumped.status());
    if (std::fflush(stdout) != 0) return failed("stdout");
    return TellDumped(arguments, *dumped);
  }
  struct stat status {};
  const bool in_place = stat(arguments.file.c_str(), &status) == 0 && !S_ISREG(status.st_mode);  // as /dev/null
  // Where a link leads to, if it does. For the user alone, as a pool is.
  std::error_code none;
  const auto target = std::filesystem::canonical(arguments.file, none);
  const std::string whole = none ? arguments.file : target.string();
  std::string name = in_place ? arguments.file : whole + ".part.XXXXXX";
  const int descriptor =
      in_place ? open(name.c_str(), O_WRONLY | O_CLOEXEC) : mkostemp(name.data(), O_CLOEXEC);  // mode 0600
  File file(descriptor < 0 ? nullptr : fdopen(descriptor, "w"));
  if (!file) return failed(name);
  const auto dumped = erda::tools::Dump(client, file.get(), ShowsProgress());
  const auto remove = [&] {
    if (!in_place) std::remove(name.c_str());
  };
  if (!dumped.ok()) {
    remove();
    return FailWith(arguments, dumped.status());
  }
  const bool written = std::fflush(file.get()) == 0 && (in_place || fsync(fileno(file.get())) == 0);
  if (!written || (!in_place && std::rename(name.c_str(), whole.c_str()) != 0)) {
    const int code = failed(arguments.file);
    remove();
    return code;
  }
  return TellDumped(arguments, *dumped);
}

int Load(Client& client, const Arguments& arguments) {
  const bool from_stdin = arguments.file == "-";
  File file(from_stdin ? fdopen(dup(STDIN_FILENO), "re") : std::fopen(arguments.file.c_str(), "re"));
  if (!file) {
    return Fail(kProgram, fmt::format("cannot read {}: {}", arguments.file, std::strerror(errno)), kExitOther);
  }
  erda::tools::Loaded loaded;
  const auto status = erda::tools::Load(client, file.get(), arguments.if_absent, ShowsProgress(), &loaded);
  std::string text = fmt::format("keys {}", loaded.keys);
  if (loaded.present > 0) text += fmt::format(", left as they were {}", loaded.present);
  if (loaded.expired > 0) text += fmt::format(", expired {}", loaded.expired);
  if (const int code = Print(text + "\n"); code != 0) return code;
  if (!status.ok()) return FailWith(arguments, status);
  if (loaded.damaged == 0) return 0;
  return Fail(kProgram,
              fmt::format("{} keys were damaged when the dump was written, and are not in it", loaded.damaged),
              kExitOther);
}

using Command = int (*)(Client&, const Arguments&);

// The subcommands; parsing sets `chosen`.
void AddCommands(CLI::App& app, Arguments& arguments, Command& chosen) {
  const auto add = [&](const char* name, const char* help, Command command) {
    CLI::App* sub = app.add_subcommand(name, help);
    sub->fallthrough()->callback([&chosen, command] { chosen = command; });
    return sub;
  };
  const auto add_key = [&](CLI::App* sub) { sub->add_option("KEY", arguments.key)->required()->type_name(""); };

  CLI::App* get = add("get", "Print the value of a key and a newline", Get);
  get->add_flag("--raw", arguments.raw, "Only the value's bytes, without a newline");
  get->add_flag("--with-version", arguments.with_version, "The version and a space before the value");
  get->add_flag("--with-expiry", arguments.with_expiry,
                "When it expires, in milliseconds of Unix time, and a space before the value; 0: never");
  add_key(get);
  CLI::App* put = add("put", "Set the value of a key", Put);
  add_key(put);
  put->add_option("VALUE", arguments.value, "The value, or - to read it from stdin")->required()->type_name("");
  const auto add_condition = [&](CLI::App* sub) {
    return erda::tools::AddNumber<uint64_t>(*sub, "--if-version", arguments.version, 0, UINT64_MAX,
                                            "Only if the key has this version (exit code 6)")
        ->type_name("N")
        ->each([&](const std::string& /*number*/) { arguments.if_version = true; });
  };
  CLI::Option* if_version = add_condition(put);
  put->add_flag("--if-absent", arguments.if_absent, "Only if the key has no value (exit code 6)")->excludes(if_version);
  put->add_flag("--with-version", arguments.with_version, "Print the version of what was put");
  erda::tools::AddNumber<int64_t>(*put, "--ttl", arguments.ttl, 1, erda::kTtlMax.count(),
                                  "The value expires after so many milliseconds; default: never")
      ->type_name("MS");
  CLI::App* del = add("del", "Remove a key", Delete);
  add_condition(del);
  add_key(del);
  CLI::App* increment = add("incr", "Add to a number of 8 bytes, absent counts as 0, and print the sum", Increment);
  add_key(increment);
  increment->add_option("DELTA", arguments.delta, "What is added; default 1")->type_name("");
  CLI::App* clean = add("clean", "Have the server clean its log now, and wait until that is done", Clean);
  clean->add_flag("--no-wait", arguments.no_wait, "Only ask for it");
  add("keys", "Print all keys, each and a newline, in no order, while all goes on", Keys);
  const auto add_file = [&](CLI::App* sub, const char* help) {
    sub->add_option("FILE", arguments.file, help)->required()->type_name("");
  };
  add_file(add("dump", "Write all keys, values and deadlines to a file, while all goes on", Dump),
           "The file, or - for stdout");
  CLI::App* load = add("load", "Put all that a dump holds", Load);
  add_file(load, "The dump, or - for stdin");
  load->add_flag("--if-absent", arguments.if_absent, "Leave keys as they are that have a value");
  CLI::App* stats = add("stats", "Print what the server says of itself", Stats);
  stats->add_flag("--json", arguments.json, "As one JSON object");
  app.require_subcommand(1, 1);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  Command command = nullptr;
  CLI::App app("Reads and changes a running server's pool.", kProgram);
  app.footer(kFooter);
  erda::tools::AddClientOptions(app, arguments.address, arguments.options);
  AddCommands(app, arguments, command);
  if (const auto done = erda::tools::Parse(app, argc, argv)) return *done;

  auto client = Client::Connect(arguments.address, arguments.options);
  if (!client.ok()) return FailWith(arguments, client.status());
  return command(**client, arguments);
}
