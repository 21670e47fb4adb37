// The failures that a pool's medium survives, once a range was flushed and fenced. docs/guarantees.md has the table.
#pragma once

#include <cstdint>

namespace erda::format {

enum class Durability : uint8_t {  // on the wire: do not renumber
  kVolatile = 0,                   // dram: nothing outlives the server's process
  kProcessSafe = 1,                // a file in the page cache: any process may die, the machine may not
  kPowerSafe = 2,                  // DAX: a power cut
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

// The same words wherever a user meets them: README, man pages, help, configuration file, stats, guarantees.md.
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
