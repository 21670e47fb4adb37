#include "bench/floors/server_process.h"

#include <fmt/core.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "bench/floors/raw_memory.h"
#include "erda/server.h"

namespace erda::floors {

namespace {

using nlohmann::json;

void Say(const json& line) {
  fmt::print("{}\n", line.dump(-1, ' ', false, json::error_handler_t::replace));
  std::fflush(stdout);
}

int SayFailure(const Status& status) {
  Say({{"code", static_cast<int>(status.code())}, {"message", std::string(status.message())}});
  return 1;
}

// Returns the bytes of a device. Returns nothing if the path is no device.
std::optional<uint64_t> DeviceBytes(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISCHR(info.st_mode)) return std::nullopt;
  std::ifstream file(fmt::format("/sys/dev/char/{}:{}/size", major(info.st_rdev), minor(info.st_rdev)));
  uint64_t bytes = 0;
  if (!(file >> bytes)) return std::nullopt;
  return bytes;
}

void WaitForEndOfInput() {
  char byte = 0;
  ssize_t n = 0;
  do {
    n = ::read(STDIN_FILENO, &byte, 1);
  } while (n > 0 || (n < 0 && errno == EINTR));
}

Result<json> ServeUntilEnd(const ServeSettings& settings, ServerOptions options) {
  auto server = Server::Open(std::move(options));
  if (!server.ok()) return server.status();
  if (auto status = (*server)->Start(); !status.ok()) return status;
  json ready = {
      {"address", (*server)->addresses().front()}, {"durability", (*server)->durability()}, {"pid", ::getpid()}};
  if (settings.raw_address.empty()) {
    Say(ready);
    WaitForEndOfInput();
  } else {
    auto memory = RawMemory::Open(settings.pool, settings.raw_bytes);
    if (!memory.ok()) return memory.status();
    const RawMemory& raw_memory = **memory;
    auto raw = RawServer::Start(settings.raw_address, raw_memory.view(), raw_memory.area(),
                                [&raw_memory](uint64_t offset, uint64_t bytes) { raw_memory.Persist(offset, bytes); });
    if (!raw.ok()) return raw.status();
    ready["raw_address"] = (*raw)->address();
    ready["area_offset"] = raw_memory.area().offset;
    ready["area_bytes"] = raw_memory.area().bytes;
    Say(ready);
    WaitForEndOfInput();
    raw->reset();
    if (!raw_memory.untouched()) {
      return Status(Code::kResourceExhausted,
                    "the pool is too small for this number of operations; give a larger --pool-size or fewer --ops");
    }
  }
  if (auto status = (*server)->Stop(); !status.ok()) return status;
  return json::object();
}

Status StatusOf(const json& line) {
  const int code = line.value("code", static_cast<int>(Code::kInternal));
  return {static_cast<Code>(code), line.value("message", std::string("the server's process failed"))};
}

}  // namespace

CLI::App* AddServe(CLI::App& app, ServeSettings& settings) {
  CLI::App* serve = app.add_subcommand(kServeCommand)->group("");
  serve->add_option("--address", settings.address)->required();
  serve->add_option("--raw-address", settings.raw_address);
  serve->add_option("--pool", settings.pool)->required();
  serve->add_option("--pool-size", settings.pool_size)->required();
  serve->add_option("--raw-bytes", settings.raw_bytes);
  serve->add_option("--index-entries", settings.index_entries);
  serve->add_option("--slot-bytes", settings.slot_bytes);
  serve->add_option("--max-clients", settings.max_clients);
  serve->add_option("--journal", settings.journal);
  serve->add_option("--journal-size", settings.journal_size);
  serve->add_option("--journal-memory", settings.journal_memory);
  serve->add_flag("--keep", settings.keep);
  serve->add_flag("--least-rights", settings.least_rights);
  serve->add_flag("--beside-raw", settings.beside_raw);
  return serve;
}

void StayOnOneProcessor(Side side) {
  cpu_set_t usable;
  if (::sched_getaffinity(0, sizeof(usable), &usable) != 0 || CPU_COUNT(&usable) < 2) return;
  int first = 0;
  while (!CPU_ISSET(first, &usable)) ++first;
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &usable)) --last;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(side == Side::kMeasuring ? first : last, &one);
  (void)::sched_setaffinity(0, sizeof(one), &one);  // If this is not permitted, the figures scatter more.
}

int Serve(const ServeSettings& settings) {
  const bool has_raw = !settings.raw_address.empty() || settings.beside_raw;
  if (has_raw) StayOnOneProcessor(Side::kServing);
  // A signal is meant for the process that started this one. When that process ends, stdin ends.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(signal, SIG_IGN);
  ServerOptions options;
  options.pool = settings.pool;
  options.listen = {settings.address};
  // The server lets clients write anywhere, since the reserve path is measured over each fabric. With least rights over
  // shm no client writes into the pool: kSameUser would let them all, as they have the server's user.
  const bool shm = settings.address.starts_with("shm:");
  options.pool_writes = !settings.least_rights ? PoolWrites::kEverybody
                        : shm                  ? PoolWrites::kNobody
                                               : PoolWrites::kSameUser;
  if (has_raw) options.spin = kSpin;
  options.index_entries = settings.index_entries;
  if (settings.slot_bytes != 0) options.slot_bytes = settings.slot_bytes;
  if (settings.max_clients != 0) options.max_clients = settings.max_clients;
  if (!settings.journal.empty()) {
    options.journal = settings.journal;
    options.journal_size = settings.journal_size;
    options.journal_memory = settings.journal_memory;
    options.journal_on_tmpfs = true;  // The benchmark says what file system it measures.
  }
  std::error_code ignored;
  const bool is_dram = settings.pool == "dram:";
  const bool is_new = !is_dram && !std::filesystem::exists(settings.pool, ignored);
  // A device becomes a pool of its whole size. An existing file keeps its size.
  options.pool_size = is_dram || is_new ? settings.pool_size : DeviceBytes(settings.pool).value_or(0);

  const auto ended = ServeUntilEnd(settings, std::move(options));
  if (is_new && !settings.keep) std::filesystem::remove(settings.pool, ignored);
  if (!ended.ok()) return SayFailure(ended.status());
  Say(*ended);
  return 0;
}

Result<std::string> OwnAddress(const std::string& address, const TemporaryFolder& folder) {
  if (!address.empty()) return address;
  if (folder.path().empty()) return ErrnoStatus("cannot make a folder for a socket");
  return "shm:" + folder.path() + "/socket";
}

Result<ServeSettings> ServeInDram(const TemporaryFolder& folder) {
  auto address = OwnAddress("", folder);
  if (!address.ok()) return address.status();
  ServeSettings serve;
  serve.address = *std::move(address);
  serve.pool = "dram:";
  serve.pool_size = uint64_t{256} << 20;
  return serve;
}

Result<std::unique_ptr<ServerProcess>> ServerProcess::Start(const std::string& program, const ServeSettings& settings) {
  std::vector<std::string> command = {program,           kServeCommand,
                                      "--address",       settings.address,
                                      "--pool",          settings.pool,
                                      "--pool-size",     std::to_string(settings.pool_size),
                                      "--index-entries", std::to_string(settings.index_entries),
                                      "--slot-bytes",    std::to_string(settings.slot_bytes),
                                      "--max-clients",   std::to_string(settings.max_clients)};
  if (!settings.raw_address.empty()) {
    command.insert(command.end(),
                   {"--raw-address", settings.raw_address, "--raw-bytes", std::to_string(settings.raw_bytes)});
  }
  if (!settings.journal.empty()) {
    command.insert(command.end(), {"--journal", settings.journal, "--journal-size",
                                   std::to_string(settings.journal_size), "--journal-memory", settings.journal_memory});
  }
  if (settings.keep) command.emplace_back("--keep");
  if (settings.least_rights) command.emplace_back("--least-rights");
  if (settings.beside_raw) command.emplace_back("--beside-raw");
  auto child = Child::Start(command);
  if (!child.ok()) return child.status();
  std::unique_ptr<ServerProcess> process(new ServerProcess(*std::move(child)));
  const auto line = process->child_->ReadLine();
  const json said = json::parse(line.value_or(""), nullptr, false);
  if (!said.is_object()) return Status(Code::kInternal, "the server's process ended before it was ready");
  if (said.contains("code")) return StatusOf(said);
  process->ready_ = {said.at("address"), said.value("raw_address", ""), said.at("durability"),
                     RawArea{said.value("area_offset", uint64_t{0}), said.value("area_bytes", uint64_t{0})},
                     said.at("pid")};
  return process;
}

Result<std::unique_ptr<ServerProcess>> ServerProcess::StartBeside(const std::string& program,
                                                                  const ServeSettings& settings) {
  cpu_set_t usable;
  const bool known = ::sched_getaffinity(0, sizeof(usable), &usable) == 0 && CPU_COUNT(&usable) > 1;
  if (known) {
    cpu_set_t others = usable;
    int first = 0;
    while (!CPU_ISSET(first, &others)) ++first;
    CPU_CLR(first, &others);
    (void)::sched_setaffinity(0, sizeof(others), &others);  // The server's process inherits it.
  }
  auto server = Start(program, settings);
  if (known) (void)::sched_setaffinity(0, sizeof(usable), &usable);
  StayOnOneProcessor(Side::kMeasuring);
  return server;
}

Status ServerProcess::Stop() {
  const Child::Ended ended = child_->Wait();
  if (ended.code == 0) return {};
  const json said = json::parse(ended.out, nullptr, false);
  if (said.is_object()) return StatusOf(said);
  return {Code::kInternal, fmt::format("the server's process ended with code {}", ended.code)};
}

}  // namespace erda::floors
