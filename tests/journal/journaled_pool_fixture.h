// A pool file and a journal in a folder that ends with the test, and what their users do.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/bytes.h"
#include "base/temporary_folder.h"
#include "journal/journaled_pool.h"
#include "nvm/writer.h"
#include "server/pool/formatted_pool.h"

namespace erda::journal {

class JournaledPoolFixture : public testing::Test {
 protected:
  static constexpr uint64_t kPoolBytes = 4 << 20;
  static constexpr uint32_t kShards = 2;
  static constexpr uint64_t kJournalBytes = (kShards * RingFile::kPartBytesMin) + 8192;

  void SetUp() override {
    auto made = server::FormattedPool::Make({.path = Path("pool"), .size = kPoolBytes}, {kPoolBytes, kShards}, true);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    superblock_ = (*made)->superblock();
    ASSERT_TRUE((*made)->MarkOpen().ok());  // As the server does before its shards write.
    made->reset();
    const Status status =
        JournaledPool::CreateJournal(Path("journal"), superblock_, kJournalBytes, {.in_memory = true});
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  ~JournaledPoolFixture() override { (void)Image::Remove("/dev/shm", superblock_.uuid); }

  [[nodiscard]] std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  // A reboot takes the memory, and leaves the files.
  void Reboot() { ASSERT_TRUE(Image::Remove("/dev/shm", superblock_.uuid).ok()); }
  // The pool file says that the pool was closed cleanly.
  void MarkClean() const {
    std::fstream file(Path("pool"), std::ios::binary | std::ios::in | std::ios::out);
    format::Superblock clean = superblock_;
    clean.generation += 10;
    clean.clean = 1;
    clean.crc = format::SuperblockCrc(clean);
    file.write(reinterpret_cast<const char*>(&clean), sizeof(clean));
  }
  // Writes the text into the log's part of the pool, as a shard does.
  static void Put(JournaledPool& pool, uint32_t shard, uint64_t number, const std::string& text) {
    nvm::Writer writer(pool.OfShard(shard));
    writer.Write(At(shard, number), AsBytes(text));
    writer.Persist(At(shard, number), text.size());
  }
  static uint64_t At(uint32_t shard, uint64_t number) { return kPoolBytes / 2 + shard * (1 << 20) + number * 64; }
  static std::string Get(const JournaledPool& pool, uint32_t shard, uint64_t number, size_t size) {
    return std::string(AsString(pool.bytes().subspan(At(shard, number), size)));
  }

  const TemporaryFolder folder_;
  format::Superblock superblock_{};
};

}  // namespace erda::journal
