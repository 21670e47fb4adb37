#include "journal/checkpointer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/bytes.h"
#include "base/unique_fd.h"
#include "journal/ring_fixture.h"
#include "journal/simulated_files.h"
#include "journal/stream_fixture.h"

namespace erda::journal {
namespace {

class CheckpointerTest : public testing::Test {
 protected:
  static constexpr uint64_t kPoolBytes = 1 << 20;

  CheckpointerTest() {
    EXPECT_TRUE(Ring::Format(disk_, part_, kRingIdentity).ok());
    stream_.emplace(Stream::Format(memory_.bytes(), kRingIdentity.uuid, kRingIdentity.shard, 0).value());
    auto ring = MustOpenRing(disk_, part_);
    writer_.emplace(*stream_, *std::move(ring), std::chrono::hours(1), health_,
                    RingWriter::Hooks{[] { return uint64_t{0}; }, [] {}, [] {}});
    EXPECT_TRUE(writer_->Start().ok());
  }

  void Begin(UniqueFd file) {
    file_.emplace(std::move(file), "pool");
    checkpointer_.emplace(*file_, kPoolBytes, std::vector<Checkpointer::Source>{{&*stream_, &*writer_}}, health_);
    ASSERT_TRUE(checkpointer_->Start().ok());
  }
  static UniqueFd MemoryFile() {
    UniqueFd file(::memfd_create("pool", MFD_CLOEXEC));
    EXPECT_EQ(::ftruncate(file.get(), kPoolBytes), 0);
    return file;
  }
  // The disk holds the text.
  void Hold(uint64_t offset, const std::string& text) {
    ASSERT_TRUE(stream_->Append(offset, AsBytes(text)));
    ASSERT_TRUE(writer_->AwaitHeld().ok());
  }
  [[nodiscard]] std::string InFile(uint64_t offset, size_t size) const {
    std::string text(size, '\0');
    EXPECT_EQ(::pread(file_->fd(), text.data(), size, static_cast<off_t>(offset)), static_cast<ssize_t>(size));
    return text;
  }

  FakeDisk disk_{16 << 20, 512, 1};
  const RingPart part_{0, 8 << 20};
  const SharedPages memory_{Stream::MemoryFor(Stream::kCapacityMin)};
  std::optional<Stream> stream_;
  Health health_{[] {}, [](const Status& /*status*/) {}};
  std::optional<SyncedFile> file_;
  std::optional<RingWriter> writer_;
  std::optional<Checkpointer> checkpointer_;
};

TEST_F(CheckpointerTest, FileGetsTheStreamAndTheSpaceIsFree) {
  Begin(MemoryFile());
  Hold(4096, "held");
  ASSERT_TRUE(checkpointer_->Run().ok());
  EXPECT_EQ(InFile(4096, 4), "held");
  EXPECT_EQ(stream_->released(), stream_->end());
  EXPECT_EQ(writer_->checkpoint(), stream_->end());
  EXPECT_EQ(checkpointer_->made(), 1U);
  ASSERT_TRUE(checkpointer_->Run().ok());
  EXPECT_EQ(checkpointer_->made(), 1U) << "nothing has changed";
}

// J6
TEST_F(CheckpointerTest, FileGetsNothingThatIsNotHeld) {
  Begin(MemoryFile());
  ASSERT_TRUE(stream_->Append(4096, AsBytes("not held")));
  ASSERT_TRUE(checkpointer_->Run().ok());
  EXPECT_EQ(InFile(4096, 8), std::string(8, '\0'));
  EXPECT_EQ(stream_->released(), 0U);
}

// J4. This file takes writes, and no sync.
TEST_F(CheckpointerTest, NothingIsFreeBeforeTheFileIsSynced) {
  Begin(UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)));
  Hold(4096, "held");
  const uint64_t calls = disk_.calls();
  EXPECT_EQ(checkpointer_->Run().code(), Code::kUnavailable);
  EXPECT_EQ(disk_.calls(), calls) << "the ring has no checkpoint";
  EXPECT_EQ(stream_->released(), 0U);
  EXPECT_FALSE(health_.ok());
  EXPECT_EQ(health_.error_number(), EINVAL);
}

// A fuzzer found that: the message did not tell what is damaged.
TEST_F(CheckpointerTest, DamageOfTheStreamInMemoryIsNamed) {
  Begin(MemoryFile());
  Hold(4096, "held");
  memory_.bytes()[Stream::kHeaderBytes + offsetof(EntryHeader, kind)] = std::byte{99};
  const Status status = checkpointer_->Run();
  EXPECT_EQ(status.message(), "the stream of shard 3 in memory is damaged: a part of a stream has a malformed entry");
  EXPECT_EQ(health_.error_number(), 0) << "no system call has failed";
  EXPECT_EQ(stream_->released(), 0U);
}

// Otherwise a flush of the ring waits for a whole step.
TEST_F(CheckpointerTest, StepsGoToTheDiskInPieces) {
  SimulatedFiles files(1);
  UniqueFd file(::open(files.pool().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::ftruncate(file.get(), kPoolBytes), 0);
  Begin(std::move(file));
  const std::string text(4096, 'x');
  for (uint64_t bytes = 0; bytes < Writeback::kPieceBytes; bytes += text.size()) {
    EXPECT_EQ(files.writebacks(), 0U);
    Hold(4096, text);
    ASSERT_TRUE(checkpointer_->Run().ok());
  }
  EXPECT_EQ(files.writebacks(), 1U);
  checkpointer_->Stop();
}

TEST_F(CheckpointerTest, StreamIsNotFreeBeforeTheRingHasTheCheckpoint) {
  Begin(MemoryFile());
  Hold(4096, "held");
  disk_.FailAt(1);  // The flush of the checkpoint.
  EXPECT_FALSE(checkpointer_->Run().ok());
  EXPECT_EQ(stream_->released(), 0U);
  EXPECT_FALSE(health_.ok());
}

TEST_F(CheckpointerTest, HalfFullStreamIsCheckpointedUnasked) {
  Begin(MemoryFile());
  const std::string text(4096, 'x');
  for (uint64_t bytes = 0; bytes <= Stream::kCapacityMin / 2; bytes += text.size()) Hold(4096, text);
  for (int i = 0; i < 60'000 && stream_->released() == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GT(stream_->released(), 0U);
}

// Where no answer waits for the disk, nobody else asks the writer.
TEST_F(CheckpointerTest, UnheldStreamIsWrittenBeforeItsMemoryIsFull) {
  Begin(MemoryFile());
  const std::string text(4096, 'x');
  for (uint64_t bytes = 0; bytes < Stream::kCapacityMin / 2; bytes += text.size()) {
    ASSERT_TRUE(stream_->Append(4096, AsBytes(text)));
  }
  for (int i = 0; i < 60'000 && writer_->held().load() == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GT(writer_->held().load(), 0U);
}

}  // namespace
}  // namespace erda::journal
