// One file of an archive: written, read, damaged.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/file_io.h"
#include "base/temporary_folder.h"
#include "journal/archive_file_reader.h"
#include "journal/archive_file_writer.h"
#include "journal/archive_folder.h"
#include "journal/ring_fixture.h"

namespace erda::journal {
namespace {

namespace fs = std::filesystem;

constexpr Place kFirstInFile = 4096;
constexpr uint64_t kFileEpoch = 7;

class ArchiveFileTest : public testing::Test {
 protected:
  struct Piece {
    Place from;
    uint64_t time_us;
    std::vector<std::byte> bytes;
    friend bool operator==(const Piece&, const Piece&) = default;
  };

  // Writes pieces of these sizes, and returns them.
  std::vector<Piece> Write(const std::vector<uint64_t>& sizes) const {
    auto file = ArchiveFileWriter::Begin(Folder(), kRingIdentity, kFileEpoch, kFirstInFile);
    EXPECT_TRUE(file.ok()) << file.status().ToString();
    std::vector<Piece> pieces;
    for (const uint64_t size : sizes) {
      pieces.push_back({file->end(), 100 + pieces.size(), SomeBytes(size, size + 1)});
      EXPECT_TRUE(file->Add(OnePart(pieces.back().bytes), pieces.back().time_us).ok());
    }
    EXPECT_TRUE(file->Finish().ok());
    return pieces;
  }
  [[nodiscard]] std::string Folder() const { return folder_.path().string(); }
  [[nodiscard]] std::string Path() const { return ArchiveFolder::PathOf(Folder(), kRingIdentity.shard, kFirstInFile); }
  // Reads all of the file.
  [[nodiscard]] Status Read(std::vector<Piece>* pieces) const {
    const auto file = ArchiveFileReader::Open(Path());
    if (!file.ok()) return file.status();
    return file->Read([pieces](const ArchivedPiece& piece) {
      pieces->push_back({piece.from, piece.time_us, {piece.bytes.begin(), piece.bytes.end()}});
      return Status();
    });
  }
  void Flip(uint64_t offset) const {
    std::fstream file(Path(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(offset));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(byte ^ 1));
  }

  const TemporaryFolder folder_;
};

TEST_F(ArchiveFileTest, PiecesComeBackInOrder) {
  const auto written = Write({16, 1 << 20, 32, 700'000, 700'000, 48});
  std::vector<Piece> read;
  ASSERT_TRUE(Read(&read).ok());
  EXPECT_EQ(read == written, true);
  const auto file = ArchiveFileReader::Open(Path());
  ASSERT_TRUE(file.ok());
  const ArchiveHeader& header = file->header();
  EXPECT_EQ(header.uuid, kRingIdentity.uuid);
  EXPECT_EQ(header.secret, kRingIdentity.secret);
  EXPECT_EQ(header.shard, kRingIdentity.shard);
  EXPECT_EQ(header.epoch, kFileEpoch);
  EXPECT_EQ(header.first, kFirstInFile);
  EXPECT_EQ(header.end, written.back().from + 48);
  EXPECT_EQ(header.first_us, 100U);
  EXPECT_EQ(header.last_us, 105U);
  EXPECT_EQ(header.frames, 3U);
}

TEST_F(ArchiveFileTest, BytesThatRepeatTakeLittleSpace) {
  auto file = ArchiveFileWriter::Begin(Folder(), kRingIdentity, kFileEpoch, kFirstInFile);
  ASSERT_TRUE(file.ok());
  const std::vector<std::byte> zeroes(1 << 20);
  ASSERT_TRUE(file->Add(OnePart(zeroes), 1).ok());
  ASSERT_TRUE(file->Finish().ok());
  EXPECT_LT(fs::file_size(Path()), 10'000U);
}

TEST_F(ArchiveFileTest, FileCountsOnlyWhenItIsFinished) {
  {
    auto file = ArchiveFileWriter::Begin(Folder(), kRingIdentity, kFileEpoch, kFirstInFile);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->Add(OnePart(SomeBytes(2 << 19, 1)), 1).ok());
    const auto folder = ArchiveFolder::Open(Folder());
    EXPECT_TRUE(folder->empty());
  }
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(ArchiveFileTest, EveryFlippedByteIsFoundAndNamed) {
  const auto written = Write({160, 320});
  const uint64_t size = fs::file_size(Path());
  for (uint64_t at = 0; at < size; ++at) {
    Flip(at);
    std::vector<Piece> read;
    const Status status = Read(&read);
    EXPECT_FALSE(status.ok()) << at;
    EXPECT_NE(status.message().find(Path()), std::string::npos) << status.ToString();
    Flip(at);
  }
  std::vector<Piece> read;
  EXPECT_TRUE(Read(&read).ok());
  EXPECT_EQ(read == written, true);
}

TEST_F(ArchiveFileTest, FileThatWasCutShortIsFoundAndNamed) {
  (void)Write({160, 320});
  const uint64_t size = fs::file_size(Path());
  for (uint64_t left = 0; left < size; left += 13) {
    fs::resize_file(Path(), left);
    std::vector<Piece> read;
    const Status status = Read(&read);
    EXPECT_EQ(status.code(), Code::kCorruption) << left;
    EXPECT_NE(status.message().find(Path()), std::string::npos) << status.ToString();
  }
}

TEST_F(ArchiveFileTest, FolderListsFilesInOrderAndKnowsForeignOnes) {
  (void)Write({160});
  fs::copy_file(Path(), ArchiveFolder::PathOf(Folder(), kRingIdentity.shard, 32));
  fs::copy_file(Path(), ArchiveFolder::PathOf(Folder(), 0, 5));
  std::ofstream(ArchiveFolder::TemporaryPathOf(Folder(), kRingIdentity.shard)) << "torn";
  std::ofstream(Folder() + "/notes") << "not a file of the archive";
  const auto folder = ArchiveFolder::Open(Folder());
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(folder->FirstPlaces(kRingIdentity.shard), (std::vector<Place>{32, kFirstInFile}));
  EXPECT_EQ(folder->FirstPlaces(0), std::vector<Place>{5});
  EXPECT_TRUE(folder->FirstPlaces(9).empty());
  EXPECT_TRUE(folder->OpenLast(kRingIdentity).ok());
  EXPECT_EQ(folder->OpenFile(kRingIdentity, 32).status().code(), Code::kCorruption) << "renamed by somebody";
  RingIdentity other = kRingIdentity;
  other.uuid[0] ^= 1;
  EXPECT_NE(folder->OpenLast(other).status().message().find("another pool"), std::string::npos);
  other = kRingIdentity;
  other.secret[0] ^= 1;
  EXPECT_NE(folder->OpenLast(other).status().message().find("another journal"), std::string::npos);
  EXPECT_FALSE(ArchiveFolder::Open(Folder() + "/no").ok());
}

}  // namespace
}  // namespace erda::journal
