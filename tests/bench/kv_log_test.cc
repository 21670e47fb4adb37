// The logs of kv-leveldb and kv-cuckoo.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/temporary_folder.h"
#include "bench/kv/log.h"
#include "nvm/pool.h"

namespace erda::kv {
namespace {

constexpr uint64_t kClients = 3;
constexpr uint64_t kFrontBytes = 16 << 10;

class KvLogTest : public testing::Test {
 protected:
  void SetUp() override {
    auto disk = pmr_bench::DurableFile::Create(folder_.path().string(), kClients * pmr_bench::kFileBytes);
    ASSERT_TRUE(disk.ok()) << disk.status().ToString();
    disk_ = *std::move(disk);
    auto front = nvm::Pool::Open({.path = "dram:", .size = kFrontBytes});
    ASSERT_TRUE(front.ok()) << front.status().ToString();
    front_ = *std::move(front);
  }
  // Each client appends records at the same time as the others.
  static void AppendMany(Log& log, uint64_t records) {
    std::vector<std::jthread> threads;
    for (uint64_t client = 0; client < kClients; ++client) {
      threads.emplace_back([&log, client, records] {
        for (uint64_t i = 0; i < records; ++i) {
          const std::string record = std::to_string(client) + "." + std::to_string(i) + ";";
          EXPECT_TRUE(log.Append(client, AsBytes(record)));
        }
      });
    }
  }
  [[nodiscard]] journal::FrontPart Part(nvm::Writer& writer, uint64_t number) const {
    const uint64_t bytes = AlignDown(kFrontBytes / kClients, kCacheLine);
    auto part = journal::FrontPart::Open(writer, number * bytes, bytes, {{}, {}, static_cast<uint32_t>(number)});
    EXPECT_TRUE(part.ok()) << part.status().ToString();
    return *std::move(part);
  }

  const TemporaryFolder folder_;
  std::unique_ptr<pmr_bench::DurableFile> disk_;
  std::unique_ptr<nvm::Pool> front_;
};

TEST_F(KvLogTest, FrontHasTheNewestRecordsOfEachClient) {
  constexpr uint64_t kRecords = 20'000;  // Many times the front, so the disk frees it again and again.
  {
    FrontLog log(*front_, *disk_, kClients);
    AppendMany(log, kRecords);
  }
  nvm::Writer writer(*front_);
  for (uint64_t client = 0; client < kClients; ++client) {
    const auto found = Part(writer, client).Read();
    const std::string end = std::to_string(client) + "." + std::to_string(kRecords - 1) + ";";
    EXPECT_TRUE(AsString(found.bytes).ends_with(end)) << AsString(found.bytes);
    EXPECT_GT(found.from, 5 * kFrontBytes);
  }
}

TEST_F(KvLogTest, LogsOnTheDiskTakeRecordsOfAllClients) {
  SyncLog sync(*disk_, kClients);
  AppendMany(sync, 5);
  GroupLog group(*disk_);
  AppendMany(group, 5);
}

TEST_F(KvLogTest, RecordThatIsLargerThanAWriteReachesTheDisk) {
  DiskLog log(*disk_, 0, pmr_bench::kFileBytes);
  const std::vector<std::byte> large(3 * pmr_bench::kBytesMax + 1);
  for (uint64_t i = 0; i < 2 * pmr_bench::kFileBytes / large.size(); ++i) EXPECT_TRUE(log.Write(large));
}

}  // namespace
}  // namespace erda::kv
