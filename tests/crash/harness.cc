#include "crash/harness.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.h"
#include "crash/judge.h"
#include "crash/machine.h"
#include "crash/worker.h"
#include "erda/client.h"
#include "programs/process.h"
#include "tools/shared/heartbeat.h"

namespace erda::crash {

namespace {

namespace fs = std::filesystem;
using Steady = std::chrono::steady_clock;

class Harness {
 public:
  explicit Harness(const HarnessSettings& settings)
      : settings_(settings),
        random_(settings.seed),
        judge_(KeysOf(settings.clients)),
        machine_(settings.machine, random_, [this](const char* what) { judge_.Note(what); }) {}

  // Returns a description of the loss, or nothing.
  std::string Run() {
    if (settings_.own_power) return RunOneLife();
    if (own_server()) {
      machine_.NewPool();
      machine_.Start();
    }
    const auto begin = Steady::now();
    const auto more = [&] {
      if (settings_.minutes == 0) return round_ < settings_.rounds;
      return Steady::now() - begin < std::chrono::minutes(settings_.minutes);
    };
    tools::Heartbeat heartbeat("erda-crash", "starting");
    while (more()) {
      ++round_;
      heartbeat.Tell(NameOfRound());
      folder_ = FolderOf(round_);
      fs::create_directories(folder_);
      own_server() ? Kills() : PowerCut();
      if (std::string lost = Check(); !lost.empty()) return lost;
      if (!settings_.keep) fs::remove_all(folder_);
    }
    if (machine_.runs()) machine_.End(SIGTERM);
    return "";
  }

  [[nodiscard]] std::string Summary() const {
    const Machine::Counts& counts = machine_.counts();
    std::string server =
        own_server() ? fmt::format("the server {} times, and {} times stopped cleanly; {} recoveries, {} pools",
                                   counts.kills, counts.clean_stops, counts.recoveries, counts.pools)
                     : fmt::format("the {} power {} times", settings_.own_power ? "clients'" : "server's", power_cuts_);
    if (machine_.has_journal()) server += fmt::format("; the image was lost {} times", counts.lost_images);
    return fmt::format("seed {}: {} rounds, {} operations, {} acknowledged; killed: {} clients, {}", settings_.seed,
                       round_, operations_, acknowledged_, clients_killed_, server);
  }

 private:
  struct Worker {
    std::unique_ptr<Process> process;
    uint32_t place = 0;
    uint32_t number = 0;
    int signal = 0;  // the signal that the harness sent, or 0
  };

  [[nodiscard]] bool own_server() const { return !settings_.machine.server.empty(); }

  [[nodiscard]] std::string NameOfRound() const {
    return settings_.minutes == 0 ? fmt::format("round {} of {}", round_, settings_.rounds)
                                  : fmt::format("round {}, for {} minutes", round_, settings_.minutes);
  }

  // The power cut at the end of each round ends this program, and only the round's folder outlives it. So each life
  // judges all earlier rounds, the last of them for the first time. Then it begins another round.
  std::string RunOneLife() {
    for (round_ = 1; fs::exists(FolderOf(round_)); ++round_) {
      folder_ = FolderOf(round_);
      ++power_cuts_;
      if (std::string lost = Check(); !lost.empty()) return lost;
    }
    if (round_ > settings_.rounds) {
      --round_;
      return "";
    }
    tools::Heartbeat heartbeat("erda-crash", NameOfRound());
    random_ = Random(settings_.seed + round_);
    last_number_ = static_cast<uint32_t>(round_) * 1000;  // no two lives use the same client number
    folder_ = FolderOf(round_);
    fs::create_directories(folder_);
    static_cast<void>(AwaitServerId());
    for (uint32_t place = 0; place < settings_.clients; ++place) StartWorker(place);
    Progress(0.05, 0.4);
    SayThatPowerMayBeCut();
    std::this_thread::sleep_for(kPatience);
    throw Trouble("the power was not cut");
  }

  // --- The clients

  [[nodiscard]] std::vector<std::string> WorkerCommand(const char* command, const std::string& records) {
    return {"/proc/self/exe", command,
            "--address",      settings_.machine.address,
            "--records",      records,
            "--number",       std::to_string(++last_number_),
            "--clients",      std::to_string(settings_.clients),
            "--seed",         std::to_string(random_.Next())};
  }

  void StartWorker(uint32_t place) {
    auto command = WorkerCommand("client", folder_ / fmt::format("client-{}", last_number_ + 1));
    command.insert(command.end(), {"--place", std::to_string(place)});
    if (own_server()) {
      command.insert(command.end(), {"--operations", std::to_string(settings_.operations)});
    } else {
      command.insert(command.end(), {"--operations", "1000000000"});  // the worker runs until the power is cut
      if (!life_.empty()) command.insert(command.end(), {"--life", life_});
    }
    workers_.push_back({std::make_unique<Process>(command), place, last_number_});
  }

  void EndWorker(Worker& worker, int signal) {
    if (!worker.process->Running()) return;
    if (signal == SIGKILL) judge_.Note(fmt::format("client {} is killed", worker.number));
    worker.process->Signal(signal);
    worker.signal = signal;
    if (signal == SIGKILL) ++clients_killed_;
  }

  // Kills a worker. Another one takes its place and its keys.
  void ReplaceWorker() {
    Worker& worker = workers_[random_.Uniform(workers_.size())];
    if (!worker.process->Running()) return;
    EndWorker(worker, SIGKILL);
    worker.process->Wait(kPatience);
    StartWorker(worker.place);
  }

  [[nodiscard]] bool AnyRuns() {
    bool any = false;
    for (const Worker& worker : workers_) any |= worker.process->Running();
    return any;
  }

  [[nodiscard]] uint64_t RecordedBytes() const {
    uint64_t bytes = 0;
    for (const auto& file : fs::directory_iterator(folder_)) bytes += file.file_size();
    return bytes;
  }

  // Waits until the clients have done about this share of a round's operations, or all of their operations.
  void Progress(double least, double most) {
    constexpr double kBytesPerOperation = 80;
    const double share = least + (most - least) * static_cast<double>(random_.Uniform(1000)) / 1000;
    const double enough =
        static_cast<double>(RecordedBytes()) + share * kBytesPerOperation * static_cast<double>(settings_.operations);
    if (!WaitUntil([&] { return static_cast<double>(RecordedBytes()) >= enough || !AnyRuns(); }, kPatience)) {
      throw Trouble("the clients do not get on");
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random_.Uniform(3000)));
  }

  // --- Rounds

  void Kills() {
    death_ = Death::kProcess;
    workers_.clear();
    for (uint32_t place = 0; place < settings_.clients; ++place) StartWorker(place);
    for (uint64_t faults = random_.Uniform(4); faults > 0; --faults) {
      Progress(0.01, 0.25);
      const uint64_t kind = random_.Uniform(3);
      if (kind <= 1) {
        machine_.End(SIGKILL);
        machine_.Restart();
      }
      if (kind >= 1) ReplaceWorker();
    }
    Progress(0.05, 0.5);
    const bool server_first = random_.Chance(0.5);
    if (server_first) machine_.End(random_.Chance(0.9) ? SIGKILL : SIGTERM);
    for (Worker& worker : workers_) EndWorker(worker, random_.Chance(0.5) ? SIGKILL : SIGTERM);
    if (!server_first && random_.Chance(0.3)) machine_.End(SIGKILL);  // some workers are still ending
    AwaitWorkers();
    if (machine_.runs()) machine_.End(random_.Chance(0.8) ? SIGKILL : SIGTERM);
    // No client lives on: each has the image mapped, and a machine that loses its memory loses its clients, too.
    if (machine_.has_journal() && random_.Chance(0.5)) {
      if (machine_.RestartWithoutMemory()) death_ = Death::kPower;
    } else {
      machine_.Restart();
    }
  }

  void PowerCut() {
    death_ = Death::kPower;
    life_ = AwaitServerId();
    workers_.clear();
    for (uint32_t place = 0; place < settings_.clients; ++place) StartWorker(place);
    for (uint64_t kills = random_.Uniform(3); kills > 0; --kills) {
      Progress(0.01, 0.2);
      ReplaceWorker();
    }
    Progress(0.05, 0.4);
    SayThatPowerMayBeCut();
    AwaitWorkers();
    judge_.Note("all clients have ended; the power was cut before");
    if (!WaitUntil([&] { return AwaitServerId() != life_; }, kPatience)) throw Trouble("the power was not cut");
    ++power_cuts_;
  }

  void SayThatPowerMayBeCut() const {
    fmt::print("round {}: the power may be cut now\n", round_);  // tools/crash-test has the lab wait for this line
    std::fflush(stdout);
  }

  void AwaitWorkers() {
    for (Worker& worker : workers_) {
      if (!WaitUntil([&] { return !worker.process->Running(); }, kPatience)) throw Trouble("a client does not end");
      const Ended ended = worker.process->Wait();
      // SIGTERM may come before the worker has a handler for it.
      if (ended.code != 0 && ended.code != 128 + worker.signal) {
        throw Trouble(fmt::format("a client ended with {}: {}", ended.code, ended.err));
      }
    }
  }

  [[nodiscard]] fs::path FolderOf(uint64_t round) const {
    return fs::path(settings_.folder) / fmt::format("round-{}", round);
  }

  [[nodiscard]] std::string AwaitServerId() const {
    std::string id;
    WaitUntil(
        [&] {
          auto client = Client::Connect(settings_.machine.address);
          if (client.ok()) id = ServerId(**client);
          return !id.empty();
        },
        kPatience);
    if (id.empty()) throw Trouble("no server answers at " + settings_.machine.address);
    return id;
  }

  // --- The judgement

  std::string Check() {
    std::vector<Operation> done;
    std::vector<Operation> reads;
    size_t clients = 0;
    for (const auto& file : fs::directory_iterator(folder_)) {
      if (!file.path().filename().string().starts_with("client-")) continue;
      Append(file.path(), &done);
      ++clients;
    }
    const std::string records = folder_ / "reads";
    if (!fs::exists(records)) {
      Process reader(WorkerCommand("read", records));
      if (!WaitUntil([&] { return !reader.Running(); }, kPatience) || reader.Wait().code != 0) {
        throw Trouble("the values that are left cannot be read: " + reader.err());
      }
    }
    Append(records, &reads);
    if (settings_.own_power) PutBehind(done, &reads);

    bool full = false;
    uint64_t acknowledged = 0;
    for (const Operation& o : done) {
      full |= o.code == Code::kResourceExhausted;
      acknowledged += o.code == Code::kOk || o.code == Code::kNotFound ? 1 : 0;
    }
    operations_ += done.size();
    acknowledged_ += acknowledged;
    fmt::print(
        "round {}: {} operations, {} acknowledged, {} clients of which {} were killed{}\n", round_, done.size(),
        acknowledged, clients,
        std::count_if(workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.signal == SIGKILL; }),
        full ? "; the pool is full" : "");
    for (const std::string& report : machine_.TakeReports()) fmt::print("  server: {}\n", report);
    std::fflush(stdout);
    std::string lost = judge_.Check(done, reads, death_);
    if (lost.empty() && full && own_server()) {
      machine_.End(SIGTERM);
      machine_.NewPool();
      machine_.Start();
      judge_ = Judge(KeysOf(settings_.clients));
    }
    return lost;
  }

  // The machine's clock began at zero again between the operations and the reads. Moves the reads after the operations.
  static void PutBehind(const std::vector<Operation>& done, std::vector<Operation>* reads) {
    uint64_t last = 0;
    for (const Operation& o : done) last = std::max({last, o.begin, o.end == sim::Record::kNever ? 0 : o.end});
    for (Operation& o : *reads) {
      o.begin += last + 1;
      if (o.end != sim::Record::kNever) o.end += last + 1;
    }
  }

  static void Append(const fs::path& path, std::vector<Operation>* operations) {
    const auto records = ReadRecords(path);
    if (!records.ok()) throw Trouble(records.status().ToString());
    operations->insert(operations->end(), records->begin(), records->end());
  }

  const HarnessSettings settings_;
  Random random_;
  Judge judge_;
  Machine machine_;
  Death death_ = Death::kProcess;  // what the judge of this round allows for
  std::string life_;               // the server_id of the server whose power will be cut
  std::vector<Worker> workers_;    // of this round
  fs::path folder_;                // of this round
  uint32_t last_number_ = 0;
  uint64_t round_ = 0;
  uint64_t operations_ = 0;
  uint64_t acknowledged_ = 0;
  uint64_t clients_killed_ = 0;
  uint64_t power_cuts_ = 0;
};

}  // namespace

int Run(const HarnessSettings& settings) {
  fmt::print("seed {}\n", settings.seed);
  Harness harness(settings);
  int code = 0;
  try {
    if (const std::string lost = harness.Run(); !lost.empty()) {
      fmt::print("LOST in the last round. {}", lost);
      code = 1;
    }
  } catch (const std::exception& trouble) {  // std::filesystem also throws
    fmt::print("{}\n", trouble.what());
    code = 3;
  }
  fmt::print("{}\n", harness.Summary());
  constexpr const char* kVerdicts[] = {"nothing was lost", "SOMETHING WAS LOST", "", "NOT FINISHED"};
  fmt::print("verdict: {}\n", kVerdicts[code]);
  return code;
}

}  // namespace erda::crash
