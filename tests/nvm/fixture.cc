#include "nvm/fixture.h"

#include <fstream>

namespace erda::nvm {

void PoolTest::WriteFile(const std::string& name, std::string_view bytes) const {
  std::ofstream file(folder_ / name, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  EXPECT_TRUE(file.flush());
}

std::unique_ptr<Pool> MustOpen(const std::string& path, uint64_t size, std::chrono::nanoseconds write_latency) {
  auto pool = Pool::Open({.path = path, .size = size, .write_latency = write_latency});
  EXPECT_TRUE(pool.ok()) << pool.status().ToString();
  return pool.ok() ? *std::move(pool) : nullptr;
}

testing::AssertionResult Refuses(const PoolOptions& options, Code code, std::string_view part) {
  const auto pool = Pool::Open(options);
  if (pool.ok()) return testing::AssertionFailure() << options.path << " was opened";
  const std::string_view message = pool.status().message();
  const bool names_both = message.find(options.path) != std::string_view::npos && message.find(part) != message.npos;
  if (pool.status().code() == code && names_both) return testing::AssertionSuccess();
  return testing::AssertionFailure() << pool.status().ToString();
}

}  // namespace erda::nvm
