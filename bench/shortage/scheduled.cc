#include "bench/shortage/scheduled.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "bench/ycsb/thread_time.h"

namespace erda::shortage {

Scheduled ScheduledOf(int pid) {
  Scheduled sum;
  sum.seconds = bench::ThreadSeconds(pid, "");
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", ignored)) {
    std::ifstream status(task.path() / "status");
    std::string word;
    while (status >> word) {
      if (word == "voluntary_ctxt_switches:" && status >> word) sum.sleeps += std::stoull(word);
      if (word == "nonvoluntary_ctxt_switches:" && status >> word) sum.preempted += std::stoull(word);
    }
  }
  return sum;
}

}  // namespace erda::shortage
