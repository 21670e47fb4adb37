// The failures that a pool's medium survives, once a range was flushed and fenced. docs/guarantees.md has the table.
#pragma once

#include <cstdint>

namespace erda::format {

enum class Durability : uint8_t {  // On the wire: do not renumber.
  kVolatile = 0,                   // dram. Nothing outlives the server's process.
  kProcessSafe = 1,                // A file in the page cache. It survives the death of any process.
  kPowerSafe = 2,                  // DAX. It survives a power cut.
};

constexpr const char* DurabilityName(Durability durability) {
  switch (durability) {
    case Durability::kVolatile:
      return "volatile";
    case Durability::kProcessSafe:
      return "process-safe";
    case Durability::kPowerSafe:
      return "power-safe";
  }
  return "unknown";
}

// README, man pages, help, configuration file, stats and guarantees.md use the same words.
constexpr const char* DurabilityMeaning(Durability durability) {
  switch (durability) {
    case Durability::kVolatile:
      return "acknowledged puts are gone when the server ends";
    case Durability::kProcessSafe:
      return "acknowledged puts survive the death of any process, but not a power cut or a crash of the kernel";
    case Durability::kPowerSafe:
      return "acknowledged puts survive a power cut";
  }
  return "unknown";
}

}  // namespace erda::format
