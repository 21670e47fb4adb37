// What `erda-bench soak` was asked to do, and what it stores.
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
  std::string pool;  // empty: a file in a folder of its own
  uint64_t pool_size = 64 << 20;
  uint64_t times = 20;  // the pool's size is written
  uint64_t live = 80;   // percent of the usable share
  uint32_t clients = 4;
  uint64_t seed = 1;
};

// `erda-bench soak`
CLI::App* AddSoak(CLI::App& app, Settings& settings);

// Each write of a key has a number, from 1 on. What it writes follows from key and number: one in 16 deletes, the
// others put a value of one of these sizes. Number 0 is a delete: the key is absent.
inline constexpr std::array<uint32_t, 8> kValueBytes = {16, 64, 100, 300, 500, 1024, 2000, 8000};
inline constexpr uint32_t kDeletesOneIn = 16;
[[nodiscard]] bool IsDelete(uint64_t record, uint64_t number);
// The place of its size in kValueBytes.
[[nodiscard]] size_t SizeClassOf(uint64_t record, uint64_t number);
// The log's bytes of a write.
[[nodiscard]] uint64_t SpaceOf(uint64_t record, uint64_t number);

// So many keys fill the pool as far as is wished. kInvalidArgument if there can be no such pool, or none for such
// values.
Result<uint64_t> KeysFor(const Settings& settings);

}  // namespace erda::soak
