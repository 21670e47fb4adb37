#include "bench/shortage/measure.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "bench/floors/child.h"
#include "bench/floors/server_process.h"
#include "bench/floors/temporary_folder.h"
#include "bench/others/open_store.h"
#include "bench/shortage/board.h"
#include "bench/shortage/scheduled.h"
#include "bench/shortage/worker.h"
#include "bench/ycsb/workload.h"
#include "erda/client.h"

namespace erda::shortage {

namespace {

using nlohmann::json;
using Time = std::chrono::steady_clock;

// Time for the processes to come to their pace, before each measurement.
constexpr std::chrono::milliseconds kSettle{200};

struct Server {
  std::string name;
  std::string address;
  int pid = 0;
};

std::string_view NameOf(Polling polling) {
  switch (polling) {
    case Polling::kBusy:
      return "busy";
    case Polling::kSleep:
      return "sleep";
    default:
      return "adaptive";
  }
}

// The workers of one measurement. The destructor ends them.
class Workers {
 public:
  Workers(const Settings& settings, const Server& server, std::string program, std::string board_path)
      : settings_(settings), server_(server), program_(std::move(program)), board_path_(std::move(board_path)) {}
  ~Workers() {
    if (board_) board_->Stop();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  Status StartBusy(const Busy& busy) {
    auto board = Board::Create(board_path_);
    if (!board.ok()) return board.status();
    board_ = *std::move(board);
    for (uint64_t i = 0; i < busy.processes; ++i) {
      Status status = Start(busy.read ? "get" : "compute", i + 1, busy.pinned ? static_cast<int>(i) : -1);
      if (!status.ok()) return status;
    }
    return {};
  }
  // Requires: StartBusy was called.
  Status StartWriter() { return Start("put", 0, -1); }

  struct Sample {
    Time::time_point when;
    uint64_t updates = 0;
    uint64_t gets = 0;
    Scheduled writer;
    Scheduled busy;
    Scheduled server;
  };
  [[nodiscard]] Sample Now() const {
    Sample sample;
    for (const auto& [place, pid, child] : running_) {
      const Scheduled scheduled = ScheduledOf(pid);
      Scheduled& sum = place == 0 ? sample.writer : sample.busy;
      sum = {sum.seconds + scheduled.seconds, sum.sleeps + scheduled.sleeps, sum.preempted + scheduled.preempted};
      (place == 0 ? sample.updates : sample.gets) += board_->CountOf(place);
    }
    sample.server = ScheduledOf(server_.pid);
    sample.when = Time::now();
    return sample;
  }
  // Ends all. Returns what the last one that was started said at its end.
  Result<json> End() {
    board_->Stop();
    json last;
    Status failed;
    for (const auto& worker : running_) {
      const auto ended = worker.child->Wait();
      last = json::parse(ended.out, nullptr, false);
      if (ended.code != 0 && failed.ok()) failed = StatusOf(last);
    }
    running_.clear();
    if (!failed.ok()) return failed;
    return last;
  }

 private:
  struct Running {
    uint64_t place;
    int pid;
    std::unique_ptr<floors::Child> child;
  };

  static Status StatusOf(const json& said) {
    return {Code::kInternal, said.is_object() ? said.value("message", std::string("a worker failed"))
                                              : std::string("a worker ended without a word")};
  }
  Status Start(const std::string& kind, uint64_t place, int processor) {
    auto child = floors::Child::Start(
        {program_, kWorkCommand, "--kind", kind, "--address", server_.address, "--board", board_path_, "--place",
         std::to_string(place), "--polling", std::string(NameOf(settings_.polling)), "--value-bytes",
         std::to_string(settings_.value_bytes), "--per-second", std::to_string(settings_.updates_per_second),
         "--processor", std::to_string(processor)});
    if (!child.ok()) return child.status();
    const json said = json::parse((*child)->ReadLine().value_or(""), nullptr, false);
    if (!said.is_object() || !said.contains("pid")) return StatusOf(said);
    running_.push_back({place, said.at("pid"), *std::move(child)});
    return {};
  }

  const Settings& settings_;
  const Server& server_;
  const std::string program_;
  const std::string board_path_;
  std::unique_ptr<Board> board_;
  std::vector<Running> running_;
};

double Seconds(Time::duration time) { return std::chrono::duration<double>(time).count(); }

// One measurement: the busy processes alone, then with the writer.
Result<Line> MeasureOnce(const Settings& settings, const Server& server, const Busy& busy, const std::string& program,
                         const std::string& board_path) {
  Workers workers(settings, server, program, board_path);
  if (auto status = workers.StartBusy(busy); !status.ok()) return status;
  const auto measure = [&] {
    std::this_thread::sleep_for(kSettle);
    const auto before = workers.Now();
    std::this_thread::sleep_for(std::chrono::seconds(settings.seconds));
    return std::pair(before, workers.Now());
  };
  Line line;
  double busy_alone = 0;
  if (busy.processes > 0) {
    const auto [before, after] = measure();
    const double seconds = Seconds(after.when - before.when);
    busy_alone = (after.busy - before.busy).seconds / seconds;
    if (busy.read) line.gets_alone = static_cast<double>(after.gets - before.gets) / seconds;
  }
  if (auto status = workers.StartWriter(); !status.ok()) return status;
  const auto [before, after] = measure();
  const auto said = workers.End();
  if (!said.ok()) return said.status();
  const double seconds = Seconds(after.when - before.when);
  const auto updates = static_cast<double>(std::max<uint64_t>(after.updates - before.updates, 1));
  const Scheduled writer = after.writer - before.writer;
  const Scheduled served = after.server - before.server;
  line.updates = updates / seconds;
  line.p50_us = static_cast<double>(said->value("p50_ns", uint64_t{0})) / 1000;
  line.p99_us = static_cast<double>(said->value("p99_ns", uint64_t{0})) / 1000;
  if (busy.read) line.gets = static_cast<double>(after.gets - before.gets) / seconds;
  if (busy_alone > 0) line.busy_share = (after.busy - before.busy).seconds / seconds / busy_alone;
  line.writer_us = writer.seconds * 1e6 / updates;
  line.server_us = served.seconds * 1e6 / updates;
  line.writer_sleeps = static_cast<double>(writer.sleeps) / updates;
  line.server_sleeps = static_cast<double>(served.sleeps) / updates;
  line.preempted = static_cast<double>(writer.preempted + served.preempted) / updates;
  return line;
}

Status Load(const Settings& settings, const Server& server) {
  auto store = bench::OpenStore(server.address, {});
  if (!store.ok()) return store.status();
  const bench::Values values(settings.value_bytes);
  std::string value(settings.value_bytes, '\0');
  for (uint64_t i = 0; i < kKeys; ++i) {
    values.Fill(value, i, 0);
    if (auto put = (*store)->Put(bench::AsView(bench::KeyOf(i)), value); !put.ok()) return put;
  }
  return {};
}

Line MedianOf(const std::vector<Line>& lines) {
  Line median;
  for (double Line::*figure :
       {&Line::updates, &Line::p50_us, &Line::p99_us, &Line::gets, &Line::gets_alone, &Line::busy_share,
        &Line::writer_us, &Line::server_us, &Line::writer_sleeps, &Line::server_sleeps, &Line::preempted}) {
    std::vector<double> figures;
    figures.reserve(lines.size());
    for (const Line& line : lines) figures.push_back(line.*figure);
    std::ranges::sort(figures);
    median.*figure = (figures[(figures.size() - 1) / 2] + figures[figures.size() / 2]) / 2;
  }
  return median;
}

Server ServerOf(const std::string& text) {
  const size_t sign = text.rfind('=');
  return {text.substr(0, text.find(':')), text.substr(0, sign), std::stoi(text.substr(sign + 1))};
}

}  // namespace

Result<Report> Measure(const Settings& settings, const std::string& program) {
  const floors::TemporaryFolder folder;
  const auto serve = floors::ServeInDram(folder);
  if (!serve.ok()) return serve.status();
  auto own = floors::ServerProcess::Start(program, *serve);
  if (!own.ok()) return own.status();
  std::vector<Server> servers = {{"erda", (*own)->ready().address, (*own)->ready().pid}};
  for (const std::string& text : settings.also) servers.push_back(ServerOf(text));
  for (const Server& server : servers) {
    if (auto status = Load(settings, server); !status.ok()) return status;
  }
  const std::vector<Busy> busy = ParseBusy(settings.busy);
  std::vector<std::vector<Line>> measured(busy.size() * servers.size());
  for (uint64_t round = 0; round < settings.rounds; ++round) {
    for (size_t i = 0; i < measured.size(); ++i) {
      auto line = MeasureOnce(settings, servers[i % servers.size()], busy[i / servers.size()], program,
                              folder.path() + "/board");
      if (!line.ok()) return line.status();
      measured[i].push_back(*line);
    }
  }
  Report report;
  for (size_t i = 0; i < measured.size(); ++i) {
    Line line = MedianOf(measured[i]);
    line.server = servers[i % servers.size()].name;
    line.busy = settings.busy[i / servers.size()];
    report.lines.push_back(std::move(line));
  }
  const Status stopped = (*own)->Stop();
  return stopped.ok() ? Result<Report>(std::move(report)) : stopped;
}

}  // namespace erda::shortage
