// Decides when erda-server logs that its pool fills, and which damaged keys it logs, each once.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "erda/server.h"

namespace erda::tools {

// Follows how full a pool is. It reports a level when the pool reaches it, and again only after the pool was kSlack
// percent below it. The pool reaches the last level, kFull, when the server refuses puts. Values do not fill segments
// to their ends, so that level depends on their sizes.
class FillWatch {
 public:
  static constexpr std::array kLevels = {85, 95};
  static constexpr int kFull = 100;
  static constexpr int kSlack = 5;

  // percent: the share of the log that live values take. Returns the highest level that the pool reached since the last
  // call.
  [[nodiscard]] std::optional<int> Look(int percent, bool refuses);

 private:
  int told_ = 0;             // The highest of kLevels that counts as reported; 0: none.
  std::optional<int> full_;  // Set if kFull counts as reported: the percentage at that time.
};

// Returns how many percent of the log live values take. Dead space counts as free, since cleaning gives it back.
[[nodiscard]] int PercentLive(const ServerStats& stats);

// Returns how many puts the server refused because they had no room.
[[nodiscard]] uint64_t PutsExhausted(const Activity& activity);

// Remembers damaged keys, so that the log names each once, however often the scrubber finds it. Call it from any
// thread.
class DamageWatch {
 public:
  // The log names at most this number of keys: it is not the place for a long list.
  static constexpr size_t kKeysMax = 1000;

  // Returns the line for the log, or nothing if the log has it already. key: empty if the key itself is lost.
  [[nodiscard]] std::optional<std::string> Tell(std::string_view key);

 private:
  std::mutex mutex_;
  std::unordered_set<std::string> told_;
};

}  // namespace erda::tools
