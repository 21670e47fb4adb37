// Restores that are refused, and archives that fail.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "journal/restore.h"
#include "journal/restore_fixture.h"
#include "journal/watched_folder.h"
#include "nvm/writer.h"

namespace erda::journal {
namespace {

namespace fs = std::filesystem;

using RestoreErrorsTest = RestoreTest;

TEST_F(RestoreErrorsTest, MissingForeignAndDamagedFilesAreNamed) {
  Open();
  ASSERT_TRUE(BackUp().ok());
  for (const char* text : {"a", "b", "c"}) {
    Put(0, 0, text);
    Finish();
  }
  const auto files = ArchiveFiles(0);
  ASSERT_GE(files.size(), 3U);
  const auto without = [&](const fs::path& file, Code code, const std::string& words) {
    fs::rename(file, Path("aside"));
    ExpectRefused(Options("new"), code, words);
    fs::rename(Path("aside"), file);
  };
  without(files[1], Code::kCorruption, "the archive of shard 0 in " + Path("archive") + " has a gap");
  without(files[0], Code::kCorruption, "has a gap: it lacks the stream from place 0");
  const uint64_t size = fs::file_size(files[1]);
  fs::copy_file(files[1], Path("whole"));
  fs::resize_file(files[1], size - 1);
  ExpectRefused(Options("new"), Code::kCorruption, files[1].string());
  fs::copy_file(Path("whole"), files[1], fs::copy_options::overwrite_existing);
  {
    std::fstream file(files[1], std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(size - 3));
    file.put('\x55');
    file.put('\x55');
  }
  ExpectRefused(Options("new"), Code::kCorruption, files[1].string());
  fs::copy_file(Path("whole"), files[1], fs::copy_options::overwrite_existing);
  RestoreOptions nowhere = Options("new");
  nowhere.archive = Path("no");
  ExpectRefused(nowhere, Code::kInvalidArgument, Path("no"));
  EXPECT_EQ(Cells(*Restore("new"), 0)[0], "c");
}

TEST_F(RestoreErrorsTest, ArchiveOfAnotherPoolIsRefused) {
  Open();
  Put(0, 0, "text");
  ASSERT_TRUE(BackUp().ok());
  Finish();
  Kill();
  // The restored pool has the same number, and another journal.
  fs::create_directory(Path("other"));
  ASSERT_TRUE(RestorePool(Options("new")).ok());
  auto other = JournaledPool::Open({.pool = Path("new"),
                                    .journal = Path("new.journal"),
                                    .memory = memory_.path().string(),
                                    .disk_in_memory = true,
                                    .archive = Path("archive")});
  EXPECT_EQ(other.status().code(), Code::kInvalidArgument) << other.status().ToString();
  EXPECT_NE(other.status().message().find("another journal of the pool"), std::string::npos);
  other = JournaledPool::Open({.pool = Path("new"),
                               .journal = Path("new.journal"),
                               .memory = memory_.path().string(),
                               .disk_in_memory = true,
                               .archive = Path("other")});
  ASSERT_TRUE(other.ok()) << other.status().ToString();
  nvm::Writer writer((*other)->OfShard(0));
  writer.Write(At(0, 0), AsBytes("x"));
  writer.Persist(At(0, 0), 1);
  ASSERT_TRUE((*other)->Sync(0, (*other)->size()).ok());
  other->reset();
  RestoreOptions mixed = Options("third");
  mixed.archive = Path("other");
  ExpectRefused(mixed, Code::kInvalidArgument, "another journal of the pool");
}

TEST_F(RestoreErrorsTest, TargetsAndTimesAreChecked) {
  Open();
  Put(0, 0, "text");
  const uint64_t early = Now();
  Put(0, 0, "later");
  ASSERT_TRUE(BackUp().ok());
  EXPECT_EQ(BackUp().code(), Code::kConflict) << "it exists";
  Finish();
  ExpectRefused(Options("new", early), Code::kInvalidArgument, "before the end of the base copy");
  std::ofstream(Path("new")) << "something";
  EXPECT_EQ(RestorePool(Options("new")).status().code(), Code::kConflict);
  std::ofstream(Path("fresh.journal")) << "something";
  EXPECT_EQ(RestorePool(Options("fresh")).status().code(), Code::kConflict);
  EXPECT_FALSE(fs::exists(Path("fresh")));
  RestoreOptions small = Options("small");
  small.journal_size = 1 << 20;
  ExpectRefused(small, Code::kInvalidArgument, "too few");
  EXPECT_FALSE(fs::exists(Path("small")));
}

TEST_F(RestoreErrorsTest, DamagedBaseCopyIsNamed) {
  Open();
  Put(0, 0, "text");
  ASSERT_TRUE(BackUp().ok());
  Finish();
  const uint64_t size = fs::file_size(Path("base"));
  const auto flip = [&](uint64_t at) {
    std::fstream file(Path("base"), std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(at));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 1));
  };
  for (uint64_t at :
       {uint64_t{0}, uint64_t{9}, uint64_t{20}, uint64_t{50}, uint64_t{100}, uint64_t{4000}, size / 2, size - 1}) {
    flip(at);
    const Status status = RestorePool(Options("new")).status();
    EXPECT_FALSE(status.ok()) << at;
    EXPECT_NE(status.message().find(Path("base")), std::string::npos) << status.ToString();
    EXPECT_FALSE(fs::exists(Path("new")));
    flip(at);
  }
  fs::resize_file(Path("base"), size - 1);
  ExpectRefused(Options("new"), Code::kCorruption, "it was written with");
  fs::resize_file(Path("base"), 10);
  ExpectRefused(Options("new"), Code::kCorruption, "too short");
}

// The archive's disk is full until the ring is. Puts go on all the time.
TEST_F(RestoreErrorsTest, FullArchiveLeavesAGapAndStopsNoPut) {
  Open();
  Put(0, 0, "before");
  ASSERT_TRUE(BackUp().ok());
  {
    WatchedFolder watched(Path("archive"));
    watched.SetFull(true);
    for (int i = 0; i < 1500; ++i) Put(0, static_cast<uint64_t>(i) % kCells, std::to_string(i));
  }
  Put(0, 0, "after");
  Finish();
  EXPECT_NE(Events().find("the archive has failed"), std::string::npos) << Events();
  EXPECT_NE(Events().find("the archive of shard 0 has a gap"), std::string::npos) << Events();
  ExpectRefused(Options("new"), Code::kCorruption, "has a gap");
  // A new base copy ends that.
  fs::rename(Path("base"), Path("old"));
  ASSERT_TRUE(BackUp().ok());
  Put(0, 1, "more");
  Finish();
  const auto pool = Restore("new");
  ASSERT_TRUE(pool);
  EXPECT_EQ(Cells(*pool, 0), Cells(*pool_, 0));
}

// A close that cannot archive leaves all in the journal, and the next server archives it.
TEST_F(RestoreErrorsTest, FullArchiveAtTheEndLeavesNoGap) {
  Open();
  ASSERT_TRUE(BackUp().ok());
  Put(0, 0, "text");
  {
    WatchedFolder watched(Path("archive"));
    watched.SetFull(true);
    EXPECT_EQ(pool_->Sync(0, pool_->size()).code(), Code::kResourceExhausted);
    Kill();
  }
  Reboot();
  Open();
  EXPECT_EQ(Cell(0, 0), "text");
  EXPECT_EQ(Cells(*Restore("new"), 0)[0], "text");
}

// The disk of the archive is full when the server starts after a power cut: the ring's records are lost to the archive.
TEST_F(RestoreErrorsTest, FullArchiveAtAStartIsAGap) {
  Open();
  ASSERT_TRUE(BackUp().ok());
  Put(0, 0, "text");
  Kill();
  Reboot();
  {
    WatchedFolder watched(Path("archive"));
    watched.SetFull(true);
    Open();
  }
  EXPECT_EQ(Cell(0, 0), "text");
  EXPECT_NE(Events().find("the archive of shard 0 has a gap"), std::string::npos) << Events();
  Put(0, 0, "more");
  Finish();
  ExpectRefused(Options("new"), Code::kCorruption, "has a gap");
}

TEST_F(RestoreErrorsTest, ServerWithoutTheArchiveLeavesAGap) {
  Open();
  ASSERT_TRUE(BackUp().ok());
  Put(0, 0, "text");
  Finish();
  Kill();
  Open("");
  Put(0, 0, "unseen");
  Finish();
  Kill();
  Open();
  EXPECT_NE(Events().find("the archive of shard 0 has a gap"), std::string::npos) << Events();
  Put(0, 0, "more");
  Finish();
  ExpectRefused(Options("new"), Code::kCorruption, "has a gap");
}

TEST_F(RestoreErrorsTest, ArchiveThatEndsTooEarlyIsNamed) {
  Open();
  Put(0, 0, "text");
  ASSERT_TRUE(BackUp().ok());
  ExpectRefused(Options("new"), Code::kNotFound, "and the base copy needs it up to place");
}

}  // namespace
}  // namespace erda::journal
