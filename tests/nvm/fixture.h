// The fixture of the pools' tests: a separate directory, and short helpers.
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
  // Writes an ordinary file with these bytes.
  void WriteFile(const std::string& name, std::string_view bytes) const;

  const TemporaryFolder folder_;
};

// Opens a pool. If that fails, fails the test and returns null.
std::unique_ptr<Pool> MustOpen(const std::string& path, uint64_t size, std::chrono::nanoseconds write_latency = {});
// Checks that Open fails with this code, and that its message has this part and the path.
testing::AssertionResult Refuses(const PoolOptions& options, Code code, std::string_view part);

}  // namespace erda::nvm
