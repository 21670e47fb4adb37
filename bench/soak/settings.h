// Settings of `erda-bench soak`, and the contents of its store.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "erda/status.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace erda::soak {

struct Settings {
  std::string pool;  // Empty: a file in a temporary folder.
  uint64_t pool_size = 64 << 20;
  uint64_t times = 20;  // The number of times that the pool's size is written.
  uint64_t live = 80;   // Percent of the usable share.
  uint32_t clients = 4;
  uint64_t seed = 1;
};

// Adds the subcommand `erda-bench soak`.
CLI::App* AddSoak(CLI::App& app, Settings& settings);

// Each write of a key has a number, from 1 on. The write follows from key and number: one in 16 is a delete, and the
// others put a value of one of these sizes. Number 0 is a delete: the key is absent.
inline constexpr std::array<uint32_t, 8> kValueBytes = {16, 64, 100, 300, 500, 1024, 2000, 8000};
inline constexpr uint32_t kDeletesOneIn = 16;
[[nodiscard]] bool IsDelete(uint64_t record, uint64_t number);
// Returns the index of the write's size in kValueBytes.
[[nodiscard]] size_t SizeClassOf(uint64_t record, uint64_t number);
// Returns the log's bytes of a write.
[[nodiscard]] uint64_t SpaceOf(uint64_t record, uint64_t number);

// Returns the number of keys that fill the pool as far as wished. Returns kInvalidArgument if there can be no such
// pool, or none for such values.
Result<uint64_t> KeysFor(const Settings& settings);

}  // namespace erda::soak
