#include "sim/runner.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace erda::sim {

namespace {

// A run takes milliseconds. A run that takes this number of seconds will never end.
constexpr unsigned kSecondsPerRun = 60;
constexpr uint64_t kNone = UINT64_MAX;

// The workers share this memory. It is plain memory and outlives a worker that dies in the middle of a run.
struct WorkerState {
  std::atomic<uint64_t> at{kNone};  // the present run
  Facts facts;
};
struct Shared {
  std::atomic<uint64_t> next{0};
  std::atomic<uint64_t> failed{kNone};  // the lowest number of a failing run
};

template <class T>
T* MapShared(size_t count) {
  void* const memory = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory to share with the workers");
  T* const first = static_cast<T*>(memory);
  for (size_t i = 0; i < count; ++i) new (first + i) T();
  return first;
}

void NoteFailure(Shared& shared, uint64_t run) {
  uint64_t lowest = shared.failed;
  while (run < lowest && !shared.failed.compare_exchange_weak(lowest, run)) {
  }
}

// Forks. The child dies with its parent.
pid_t Fork() {
  fflush(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot start another process");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
  }
  return child;
}

// Waits for the process. Returns a text about its end, or nothing if it ended without a fault.
std::string Ending(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (!WIFSIGNALED(status)) return "its process ended with status " + std::to_string(WEXITSTATUS(status));
  if (WTERMSIG(status) == SIGALRM) return "it did not end within " + std::to_string(kSecondsPerRun) + " s";
  return "its process was ended by signal " + std::to_string(WTERMSIG(status));
}

void Work(uint64_t count, const std::function<Plan(uint64_t)>& plan_of, const RunnerOptions& options, Shared& shared,
          WorkerState& state) {
  // Each run makes a new pool. These options keep the memory of the last one for it.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  for (;;) {
    if (options.until && std::chrono::steady_clock::now() >= *options.until) break;
    const uint64_t run = shared.next++;
    if (run >= count || run > shared.failed) break;
    state.at = run;
    alarm(kSecondsPerRun);
    const Outcome outcome = RunPlan(plan_of(run));
    const bool failed = !ProblemOf(outcome).empty();
    alarm(0);
    if (failed) {
      NoteFailure(shared, run);
    } else {
      state.facts += outcome.facts;
    }
    state.at = kNone;
  }
}

}  // namespace

RunnerResult RunAll(uint64_t count, const std::function<Plan(uint64_t)>& plan_of, const RunnerOptions& options) {
  auto* const shared = MapShared<Shared>(1);
  auto* const states = MapShared<WorkerState>(options.workers);
  std::vector<pid_t> workers;
  for (uint32_t i = 0; i < options.workers; ++i) {
    const pid_t worker = Fork();
    if (worker == 0) {
      Work(count, plan_of, options, *shared, states[i]);
      _exit(0);
    }
    workers.push_back(worker);
  }
  RunnerResult result;
  for (uint32_t i = 0; i < options.workers; ++i) {
    const bool well = Ending(workers[i]).empty();
    // The other workers go on up to the run at which this one died.
    if (!well && states[i].at != kNone) NoteFailure(*shared, states[i].at);
    if (!well && states[i].at == kNone) throw std::runtime_error("a worker ended for no reason");
    result.facts += states[i].facts;
  }
  if (shared->failed != kNone) result.failed = shared->failed;
  munmap(shared, sizeof(Shared));
  munmap(states, options.workers * sizeof(WorkerState));
  return result;
}

std::string RunApart(const Plan& plan) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("cannot make a pipe");
  const pid_t child = Fork();
  if (child == 0) {
    close(ends[0]);
    alarm(kSecondsPerRun);
    std::string problem = ProblemOf(RunPlan(plan));
    std::span<const char> left(problem);
    while (!left.empty()) {
      const ssize_t n = write(ends[1], left.data(), left.size());
      if (n <= 0) _exit(1);
      left = left.subspan(static_cast<size_t>(n));
    }
    _exit(0);
  }
  close(ends[1]);
  std::string problem;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) {
    problem.append(buffer, static_cast<size_t>(n));
  }
  close(ends[0]);
  const std::string ending = Ending(child);
  return problem.empty() ? ending : problem;
}

Plan Shrink(const Plan& plan) {
  Plan least = plan;
  // Lowers one number of the plan, by half and then by one, as long as the plan fails.
  const auto lower = [&least](uint32_t Plan::*field) {
    bool changed = false;
    for (uint32_t step = least.*field / 2; step > 0;) {
      Plan fewer = least;
      fewer.*field -= std::min(step, fewer.*field - 1);
      if (fewer.*field == least.*field || RunApart(fewer).empty()) {
        step /= 2;
        continue;
      }
      least = fewer;
      changed = true;
    }
    return changed;
  };
  for (int round = 0; round < 3; ++round) {
    const bool operations = lower(&Plan::operations);
    const bool clients = lower(&Plan::clients);
    const bool keys = lower(&Plan::keys);
    if (!operations && !clients && !keys) break;
  }
  return least;
}

}  // namespace erda::sim
