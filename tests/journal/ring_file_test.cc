#include "journal/ring_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/temporary_folder.h"
#include "format/fixture.h"
#include "journal/ring.h"
#include "journal/ring_fixture.h"

namespace erda::journal {
namespace {

constexpr Uuid kFileUuid = kRingIdentity.uuid;
constexpr uint64_t kFileBytes = 10 << 20;
constexpr FileDiskOptions kInAnyFolder = {.in_memory = true};

class RingFileTest : public testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return (folder_ / "journal").string(); }
  [[nodiscard]] Result<RingFile> Create(uint32_t shards = 2, uint64_t size = kFileBytes) const {
    return RingFile::Create(path(), kFileUuid, shards, size, kInAnyFolder);
  }
  [[nodiscard]] Result<RingFile> Open(const Uuid& uuid = kFileUuid, uint32_t shards = 2) const {
    return RingFile::Open(path(), uuid, shards, kInAnyFolder);
  }
  // Changes a byte of the file.
  void Flip(uint64_t offset) const {
    std::fstream file(path(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(offset));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(byte ^ 1));
    ASSERT_TRUE(file.flush());
  }
  // Writes the header in both copies, with the crc that fits.
  void WriteHeaders(RingFileHeader header) const {
    header.crc = RingFileCrc(header);
    std::fstream file(path(), std::ios::binary | std::ios::in | std::ios::out);
    for (const std::streamoff offset : {0, 4096}) {
      file.seekp(offset);
      file.write(reinterpret_cast<const char*>(&header), sizeof(header));
    }
    ASSERT_TRUE(file.flush());
  }
  [[nodiscard]] RingFileHeader HeaderOfNewFile() const {
    const auto file = Create();
    EXPECT_TRUE(file.ok()) << file.status().ToString();
    return file->header();
  }
  [[nodiscard]] testing::AssertionResult Refused(const Result<RingFile>& file, Code code, std::string_view part) const {
    if (file.ok()) return testing::AssertionFailure() << "it was opened";
    const std::string_view message = file.status().message();
    if (file.status().code() == code && message.find(part) != message.npos && message.find(path()) != message.npos)
      return testing::AssertionSuccess();
    return testing::AssertionFailure() << file.status().ToString();
  }

  const TemporaryFolder folder_;
};

Result<Ring> OpenShard(const RingFile& file, uint32_t shard, std::string* bytes = nullptr) {
  return Ring::Open(file.disk(), file.part(shard), file.identity(shard), [bytes](const Record& record) {
    if (bytes != nullptr) bytes->append(AsString(record.bytes));
    return Status();
  });
}

TEST(RingFileHeaderTest, HeaderOfTheFileHasItsDocumentedBytes) {
  RingFileHeader header{};
  header.magic = kRingFileMagic;
  header.format_version = kFormatVersion;
  header.uuid = kRingIdentity.uuid;
  header.shards = 0x0102;
  header.part_bytes = 0x00500000;
  header.secret = kRingIdentity.secret;
  header.crc = RingFileCrc(header);
  EXPECT_EQ(format::Hex(BytesOf(header)), format::HexOf(R"(
    45 52 44 41 4a 52 4e 4c  01 00 00 00 0e 93 19 e1
    00 01 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f
    02 01 00 00 00 00 00 00  00 00 50 00 00 00 00 00
    a0 a1 a2 a3 a4 a5 a6 a7  a8 a9 aa ab ac ad ae af)"));
}

TEST_F(RingFileTest, NewFileHasAnEmptyRingForEachShard) {
  const auto file = Create();
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_LE(std::filesystem::file_size(path()), kFileBytes);
  EXPECT_GT(std::filesystem::file_size(path()), kFileBytes - 3 * Disk::kBlock);
  EXPECT_EQ(file->part(0).offset, 8192U);
  EXPECT_EQ(file->part(1).offset, file->part(0).offset + file->part(0).size);
  EXPECT_EQ(file->part(1).offset + file->part(1).size, std::filesystem::file_size(path()));
  for (const uint32_t shard : {0, 1}) {
    const auto ring = OpenShard(*file, shard);
    ASSERT_TRUE(ring.ok()) << ring.status().ToString();
    EXPECT_EQ(ring->end(), 0U);
    EXPECT_EQ(ring->Room(), kRecordBytesMax);
  }
}

TEST_F(RingFileTest, RingsKeepTheirRecordsApart) {
  {
    const auto file = Create();
    ASSERT_TRUE(file.ok());
    for (const uint32_t shard : {0, 1}) {
      auto ring = OpenShard(*file, shard);
      ASSERT_TRUE(ring.ok());
      ASSERT_TRUE(AppendTo(*ring, AsBytes(shard == 0 ? "zero" : "one")).ok());
    }
  }
  const auto file = Open();
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  std::string zero;
  std::string one;
  ASSERT_TRUE(OpenShard(*file, 0, &zero).ok());
  ASSERT_TRUE(OpenShard(*file, 1, &one).ok());
  EXPECT_EQ(zero, "zero");
  EXPECT_EQ(one, "one");
  const auto other = Ring::Open(file->disk(), file->part(1), file->identity(0), [](const Record&) { return Status(); });
  EXPECT_FALSE(other.ok()) << "the ring of another shard was opened";
}

TEST_F(RingFileTest, EachJournalHasAnotherSecret) {
  const Secret first = HeaderOfNewFile().secret;
  std::filesystem::remove(path());
  const Secret second = HeaderOfNewFile().secret;
  EXPECT_NE(first, second);
  EXPECT_NE(first, Secret{});
}

TEST_F(RingFileTest, SizeThatIsTooSmallIsRefused) {
  const uint64_t least = 8192 + 2 * RingFile::kPartBytesMin;
  EXPECT_TRUE(Refused(Create(2, least - 1), Code::kInvalidArgument, std::to_string(least) + " at least"));
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_TRUE(Create(2, least).ok());
}

TEST_F(RingFileTest, FileThatExistsIsNotOverwritten) {
  { ASSERT_TRUE(Create().ok()); }
  EXPECT_TRUE(Refused(Create(), Code::kInvalidArgument, "exists already"));
  EXPECT_TRUE(Open().ok());
}

TEST_F(RingFileTest, FileThatIsOpenIsRefused) {
  const auto file = Create();
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(Refused(Open(), Code::kUnavailable, "another server has it open"));
}

TEST_F(RingFileTest, JournalOfAnotherPoolIsRefused) {
  { ASSERT_TRUE(Create().ok()); }
  Uuid other = kFileUuid;
  other[3] ^= 1;
  EXPECT_TRUE(Refused(Open(other), Code::kInvalidArgument, "belongs to another pool"));
  EXPECT_TRUE(Refused(Open(kFileUuid, 3), Code::kInvalidArgument, "2 shards, and this pool has 3"));
}

TEST_F(RingFileTest, FileThatIsNoJournalIsRefused) {
  std::ofstream(path()) << "short";
  EXPECT_TRUE(Refused(Open(), Code::kCorruption, "is not a journal"));
  std::ofstream(path()) << std::string(100000, 'x');
  EXPECT_TRUE(Refused(Open(), Code::kCorruption, "is not a journal"));
  // A power cut came while the file was made: it has no header.
  std::ofstream(path()) << std::string(kFileBytes, '\0');
  EXPECT_TRUE(Refused(Open(), Code::kCorruption, "is not a journal"));
}

TEST_F(RingFileTest, FileOfAnotherFormatIsRefused) {
  RingFileHeader header = HeaderOfNewFile();
  ++header.format_version;
  WriteHeaders(header);
  EXPECT_TRUE(Refused(Open(), Code::kInvalidArgument, "format version 2, and this program reads version 1"));
}

TEST_F(RingFileTest, FileThatWasCutShortIsRefused) {
  { ASSERT_TRUE(Create().ok()); }
  const uint64_t size = std::filesystem::file_size(path());
  std::filesystem::resize_file(path(), size + 1);  // More does no harm.
  EXPECT_TRUE(Open().ok());
  std::filesystem::resize_file(path(), size - 1);
  EXPECT_TRUE(Refused(Open(), Code::kCorruption, "cut short"));
  std::filesystem::resize_file(path(), 8192);
  EXPECT_TRUE(Refused(Open(), Code::kCorruption, "cut short"));
  std::filesystem::resize_file(path(), 8191);
  EXPECT_TRUE(Refused(Open(), Code::kCorruption, "less than 8192 bytes"));
}

TEST_F(RingFileTest, EitherCopyOfTheHeaderIsEnough) {
  { ASSERT_TRUE(Create().ok()); }
  for (uint64_t byte = 0; byte < sizeof(RingFileHeader); byte += 5) {
    Flip(byte);
    ASSERT_TRUE(Open().ok()) << "byte " << byte;
    Flip(byte);
    Flip(4096 + byte);
    ASSERT_TRUE(Open().ok()) << "byte " << byte;
    Flip(4096 + byte);
  }
  Flip(offsetof(RingFileHeader, part_bytes));
  Flip(4096 + offsetof(RingFileHeader, secret));
  EXPECT_TRUE(Refused(Open(), Code::kCorruption, "damaged (wrong checksum)"));
}

TEST_F(RingFileTest, ImpossibleSizesAreRefused) {
  const RingFileHeader good = HeaderOfNewFile();
  RingFileHeader header = good;
  header.shards = 0;
  WriteHeaders(header);
  EXPECT_TRUE(Refused(Open(kFileUuid, 0), Code::kCorruption, "impossible sizes"));
  for (const uint64_t bytes : {uint64_t{0}, RingFile::kPartBytesMin - 4096, RingFile::kPartBytesMin + 512}) {
    header = good;
    header.part_bytes = bytes;
    WriteHeaders(header);
    EXPECT_TRUE(Refused(Open(), Code::kCorruption, "impossible sizes"));
  }
  header = good;
  header.part_bytes = uint64_t{1} << 63;  // Twice that is 0.
  WriteHeaders(header);
  EXPECT_TRUE(Refused(Open(), Code::kCorruption, "cut short"));
  WriteHeaders(good);
  EXPECT_TRUE(Open().ok());
}

}  // namespace
}  // namespace erda::journal
