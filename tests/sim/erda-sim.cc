// erda-sim runs simulations on all processors, each from a seed, until one fails. It reduces the failing run to a small
// one, and prints that with the command that repeats it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <thread>

#include "base/planted.h"
#include "sim/runner.h"

namespace {

using namespace erda::sim;

struct Arguments {
  uint64_t seeds = 1000;
  uint64_t seed = 0;
  double minutes = 0;
  std::string plan;
  std::string list;
  std::string flaw;
  std::string planted_seeds;
  bool planted = false;
  uint32_t operations = 0;
  uint32_t clients = 0;
  uint32_t keys = 0;
  uint32_t workers = std::max(1U, std::thread::hardware_concurrency());
};

struct Job {
  Kind kind;
  uint64_t seed;
};

Plan PlanOf(const Job& job, const Arguments& arguments) {
  Plan plan = Plan::Of(job.kind, job.seed);
  if (arguments.operations != 0) plan.operations = arguments.operations;
  if (arguments.clients != 0) plan.clients = arguments.clients;
  if (arguments.keys != 0) plan.keys = arguments.keys;
  // The check of written bytes would find most defects. Here the other checks must find them by their effect on users.
  if (arguments.planted || !arguments.flaw.empty()) plan.check_bytes = false;
  return plan;
}

void PrintFacts(const Facts& facts, double seconds) {
  for (size_t i = 0; i < kFactNames.size(); ++i) fmt::print("{:>14} {}\n", facts.counts.at(i), kFactNames.at(i));
  fmt::print("{:>14.1f} seconds, {:.0f} runs per second\n", seconds,
             static_cast<double>(facts[Fact::kRuns]) / std::max(seconds, 0.001));
}

std::string CommandFor(const Plan& plan, const Plan& original) {
  std::string command = fmt::format("tools/sim --plan {} --seed {}", NameOf(plan.kind), plan.seed);
  if (plan.operations != original.operations) command += fmt::format(" --operations {}", plan.operations);
  if (plan.clients != original.clients) command += fmt::format(" --clients {}", plan.clients);
  if (plan.keys != original.keys) command += fmt::format(" --keys {}", plan.keys);
  if (erda::planted_flaw != erda::Flaw::kNone) {
    command += fmt::format(" --flaw {}", erda::kFlawNames[static_cast<size_t>(erda::planted_flaw)]);
  }
  return command;
}

void Explain(const Plan& failed) {
  fmt::print("FAILED: {}\n", failed.ToText());
  const Plan original = Plan::Of(failed.kind, failed.seed);
  const std::string problem = RunApart(failed);
  if (problem.empty()) {
    fmt::print("It went well when it was run again: something in it does not follow from the seed alone.\n");
    return;
  }
  fmt::print("{}\n", problem);
  std::fflush(stdout);  // reducing the run may take long
  const Plan least = Shrink(failed);
  fmt::print("made small: {}\n{}\nrepeat it:        {}\nfor tests/regression/seeds: {} {}\n", least.ToText(),
             RunApart(least), CommandFor(least, original), NameOf(failed.kind), failed.seed);
}

// Reads lines with a kind and a seed. # begins a comment.
std::vector<Job> ReadList(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw CLI::FileError::Missing(path);
  std::vector<Job> jobs;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string kind;
    uint64_t seed = 0;
    if (!(words >> kind)) continue;
    if (!(words >> seed) || !KindNamed(kind)) throw CLI::ValidationError(path, "not a kind and a seed: " + line);
    jobs.push_back({*KindNamed(kind), seed});
  }
  return jobs;
}

bool RunJobs(uint64_t count, const std::function<Job(uint64_t)>& job_of, const Arguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  RunnerOptions options;
  options.workers = arguments.workers;
  if (arguments.minutes > 0) {
    options.until = start + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                std::chrono::duration<double>(arguments.minutes * 60));
  }
  const auto plan_of = [&](uint64_t run) { return PlanOf(job_of(run), arguments); };
  const RunnerResult result = RunAll(count, plan_of, options);
  PrintFacts(result.facts, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  if (result.failed) Explain(plan_of(*result.failed));
  return !result.failed;
}

// Returns the kind of runs that shows the defect, if other kinds hardly show it.
std::optional<Kind> KindFor(erda::Flaw flaw) {
  if (flaw >= erda::Flaw::kMovesUnsettled && flaw <= erda::Flaw::kSameGeneration) return Kind::kCleaning;
  if (flaw >= erda::Flaw::kExpiryIgnored && flaw <= erda::Flaw::kExpiresInFlight) return Kind::kExpiry;
  if (flaw >= erda::Flaw::kReturnsExpired && flaw <= erda::Flaw::kTrustsOwnClock) return Kind::kExpiry;
  if (flaw == erda::Flaw::kReachNotFlushed || flaw == erda::Flaw::kReachToldLate) return Kind::kMoves;
  if (flaw == erda::Flaw::kReachForgotten || flaw == erda::Flaw::kReachNotSeen) return Kind::kMoves;
  if (flaw >= erda::Flaw::kSplitNotFlushed && flaw <= erda::Flaw::kKeepsLeftOver) return Kind::kGrowth;
  if (flaw >= erda::Flaw::kAppliesUnfenced && flaw <= erda::Flaw::kZeroesUnfenced) return Kind::kMirror;
  if (flaw >= erda::Flaw::kSettledBeforeHeld && flaw <= erda::Flaw::kZeroesNotTaken) return Kind::kJournal;
  if (flaw == erda::Flaw::kTrustsChunks) return Kind::kForgeries;
  if (flaw == erda::Flaw::kFlipNotUndone || flaw == erda::Flaw::kRestNotMended) return Kind::kDecay;
  if (flaw == erda::Flaw::kSplitNotSeen) return Kind::kGrowth;
  if (flaw == erda::Flaw::kReadsInOrder) return Kind::kScans;
  if (flaw >= erda::Flaw::kBlockNotConfirmed && flaw <= erda::Flaw::kScanForgetsChanged) return Kind::kScans;
  if (flaw == erda::Flaw::kFollowsCondition) return Kind::kConditions;
  if (flaw >= erda::Flaw::kConditionNotAwaited && flaw <= erda::Flaw::kJudgesUnpublished) return Kind::kConditions;
  if (flaw >= erda::Flaw::kCommitAfterDelete && flaw <= erda::Flaw::kFreeNotFlushed) return Kind::kDeletes;
  return std::nullopt;
}

// Reads lines with a defect and a seed that has found it. # begins a comment.
std::map<std::string, uint64_t> ReadPlantedSeeds(const std::string& path) {
  std::map<std::string, uint64_t> seeds;
  if (path.empty()) return seeds;
  std::ifstream file(path);
  if (!file) throw CLI::FileError::Missing(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string flaw;
    uint64_t seed = 0;
    if (!(words >> flaw)) continue;
    if (!(words >> seed) || seed == 0) throw CLI::ValidationError(path, "not a defect and a seed: " + line);
    seeds[flaw] = seed;
  }
  return seeds;
}

// Some seed must find each planted defect: the known one, or one from 1 on. Without a defect, the same seeds must find
// nothing.
bool RunPlanted(const Arguments& arguments) {
  constexpr uint64_t kSeedsAtMost = 5000;
  const std::map<std::string, uint64_t> known = ReadPlantedSeeds(arguments.planted_seeds);
  const RunnerOptions options{.workers = arguments.workers, .until = {}};
  const auto start = std::chrono::steady_clock::now();
  std::vector<Job> finders;
  constexpr auto kFlaws = static_cast<uint64_t>(erda::Flaw::kCount);
  for (uint64_t i = 1; i < kFlaws; ++i) {
    const std::string name = erda::kFlawNames[i];
    erda::planted_flaw = static_cast<erda::Flaw>(i);
    const std::optional<Kind> kind = KindFor(erda::planted_flaw);
    const auto job_of = [&](uint64_t seed) { return Job{kind.value_or(KindOf(seed)), seed}; };
    std::optional<uint64_t> seed;
    if (const auto line = known.find(name); line != known.end()) {
      const auto plan_of = [&](uint64_t /*run*/) { return PlanOf(job_of(line->second), arguments); };
      if (RunAll(1, plan_of, options).failed) seed = line->second;
    }
    if (!seed) {
      const auto plan_of = [&](uint64_t run) { return PlanOf(job_of(run + 1), arguments); };
      const RunnerResult result = RunAll(kSeedsAtMost, plan_of, options);
      if (result.failed) seed = *result.failed + 1;
      if (seed && known.contains(name)) fmt::print("its line in {} has another seed:\n", arguments.planted_seeds);
    }
    if (!seed) {
      fmt::print("{:<24} NOT FOUND by {} seeds\n", name, kSeedsAtMost);
      continue;
    }
    finders.push_back(job_of(*seed));
    const std::string problem = RunApart(PlanOf(finders.back(), arguments));
    fmt::print("{:<24} {:>5}  # {}: {}\n", name, *seed, NameOf(finders.back().kind),
               problem.substr(0, problem.find_first_of(";\n")));
  }
  erda::planted_flaw = erda::Flaw::kNone;
  const auto plan_of = [&](uint64_t run) { return PlanOf(finders.at(run), arguments); };
  const RunnerResult control = RunAll(finders.size(), plan_of, options);
  fmt::print("without a defect: {} of {} seeds went well\n", control.facts[Fact::kRuns], finders.size());
  if (control.failed) Explain(plan_of(*control.failed));
  fmt::print("{} of {} planted defects found, {:.1f} s\n", finders.size(), kFlaws - 1,
             std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return finders.size() == kFlaws - 1 && !control.failed;
}

int Run(const Arguments& arguments, bool one_seed) {
  if (arguments.planted) return RunPlanted(arguments) ? 0 : 1;
  if (!arguments.list.empty()) {
    const std::vector<Job> jobs = ReadList(arguments.list);
    fmt::print("{} seeds of {}\n", jobs.size(), arguments.list);
    const auto job_of = [&](uint64_t run) { return jobs.at(run); };
    return RunJobs(jobs.size(), job_of, arguments) ? 0 : 1;
  }
  const uint64_t count = one_seed ? 1 : arguments.minutes > 0 ? UINT64_MAX : arguments.seeds;
  const auto job_of = [&](uint64_t run) {
    const uint64_t seed = arguments.seed + run;
    return Job{arguments.plan.empty() ? KindOf(seed) : *KindNamed(arguments.plan), seed};
  };
  fmt::print("the first seed is {}\n", arguments.seed);
  return RunJobs(count, job_of, arguments) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Simulates servers and clients of Erda with every fault at once, and checks what they answered.");
  Arguments arguments;
  auto* const seeds = app.add_option("--seeds", arguments.seeds, "How many runs")->capture_default_str();
  auto* const seed = app.add_option("--seed", arguments.seed, "The first seed; alone: this one only");
  auto* const minutes =
      app.add_option("--minutes", arguments.minutes, "Run so long instead")->check(CLI::PositiveNumber);
  const std::vector<std::string> kinds(kKindNames.begin(), kKindNames.end());
  app.add_option("--plan", arguments.plan, "One kind of plan, instead of the kind that the seed says")
      ->check(CLI::IsMember(kinds));
  app.add_option("--list", arguments.list, "Run the seeds of a file, lines of a kind and a seed")->excludes(seeds);
  auto* const planted = app.add_flag("--planted", arguments.planted, "Check that each planted defect is found")
                            ->excludes(seed)
                            ->excludes(seeds);
  app.add_option("--planted-seeds", arguments.planted_seeds,
                 "Try the seeds of a file first, lines of a defect and a seed")
      ->needs(planted);
  const std::vector<std::string> flaws(std::begin(erda::kFlawNames), std::end(erda::kFlawNames));
  app.add_option("--flaw", arguments.flaw, "Plant this defect")->check(CLI::IsMember(flaws));
  app.add_option("--operations", arguments.operations, "Operations of each run");
  app.add_option("--clients", arguments.clients, "Clients of each run");
  app.add_option("--keys", arguments.keys, "Keys of each run");
  app.add_option("--workers", arguments.workers, "Processes at once")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  CLI11_PARSE(app, argc, argv);
  const bool one_seed = seed->count() > 0 && seeds->count() == 0 && minutes->count() == 0;
  if (seed->count() == 0) arguments.seed = std::random_device()();
  const auto flaw = std::find(flaws.begin(), flaws.end(), arguments.flaw);
  if (flaw != flaws.end()) erda::planted_flaw = static_cast<erda::Flaw>(flaw - flaws.begin());
  setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    return Run(arguments, one_seed);
  } catch (const std::exception& error) {
    fmt::print(stderr, "erda-sim: {}\n", error.what());
    return 2;
  }
}
