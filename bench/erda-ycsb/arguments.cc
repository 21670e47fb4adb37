#include "bench/erda-ycsb/arguments.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/ycsb/properties.h"
#include "bench/ycsb/workload.h"
#include "tools/shared/command_line.h"

namespace erda::bench {
namespace {

constexpr uint64_t kMostOperations = 10'000'000'000;
constexpr const char* kFooter = R"(
Workloads: A 50% get, 50% update    D 95% get of the latest, 5% insert
           B 95% get, 5% update     F 50% get, 50% read-modify-write
           C 100% get               update 100% update, rmw 100% read-modify-write
E is refused: it scans, and Erda has no scans. An update writes the whole value. A read-modify-write gets the value
and then puts another one.

The program first puts all records (load), then times the operations (run). It chooses records by Zipf's law with
exponent 0.99; see --distribution. Each thread has a separate client. With --depth 1 it uses the synchronous calls, with
more the asynchronous calls.

-P and -p take the workload files and properties of YCSB, and -threads, -load, -run, -t and -s mean what they mean
there. Options of erda-ycsb have precedence over properties.

Addresses are Erda's, or those of other stores, which the same driver measures:
  redis:/path/to/socket, memcached:/path/to/socket         servers
  lmdb:FILE[,nosync][,writemap][,size=4G], tkrzw:FILE,
  rocksdb:FOLDER[,sync][,cache=1G]                         libraries, which keep their data there
With --scheme it measures a server of erda-scheme-server. The options --ack and --path count only for Erda.

Exit codes: 0 done, 1 an operation failed, 2 bad usage.

Examples: erda-ycsb --workload A --records 100000 --operations 1000000 --threads 2
          erda-ycsb -P workloads/workloada -p recordcount=1000 -p requestdistribution=uniform -threads 4)";

struct Choice {
  std::string workload;
  std::string distribution;
  std::vector<std::string> files;
  std::vector<std::string> assignments;
};

int FailUsage(std::string message) { return tools::Fail(kProgram, std::move(message), tools::kExitUsage); }

std::string RefuseScans(std::string& name) {
  return name == "E" || name == "e" ? std::string(kNoScans) : std::string();
}

std::string CheckSeconds(const std::string& text) {
  constexpr double kLeast = 0.001;
  constexpr double kMost = 86400;
  double seconds = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, seconds);
  if (error == std::errc() && rest == end && seconds >= kLeast && seconds <= kMost) return "";
  return fmt::format("'{}' is not a number of seconds from {} to {}", text, kLeast, kMost);
}

void AddWorkloadOptions(CLI::App& app, Settings& settings, Choice& choice) {
  app.add_option("-w,--workload", choice.workload, "The mix of operations, see below; or name one with -P or -p")
      ->transform(CLI::IsMember({"A", "B", "C", "D", "F", "rmw", "update"}, CLI::ignore_case))
      ->transform(CLI::Validator(RefuseScans, "", "scans"))
      ->type_name("NAME");
  app.add_option("--distribution", choice.distribution,
                 "The choice of records: zipfian, uniform or latest; by default that of the workload")
      ->check(CLI::IsMember({"zipfian", "uniform", "latest"}))
      ->type_name("KIND");
  app.add_option("-P,--property-file", choice.files, "A workload file of YCSB; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("-p,--property", choice.assignments,
                 "A property of YCSB, as recordcount=1000, which replaces the files'; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  tools::AddNumber<uint32_t>(app, "--writers", settings.writers, 1, 1023,
                             "Instead of a workload: this number of threads update, the others get. Needs --seconds");
}

void AddSizeOptions(CLI::App& app, Settings& settings) {
  tools::AddNumber<uint64_t>(app, "--records", settings.records, 1, kMostOperations,
                             "Records to load and choose from; default 100000");
  tools::AddNumber<uint64_t>(
      app, "--operations", settings.operations, 1, kMostOperations,
      "Operations to time, over all threads; default 1000000, with --seconds as many as it takes");
  app.add_option("--seconds", settings.seconds, "Time for this long, or until the operations are done")
      ->check(CLI::Validator(CheckSeconds, "", "seconds"))
      ->type_name("N");
  tools::AddNumber<uint64_t>(app, "--warm-up", settings.warm_up, 0, kMostOperations,
                             "Operations that run before those, and are not timed; default 0");
  tools::AddSize(app, "--value-size", settings.value_size,
                 "Bytes of each value, or a size such as 1K or 1.5M; default 1024");
  tools::AddNumber<uint32_t>(app, "--threads", settings.threads, 1, 1024, "Threads; default 1");
  tools::AddNumber<uint32_t>(app, "--depth", settings.depth, 1, 256,
                             "Outstanding operations of each thread; default 1");
  tools::AddNumber<uint32_t>(app, "--load-depth", settings.load_depth, 1, 256,
                             "Outstanding puts of each thread in the load, if that is more than --depth; default 16");
  tools::AddNumber<uint64_t>(app, "--seed", settings.seed, 0, std::numeric_limits<uint64_t>::max(),
                             "The seed for the choice of operations and records; default 1");
}

void AddRunOptions(CLI::App& app, Settings& settings, Output& output) {
  app.add_flag_callback(
      "--no-load", [&settings] { settings.load = false; }, "Do not load: the server has the records of an earlier run");
  app.add_flag_callback(
      "--load-only", [&settings] { settings.run = false; }, "Do not run: end after the load");
  app.add_flag(
      "--verify", settings.verify,
      "Check that each value that is read is whole, and belongs to its key. Values must have at least 16 bytes");
  app.add_flag("--hold", output.hold,
               "Before the run, print 'ready' and wait for a line of standard input, or for its end");
  app.add_option("--scheme", settings.scheme, "The scheme of the server; default erda")
      ->check(CLI::IsMember({"erda", "redo", "raw"}))
      ->type_name("NAME");
  tools::AddNumber<int>(
      app, "--server-pid", output.server_pid, 1, std::numeric_limits<int>::max(),
      "The server's process, on this machine: also report the processor time that it takes in the run");
  app.add_option("--json", output.json_path, "Also write the results to this file")->type_name("FILE");
  app.add_flag("-q,--quiet", output.quiet, "Show no progress bar");
}

// Returns the arguments with YCSB's own spellings replaced.
std::vector<std::string> WithoutYcsbSpellings(int argc, char** argv) {
  std::vector<std::string> arguments;
  bool loads = false;
  bool runs = false;
  for (const std::string_view argument : std::vector<std::string_view>(argv, argv + argc)) {
    if (argument == "-load") {
      loads = true;
    } else if (argument == "-run" || argument == "-t") {
      runs = true;
    } else if (argument == "-threads") {
      arguments.emplace_back("--threads");
    } else if (argument != "-s") {  // It asks for a progress report, which is there without it.
      arguments.emplace_back(argument);
    }
  }
  if (loads && !runs) arguments.emplace_back("--load-only");
  if (runs && !loads) arguments.emplace_back("--no-load");
  return arguments;
}

// Gives the options that are not on the command line the values of the properties. Returns the fault, or an empty text.
std::string Apply(CLI::App& app, const TranslatedProperties& properties) {
  for (const auto& [name, value] : properties.options) {
    CLI::Option* option = app.get_option(name);
    if (option->count() > 0) continue;
    try {
      option->add_result(value);
      option->run_callback();
    } catch (const CLI::Error& error) {
      return fmt::format("{} (from a property)", error.what());
    }
  }
  if (properties.unused.empty()) return "";
  std::string names;
  for (const std::string& name : properties.unused) names += (names.empty() ? "" : ", ") + name;
  fmt::print(stderr, "{}: these properties have no meaning here: {}\n", kProgram, names);
  return "";
}

// Takes the properties, and then the workload from the options or from them. Returns the fault, or an empty text.
std::string TakeProperties(CLI::App& app, const Choice& choice, Settings& settings) {
  Properties properties;
  for (const std::string& file : choice.files) {
    if (const Status status = properties.AddFile(file); !status.ok()) return std::string(status.message());
  }
  for (const std::string& assignment : choice.assignments) {
    if (const Status status = properties.Add(assignment); !status.ok()) return std::string(status.message());
  }
  const auto translated = Translate(properties);
  if (!translated.ok()) return std::string(translated.status().message());
  if (std::string fault = Apply(app, *translated); !fault.empty()) return fault;

  const bool needed = settings.writers == 0 && settings.run;
  if (!choice.workload.empty()) {
    settings.workload = FindWorkload(choice.workload).value();
  } else if (translated->workload) {
    settings.workload = *translated->workload;
  } else if (needed) {
    return "give a workload: --workload NAME, or a workload file of YCSB with -P (see --help)";
  } else {
    settings.workload = FindWorkload("C").value();
  }
  // A whole workload of the properties gave way to --workload, with its distribution.
  const bool replaced = !choice.workload.empty() && translated->workload;
  if (translated->distribution && !replaced) settings.workload.distribution = *translated->distribution;
  if (const auto given = FindDistribution(choice.distribution)) settings.workload.distribution = *given;
  return "";
}

// Checks the settings together. Returns the error, or an empty text.
std::string CheckSettings(const CLI::App& app, Settings& settings) {
  if (settings.value_size > uint64_t{1} << 30)
    return "--value-size: no pool takes values above 1G; give a smaller size";
  if (settings.verify && settings.value_size < Values::kHeaderBytes) {
    return fmt::format("--verify needs a --value-size of at least {}", Values::kHeaderBytes);
  }
  if (!settings.load && !settings.run) return "--no-load and --load-only leave nothing to do; give one of them";
  if (settings.writers > 0) {
    if (app.count("--workload") > 0) return "--writers stands instead of --workload; give one of them";
    if (settings.writers >= settings.threads) return "--writers needs --threads above it, for those that get";
    if (settings.seconds == 0) return "--writers needs --seconds: gets and updates take different times";
  }
  if (settings.seconds > 0 && app.get_option("--operations")->count() == 0) {
    if (settings.workload.insert_percent > 0) return "--seconds with inserts needs --operations, as their limit";
    settings.operations = kMostOperations;
  }
  return "";
}

std::string CheckOutput(const Output& output) {
  if (output.server_pid != 0 && !std::filesystem::exists(fmt::format("/proc/{}/task", output.server_pid))) {
    return fmt::format("--server-pid: there is no process {} on this machine", output.server_pid);
  }
  // Check the file before the run rather than after it.
  if (!output.json_path.empty() && !std::ofstream(output.json_path, std::ios::app)) {
    return fmt::format("cannot write {}: {}", output.json_path, std::strerror(errno));
  }
  return "";
}

}  // namespace

std::optional<int> ReadArguments(int argc, char** argv, Arguments& arguments) {
  Settings& settings = arguments.settings;
  CLI::App app("Measures a running server with YCSB's core workloads.", kProgram);
  app.footer(kFooter);
  tools::ClientChoice client;
  Choice choice;
  tools::AddClientOptions(app, client);
  AddWorkloadOptions(app, settings, choice);
  AddSizeOptions(app, settings);
  AddRunOptions(app, settings, arguments.output);
  std::vector<std::string> given = WithoutYcsbSpellings(argc, argv);
  std::vector<char*> words;
  words.reserve(given.size());
  for (std::string& word : given) words.push_back(word.data());
  if (const auto done = tools::Parse(app, static_cast<int>(words.size()), words.data())) return done;
  if (const auto wrong = tools::TakeClientConfig(app, client)) return FailUsage(*wrong);
  if (auto wrong = TakeProperties(app, choice, settings); !wrong.empty()) return FailUsage(wrong);
  settings.address = client.address;
  settings.client = client.options;
  arguments.wait = client.wait.value_or(tools::kDefaultWait);
  if (auto wrong = CheckSettings(app, settings); !wrong.empty()) return FailUsage(wrong);
  if (auto wrong = CheckOutput(arguments.output); !wrong.empty()) return FailUsage(wrong);
  return std::nullopt;
}

}  // namespace erda::bench
