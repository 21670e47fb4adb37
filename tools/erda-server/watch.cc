#include "tools/erda-server/watch.h"

#include <fmt/core.h>

#include <algorithm>

namespace erda::tools {

std::optional<int> FillWatch::Look(int percent, bool refuses) {
  int reached = 0;
  int held = 0;  // The highest level that was reported, and that the pool is not kSlack below.
  for (const int level : kLevels) {
    if (percent >= level) reached = level;
    if (level <= told_ && percent > level - kSlack) held = level;
  }
  told_ = std::max(reached, held);
  if (refuses) {
    const bool is_news = !full_;
    full_ = percent;
    return is_news ? std::optional(kFull) : std::nullopt;
  }
  if (full_ && percent <= *full_ - kSlack) full_.reset();
  return reached > held ? std::optional(reached) : std::nullopt;
}

int PercentLive(const ServerStats& stats) {
  if (stats.log_bytes_total == 0) return 0;
  // Until all keys are counted after a start, log_bytes_live is too low.
  const uint64_t live = std::min(stats.log_bytes_live, stats.log_bytes_total);
  return static_cast<int>(live * 100 / stats.log_bytes_total);
}

uint64_t PutsExhausted(const Activity& activity) {
  constexpr std::array<std::string_view, 4> kPuts = {"put_inline", "put_staged", "reserve", "increment"};
  uint64_t count = 0;
  for (const OperationStats& operation : activity.operations) {
    if (std::find(kPuts.begin(), kPuts.end(), operation.kind) == kPuts.end()) continue;
    count += operation.outcomes[static_cast<size_t>(Code::kResourceExhausted)];
  }
  return count;
}

std::optional<std::string> DamageWatch::Tell(std::string_view key) {
  const std::scoped_lock lock(mutex_);
  if (told_.size() > kKeysMax || !told_.emplace(key).second) return std::nullopt;
  if (told_.size() > kKeysMax) {
    return fmt::format("more than {} keys are damaged, and the log names no more of them; erda-pool check lists them",
                       kKeysMax);
  }
  if (key.empty()) {
    return "a value or an index entry is damaged, and its key cannot be read. Stop the server and run erda-pool check";
  }
  return fmt::format("the stored value of key {} is damaged; only a new put repairs it", key);
}

}  // namespace erda::tools
