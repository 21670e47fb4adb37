// What the tests of pools share: a directory of their own, and short words.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/temporary_folder.h"
#include "nvm/pool.h"

namespace erda::nvm {

class PoolTest : public testing::Test {
 protected:
  static constexpr uint64_t kPoolBytes = 1 << 20;

  [[nodiscard]] std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::string pool_path() const { return Path("pool"); }
  [[nodiscard]] bool Exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }
  // An ordinary file with these bytes.
  void WriteFile(const std::string& name, std::string_view bytes) const;

  const TemporaryFolder folder_;
};

// Opens what must open; null, and a failure of the test, if it does not.
std::unique_ptr<Pool> MustOpen(const std::string& path, uint64_t size, std::chrono::nanoseconds write_latency = {});
// Open fails with this code, and its message has this part and the path.
testing::AssertionResult Refuses(const PoolOptions& options, Code code, std::string_view part);

}  // namespace erda::nvm
