#include "journal/archiver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/temporary_folder.h"
#include "journal/archive_folder.h"
#include "journal/ring_fixture.h"
#include "journal/stream_fixture.h"
#include "journal/watched_folder.h"

namespace erda::journal {
namespace {

constexpr uint64_t kArchivedPoolBytes = 1 << 20;
const RingIdentity kArchivedIdentity{kRingIdentity.uuid, kRingIdentity.secret, 0};

// A stream and its archive, without a ring: the test says what is held.
class ArchiverTest : public testing::Test {
 protected:
  ArchiverTest() { stream_.emplace(Stream::Format(memory_.bytes(), kArchivedIdentity.uuid, 0, 0).value()); }

  // Opens the archive for a ring that begins and ends at these places.
  void Begin(Place checkpoint, Place end) {
    auto opened = Archiver::Open(Options(), {kArchivedIdentity});
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    archiver_ = *std::move(opened);
    ASSERT_TRUE(archiver_->Begin(0, checkpoint, end, false).ok());
    archiver_->SetSource(0, {&*stream_, 1, [this] { return is_low_.load(); }});
    ASSERT_TRUE(archiver_->Start().ok());
  }
  [[nodiscard]] ArchiverOptions Options() {
    return {.folder = folder_.path().string(),
            .age = age_,
            .retry = std::chrono::milliseconds(1),
            .changed = [this] { ++changes_; },
            .event =
                [this](const std::string& line) {
                  const std::lock_guard lock(mutex_);
                  events_ += line + "\n";
                }};
  }
  Place Append(uint64_t offset, const std::string& text) {
    EXPECT_TRUE(stream_->Append(offset, AsBytes(text)));
    return stream_->end();
  }
  // The disk holds the stream up to there.
  void Hold(Place place, uint64_t time_us) {
    archiver_->marks(0).NoteTime(time_us);
    archiver_->marks(0).NoteHeld(place);
  }
  [[nodiscard]] Place Archived() const { return archiver_->archived(0).load(); }
  // Returns what all files of the archive have, one after the other.
  [[nodiscard]] std::vector<FoundEntry> InArchive() const {
    std::vector<std::byte> bytes;
    const auto folder = ArchiveFolder::Open(folder_.path().string());
    for (const Place first : folder->FirstPlaces(0)) {
      const auto file = folder->OpenFile(kArchivedIdentity, first);
      EXPECT_TRUE(file.ok()) << file.status().ToString();
      EXPECT_TRUE(file->Read([&](const ArchivedPiece& piece) {
                        bytes.insert(bytes.end(), piece.bytes.begin(), piece.bytes.end());
                        return Status();
                      })
                      .ok());
    }
    return EntriesIn(std::vector<std::span<const std::byte>>{bytes}, kArchivedPoolBytes);
  }
  [[nodiscard]] std::string Events() {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  template <class Holds>
  static bool Wait(const Holds& holds) {
    for (int i = 0; i < 60'000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return holds();
  }

  const TemporaryFolder folder_;
  const SharedPages memory_{Stream::MemoryFor(Stream::kCapacityMin)};
  std::optional<Stream> stream_;
  std::atomic<bool> is_low_ = false;
  std::atomic<uint64_t> changes_ = 0;
  std::mutex mutex_;
  std::string events_;
  Nanoseconds age_ = std::chrono::hours(1);
  std::unique_ptr<Archiver> archiver_;
};

TEST_F(ArchiverTest, ArchiveGetsWhatIsHeldAndNothingElse) {
  Begin(0, 0);
  const Place held = Append(64, "held");
  (void)Append(128, "not held");
  Hold(held, 5);
  ASSERT_TRUE(archiver_->Finish().ok());
  EXPECT_EQ(InArchive(), std::vector<FoundEntry>{FoundEntry::Bytes(64, "held")});
  EXPECT_EQ(Archived(), held);
  EXPECT_EQ(changes_, 1U);
  Hold(stream_->end(), 6);
  EXPECT_EQ(archiver_->counts(0).waiting_bytes, stream_->end() - held);
  ASSERT_TRUE(archiver_->Finish().ok());
  EXPECT_EQ(InArchive().size(), 2U);
  EXPECT_EQ(archiver_->counts(0).waiting_bytes, 0U);
}

TEST_F(ArchiverTest, FileIsWrittenWhenItIsOldOrLarge) {
  age_ = std::chrono::milliseconds(1);
  Begin(0, 0);
  Hold(Append(64, "old"), 1);
  EXPECT_TRUE(Wait([&] { return Archived() == stream_->end(); }));
  archiver_.reset();
  age_ = std::chrono::hours(1);
  Begin(stream_->end(), stream_->end());
  while (Archived() < Stream::kCapacityMin / 8) {
    Hold(Append(64, std::string(4096, 'x')), 2);
    if (stream_->room() < Stream::kCapacityMin / 2) break;
  }
  EXPECT_TRUE(Wait([&] { return Archived() >= Stream::kCapacityMin / 8; }));
}

TEST_F(ArchiverTest, NextProcessGoesOnAtTheEnd) {
  Begin(0, 0);
  Hold(Append(64, "first"), 1);
  ASSERT_TRUE(archiver_->Finish().ok());
  const Place archived = Archived();
  const Place held = Append(64, "second");
  archiver_.reset();
  Begin(0, held);
  EXPECT_EQ(Archived(), archived);
  Hold(held, 2);
  ASSERT_TRUE(archiver_->Finish().ok());
  EXPECT_EQ(InArchive(), (std::vector<FoundEntry>{FoundEntry::Bytes(64, "first"), FoundEntry::Bytes(64, "second")}));
  EXPECT_EQ(Events(), "");
}

// The mark has the time of the last record before it, and no later file an earlier time.
TEST_F(ArchiverTest, PiecesHaveTheTimesOfTheirMarks) {
  Begin(0, 0);
  Hold(Append(64, "a"), 10);
  Hold(Append(64, "b"), 20);
  Hold(Append(64, "c"), 15);  // The clock was set back.
  ASSERT_TRUE(archiver_->Finish().ok());
  const auto folder = ArchiveFolder::Open(folder_.path().string());
  std::vector<uint64_t> times;
  ASSERT_TRUE(folder->OpenLast(kArchivedIdentity)
                  ->Read([&](const ArchivedPiece& piece) {
                    times.push_back(piece.time_us);
                    return Status();
                  })
                  .ok());
  EXPECT_EQ(times, (std::vector<uint64_t>{10, 20, 20}));
}

// Each call of a file may fail. Nothing counts as archived then, and the next attempt brings all.
TEST_F(ArchiverTest, EveryErrorIsToldAndTriedAgain) {
  Begin(0, 0);
  WatchedFolder watched(folder_.path());
  for (uint64_t call = 0; call < 5; ++call) {
    const Place before = Archived();
    const Place held = Append(64, "text" + std::to_string(call));
    watched.FailAt(call);
    Hold(held, call);
    EXPECT_FALSE(archiver_->Finish().ok()) << call;
    EXPECT_TRUE(Wait([&] { return Archived() == held; })) << call;
    EXPECT_GT(held, before);
  }
  EXPECT_EQ(InArchive().size(), 5U);
  EXPECT_EQ(archiver_->counts(0).gaps, 0U);
  EXPECT_NE(Events().find("the archive has failed: cannot "), std::string::npos) << Events();
  EXPECT_NE(Events().find("the archive of shard 0 goes on"), std::string::npos) << Events();
}

TEST_F(ArchiverTest, FullDiskStopsNothingWhileThereIsRoom) {
  Begin(0, 0);
  WatchedFolder watched(folder_.path());
  watched.SetFull(true);
  Hold(Append(64, "text"), 1);
  const Status status = archiver_->Finish();
  EXPECT_EQ(status.code(), Code::kResourceExhausted) << status.ToString();
  EXPECT_TRUE(archiver_->counts(0).failing);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(Archived(), 0U) << "the shard has room";
  watched.SetFull(false);
  EXPECT_TRUE(Wait([&] { return Archived() == stream_->end(); }));
  EXPECT_FALSE(archiver_->counts(0).failing);
}

TEST_F(ArchiverTest, FullDiskLeavesAGapBeforeTheShardWaits) {
  Begin(0, 0);
  Hold(Append(64, "before"), 1);
  ASSERT_TRUE(archiver_->Finish().ok());
  const Place before = Archived();
  {
    WatchedFolder watched(folder_.path());
    watched.SetFull(true);
    is_low_ = true;
    Hold(Append(64, "lost"), 2);
    archiver_->Ask();
    ASSERT_TRUE(Wait([&] { return Archived() == stream_->end(); }));
  }
  is_low_ = false;
  EXPECT_EQ(archiver_->counts(0).gaps, 1U);
  EXPECT_NE(Events().find("has a gap: it lacks the stream from place " + std::to_string(before)), std::string::npos)
      << Events();
  const Place after = Archived();
  Hold(Append(64, "after"), 3);
  ASSERT_TRUE(archiver_->Finish().ok());
  EXPECT_EQ(InArchive(), (std::vector<FoundEntry>{FoundEntry::Bytes(64, "before"), FoundEntry::Bytes(64, "after")}));
  EXPECT_EQ(ArchiveFolder::Open(folder_.path().string())->FirstPlaces(0).back(), after);
}

TEST_F(ArchiverTest, FolderHasOneServerAndOnePool) {
  Begin(0, 0);
  EXPECT_EQ(Archiver::Open(Options(), {kArchivedIdentity}).status().code(), Code::kUnavailable);
  Hold(Append(64, "text"), 1);
  ASSERT_TRUE(archiver_->Finish().ok());
  archiver_.reset();
  RingIdentity other = kArchivedIdentity;
  other.uuid[0] ^= 1;
  EXPECT_EQ(Archiver::Open(Options(), {other}).status().code(), Code::kInvalidArgument);
  ArchiverOptions nowhere = Options();
  nowhere.folder += "/no";
  EXPECT_EQ(Archiver::Open(nowhere, {kArchivedIdentity}).status().code(), Code::kInvalidArgument);
}

// A snapshot of pool and journal was put back, for instance.
TEST_F(ArchiverTest, JournalWithAnotherHistoryIsRefused) {
  Begin(0, 0);
  Hold(Append(64, "text"), 1);
  ASSERT_TRUE(archiver_->Finish().ok());
  const Place archived = Archived();
  archiver_.reset();
  auto opened = Archiver::Open(Options(), {kArchivedIdentity});
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ((*opened)->Begin(0, 0, archived - 16, false).code(), Code::kInvalidArgument) << "it ends before";
  opened->reset();
  opened = Archiver::Open(Options(), {kArchivedIdentity});
  const auto bytes = SomeBytes(archived + 32, 1);
  (*opened)->Note(0, {.from = 0, .held = 0, .epoch = 1, .time_us = 1, .bytes = bytes});
  EXPECT_EQ((*opened)->Begin(0, 0, archived + 32, false).code(), Code::kInvalidArgument) << "other records";
}

// A server ran without the archive.
// The start stores several files after the gap.
TEST_F(ArchiverTest, GapBeforeStoredRecordsIsTold) {
  Begin(0, 0);
  const Place found = Append(64, "archived");
  Hold(found, 5);
  ASSERT_TRUE(archiver_->Finish().ok());
  archiver_.reset();
  auto opened = Archiver::Open(Options(), {kArchivedIdentity});
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  Place at = found + 1024;
  for (uint64_t epoch = 2; epoch <= 3; ++epoch) {
    std::vector<std::byte> bytes(EntrySpace(8));
    WriteBytes(bytes.data(), 64, std::vector<std::byte>(8));
    (*opened)->Store(0, {at, at, epoch, 10 + epoch, bytes});
    at += bytes.size();
  }
  ASSERT_TRUE((*opened)->Begin(0, found + 1024, at, true).ok());
  EXPECT_EQ((*opened)->counts(0).gaps, 1U);
  EXPECT_NE(Events().find("has a gap"), std::string::npos) << Events();
}

TEST_F(ArchiverTest, CheckpointBeyondTheArchiveIsAGap) {
  Begin(0, 0);
  Hold(Append(64, "text"), 1);
  ASSERT_TRUE(archiver_->Finish().ok());
  archiver_.reset();
  const Place later = Append(64, "elsewhere");
  Begin(later, later);
  EXPECT_EQ(Archived(), later);
  EXPECT_EQ(archiver_->counts(0).gaps, 1U);
}

}  // namespace
}  // namespace erda::journal
