// What erda-server tells in its log without being asked: that its pool fills, and damage, each once.
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

// Follows how full a pool is. A level is told when it is reached, and again only after the pool was kSlack percent
// below it. The last level, kFull, is reached when puts are refused: values do not fill segments to their ends, so that
// it depends on their sizes how much fits.
class FillWatch {
 public:
  static constexpr std::array kLevels = {85, 95};
  static constexpr int kFull = 100;
  static constexpr int kSlack = 5;

  // percent: of the log, what live values take. Returns the level that was reached since the last call, the highest of
  // several.
  [[nodiscard]] std::optional<int> Look(int percent, bool refuses);

 private:
  int told_ = 0;             // the highest of kLevels that counts as told; 0: none
  std::optional<int> full_;  // kFull counts as told: how many percent it was then
};

// How many percent of the log live values take. Dead space counts as free, since cleaning gives it back.
[[nodiscard]] int PercentLive(const ServerStats& stats);

// How many puts the server refused, since there was no room for them.
[[nodiscard]] uint64_t PutsExhausted(const Activity& activity);

// Remembers damaged keys, so that each is told once, however often the scrubber comes by. From any thread.
class DamageWatch {
 public:
  // More keys than these are counted, and not told one by one: the log is not the place for a list of them.
  static constexpr size_t kKeysMax = 1000;

  // What there is to log of a damaged key; nothing if it was told. key: empty if it cannot be known any more.
  [[nodiscard]] std::optional<std::string> Tell(std::string_view key);

 private:
  std::mutex mutex_;
  std::unordered_set<std::string> told_;
};

}  // namespace erda::tools
