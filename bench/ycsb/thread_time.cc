#include "bench/ycsb/thread_time.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace erda::bench {

namespace {

// Exact if the kernel keeps exact times; otherwise in its ticks.
double SecondsOf(const std::filesystem::path& task) {
  std::ifstream exact(task / "schedstat");
  uint64_t ns = 0;
  if (exact >> ns) return static_cast<double>(ns) / 1e9;
  std::ifstream stat(task / "stat");
  std::string text;
  std::getline(stat, text);
  // The name, in brackets, may contain any character. After it come the state and ten numbers, then the two that count.
  constexpr int kFieldsBetween = 11;
  size_t at = text.rfind(')');
  for (int i = 0; i <= kFieldsBetween && at != std::string::npos; ++i) at = text.find(' ', at + 1);
  if (at == std::string::npos) return 0;
  size_t used = 0;
  const uint64_t user = std::stoull(text.substr(at), &used);
  const uint64_t system = std::stoull(text.substr(at + used));
  return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

double ThreadSeconds(int pid, std::string_view name_begin) {
  double seconds = 0;
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", ignored)) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name.starts_with(name_begin)) seconds += SecondsOf(task.path());
  }
  return seconds;
}

}  // namespace erda::bench
