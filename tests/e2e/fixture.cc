#include "e2e/fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "base/random.h"
#include "paths.h"

namespace erda {

namespace {

// The journal is beside the pool. Where tests run, both may be in memory.
ServerOptions WithJournal(ServerOptions options) {
  options.journal = options.pool + ".journal";
  options.journal_size = (options.shards * 4ULL << 20) + 8192;
  options.journal_on_tmpfs = true;
  return options;
}

// A blank one, unless an earlier server left it.
ServerOptions WithFront(ServerOptions options) {
  options.journal_front = options.pool + ".front";
  if (std::filesystem::exists(options.journal_front)) return options;
  std::ofstream(options.journal_front, std::ios::binary) << std::string(options.shards * (512ULL << 10), '\0');
  return options;
}

ServerOptions OfKind(PoolKind kind, const ServerOptions& options) {
  if (kind == PoolKind::kJournaled) return WithJournal(options);
  if (kind == PoolKind::kFronted) return WithFront(WithJournal(options));
  return options;
}

}  // namespace

// --- Servers

TestServer::TestServer(PoolKind kind, const ServerOptions& options) {
  if (kind == PoolKind::kPowerSafe) {
    StartProcess(options);
  } else {
    auto server = Server::Open(OfKind(kind, options));
    if (!server.ok()) {
      ADD_FAILURE() << server.status().ToString();
      return;
    }
    server_ = *std::move(server);
    const Status started = server_->Start();
    EXPECT_TRUE(started.ok()) << started.ToString();
  }
  address_ = options.listen.front();
}

TestServer::~TestServer() {
  if (pid_ < 0) return;
  Signal(SIGKILL);
  waitpid(pid_, nullptr, 0);
}

constexpr std::array kFlushNames = {"auto", "server-flush", "read-after-write"};
constexpr std::array kAccessNames = {"owner", "group", "everybody"};
constexpr std::array kWritesNames = {"nobody", "same-user", "everybody"};

void TestServer::StartProcess(const ServerOptions& options) {
  const auto number = [](const char* name, uint64_t value) { return std::string(name) + "=" + std::to_string(value); };
  std::vector<std::string> words = {
      BinDir() + "/erda-server",
      "--pool=" + options.pool,
      number("--size", options.pool_size),
      number("--shards", options.shards),
      number("--region-size", options.region_size),
      number("--segment-size", options.segment_size),
      number("--index-entries", options.index_entries),
      number("--max-clients", options.max_clients),
      number("--slots-per-client", options.slots_per_client),
      number("--slot-bytes", options.slot_bytes),
      number("--reservations-per-client", options.reservations_per_client),
      number("--clients-per-token", options.clients_per_token),
      number("--requests-per-second", options.requests_per_second),
      number("--connects-per-second", options.connects_per_second),
      std::string("--flush=") + kFlushNames.at(static_cast<size_t>(options.flush)),
      std::string("--shm-access=") + kAccessNames.at(static_cast<size_t>(options.shm_access)),
      std::string("--pool-writes=") + kWritesNames.at(static_cast<size_t>(options.pool_writes)),
      number("--staging-bytes", options.staging_bytes),
  };
  for (const std::string& address : options.listen) words.push_back("--listen=" + address);
  if (!options.token_file.empty()) words.push_back("--token-file=" + options.token_file);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::string force = "PMEM_IS_PMEM_FORCE=1";  // libpmem reads it when it is loaded
  std::vector<char*> environment = {force.data()};
  for (char** variable = environ; *variable != nullptr; ++variable) environment.push_back(*variable);
  environment.push_back(nullptr);

  int out[2] = {-1, -1};
  ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  const int error = posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  if (error != 0) pid_ = -1;
  EXPECT_EQ(error, 0) << arguments[0];
  // It says one line when clients can connect, after one that a recovery has.
  std::string line;
  do {
    line.clear();
    for (char c = 0; read(out[0], &c, 1) == 1 && c != '\n';) line.push_back(c);
  } while (line.find("recovered in") != std::string::npos);
  EXPECT_NE(line.find("(power-safe)"), std::string::npos) << line;
  fcntl(out[0], F_SETFL, O_NONBLOCK);  // what it says later is not heard; the pipe has room for it
  close(out[0]);
}

void TestServer::Signal(int signal) const {
  if (pid_ <= 0) return;
  kill(pid_, signal);
  if (signal == SIGSTOP) waitpid(pid_, nullptr, WUNTRACED);  // until it has stopped
}

void TestServer::Stop() {
  if (server_) {
    const Status stopped = server_->Stop();
    EXPECT_TRUE(stopped.ok()) << stopped.ToString();
    server_.reset();
  }
  if (pid_ < 0) return;
  Signal(SIGTERM);
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// --- Tests

ServerOptions E2eTest::Options(PoolKind kind) const {
  ServerOptions options;
  options.pool = kind == PoolKind::kDram ? "dram:" : Path("pool");
  options.pool_size = 64 << 20;
  options.listen = {Address()};
  return options;
}

ClientOptions How::options() const {
  ClientOptions options;
  options.ack = ack;
  options.put_path = put_path;
  options.queue_depth = queue_depth;
  options.cache_entries = cache_entries;
  options.timeout = timeout;
  options.token = token;
  options.polling = polling;
  options.wait_for_room = wait_for_room;
  return options;
}

std::unique_ptr<Client> E2eTest::Connect(const How& how) const {
  auto client = Client::Connect(Address(), how.options());
  if (!client.ok()) throw std::runtime_error(client.status().ToString());
  return *std::move(client);
}

std::string PoolName(const testing::TestParamInfo<PoolKind>& kind) {
  constexpr const char* kNames[] = {"Dram", "File", "PowerSafe", "Journaled", "Fronted"};
  return kNames[static_cast<size_t>(kind.param)];
}

std::string Bytes(uint64_t seed, size_t size) {
  Random random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.Next());
  return bytes;
}

Info InfoOf(Client& client) {
  auto info = client.ServerInfo();
  EXPECT_TRUE(info.ok()) << info.status().ToString();
  return info.ok() ? Info(info->begin(), info->end()) : Info();
}

Counters CountersOf(Client& client) {
  Counters counters;
  const Info info = InfoOf(client);
  for (const char* name : {"puts_inline",    "puts_reserved",   "commits",      "deletes",      "reports",
                           "refused",        "violations",      "settled",      "taken_back",   "nvm_bytes_written",
                           "nvm_flushes",    "nvm_fences",      "clients",      "keys",         "index_slots",
                           "log_bytes_used", "log_bytes_total", "in_flight",    "sleeps",       "clean_bytes_copied",
                           "clean_moves",    "clean_regions",   "damaged_keys", "puts_delayed", "free_regions",
                           "log_bytes_live", "overdue",         "expired",      "puts_staged"}) {
    EXPECT_TRUE(info.contains(name)) << name;
    if (info.contains(name)) counters[name] = std::stoull(info.at(name));
  }
  return counters;
}

Counters SettledCountersOf(Client& client) {
  Counters counters;
  const bool settled = WaitUntil([&] {
    counters = CountersOf(client);
    return counters["in_flight"] == 0;
  });
  EXPECT_TRUE(settled);
  return counters;
}

void AtOnce(uint32_t count, const std::function<void(uint32_t)>& body) {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < count; ++i) threads.emplace_back([&, i] { body(i); });
  for (std::thread& thread : threads) thread.join();
}

bool WaitUntil(const std::function<bool()>& holds) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > limit) return holds();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void ExpectFails(const Status& status, Code code, std::string_view words) {
  EXPECT_EQ(status.code(), code) << status.ToString();
  EXPECT_NE(status.message().find(words), std::string_view::npos) << status.ToString() << " without " << words;
}

}  // namespace erda
