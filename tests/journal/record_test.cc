#include "journal/record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/random.h"
#include "format/fixture.h"
#include "journal/checkpoint_block.h"
#include "journal/ring_fixture.h"

namespace erda::journal {
namespace {

constexpr Place kRecordPlace = 0x0102030405060708;
constexpr uint64_t kRecordEpoch = 0x11;
constexpr Expected kRecordExpected = {kRecordPlace, kRecordEpoch, kRecordEpoch};

std::vector<std::byte> EncodedRecord(std::span<const std::byte> bytes, const RingIdentity& identity = kRingIdentity,
                                     Place place = kRecordPlace, uint64_t epoch = kRecordEpoch) {
  std::vector<std::byte> to(RecordBlocks(bytes.size()) * Disk::kBlock, std::byte{0xff});
  const auto encoded =
      EncodeRecord(identity, {place, place & ~Place{0xff}, epoch, 0x2122232425262728, {}}, OnePart(bytes), to);
  EXPECT_EQ(encoded.size(), to.size());
  return to;
}

std::pair<std::span<const std::byte>, std::span<const std::byte>> SplitAt(std::span<const std::byte> bytes, size_t at) {
  return {bytes.first(at), bytes.subspan(at)};
}

// Makes a record of the changed header, with the crc that fits.
void ChangeHeader(std::vector<std::byte>& record, void (*change)(RecordHeader& header)) {
  auto header = LoadAs<RecordHeader>(record);
  change(header);
  header.crc = 0;
  const uint64_t covered = std::min<uint64_t>(header.bytes, record.size() - sizeof(header));
  header.crc = Crc32c(Crc32c(0, BytesOf(header)), std::span(record).subspan(sizeof(header), covered));
  std::memcpy(record.data(), &header, sizeof(header));
}

TEST(RecordTest, RecordHasItsDocumentedBytes) {
  const auto record = EncodedRecord(AsBytes("stream"));
  ASSERT_EQ(record.size(), 4096U);
  const auto [used, rest] = SplitAt(record, sizeof(RecordHeader) + 6);
  EXPECT_TRUE(IsZero(rest));
  EXPECT_EQ(format::Hex(used), format::HexOf(R"(
    45 52 44 41 52 43 52 44  01 00 00 00 7d e0 be 3f
    00 01 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f
    03 00 00 00 06 00 00 00  11 00 00 00 00 00 00 00
    08 07 06 05 04 03 02 01  00 07 06 05 04 03 02 01
    28 27 26 25 24 23 22 21  a0 a1 a2 a3 a4 a5 a6 a7
    a8 a9 aa ab ac ad ae af  73 74 72 65 61 6d)"));
}

TEST(RecordTest, CheckpointBlockHasItsDocumentedBytes) {
  CheckpointBlock checkpoint = FirstCheckpoint(kRingIdentity);
  checkpoint.generation = 0x0102;
  checkpoint.epoch = 0x0304;
  checkpoint.place = kRecordPlace;
  checkpoint.place_epoch = 0x0203;
  checkpoint.first_block = 0x0506;
  std::vector<std::byte> block(Disk::kBlock, std::byte{0xff});
  EncodeCheckpoint(checkpoint, block);
  const auto [used, rest] = SplitAt(block, sizeof(CheckpointBlock));
  EXPECT_TRUE(IsZero(rest));
  EXPECT_EQ(format::Hex(used), format::HexOf(R"(
    45 52 44 41 43 4b 50 54  01 00 00 00 92 98 fc dd
    00 01 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f
    03 00 00 00 00 00 00 00  02 01 00 00 00 00 00 00
    04 03 00 00 00 00 00 00  08 07 06 05 04 03 02 01
    03 02 00 00 00 00 00 00  06 05 00 00 00 00 00 00
    a0 a1 a2 a3 a4 a5 a6 a7  a8 a9 aa ab ac ad ae af)"));
}

TEST(RecordTest, RecordOfSeveralPartsIsReadBack) {
  const std::span<const std::byte> parts[] = {AsBytes("one"), {}, AsBytes("two")};
  std::vector<std::byte> to(Disk::kBlock);
  EncodeRecord(kRingIdentity, {kRecordPlace, 55, kRecordEpoch, 77, {}}, parts, to);
  EXPECT_EQ(ExpectedBlocks(to, kRingIdentity, kRecordExpected), 1U);
  const auto record = ReadRecord(to, kRingIdentity, kRecordExpected);
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->from, kRecordPlace);
  EXPECT_EQ(record->end(), kRecordPlace + 6);
  EXPECT_EQ(record->held, 55U);
  EXPECT_EQ(record->epoch, kRecordEpoch);
  EXPECT_EQ(record->time_us, 77U);
  EXPECT_EQ(AsString(record->bytes), "onetwo");
}

TEST(RecordTest, SizesFitWholeBlocks) {
  for (const uint64_t blocks : {uint64_t{1}, uint64_t{2}, kRecordBlocksMax - 1}) {
    EXPECT_EQ(RecordBlocks(RecordRoom(blocks)), blocks);
    EXPECT_EQ(RecordBlocks(RecordRoom(blocks) + 1), blocks + 1);
  }
  EXPECT_EQ(RecordRoom(kRecordBlocksMax), kRecordBytesMax);
  EXPECT_EQ(RecordRoom(kRecordBlocksMax + 1), kRecordBytesMax);
  EXPECT_EQ(kRecordBlocksMax, 257U);
}

TEST(RecordTest, LongestRecordIsReadBack) {
  const auto bytes = SomeBytes(kRecordBytesMax, 1);
  const auto encoded = EncodedRecord(bytes);
  const auto record = ReadRecord(encoded, kRingIdentity, kRecordExpected);
  ASSERT_TRUE(record.has_value());
  EXPECT_TRUE(std::ranges::equal(record->bytes, bytes));
}

TEST(RecordTest, EachFlippedBitOfHeaderAndBytesIsFound) {
  const auto bytes = SomeBytes(500, 2);
  auto record = EncodedRecord(bytes);
  // Other values of the fields may be expected, too: the checksum alone must find the flip.
  constexpr Expected kExpectations[] = {kRecordExpected, {kRecordPlace, 0, UINT64_MAX}};
  const size_t covered = (sizeof(RecordHeader) + bytes.size()) * 8;
  for (size_t bit = 0; bit < covered; ++bit) {
    format::FlipBit(record, bit);
    for (const Expected& expected : kExpectations) {
      ASSERT_FALSE(ReadRecord(record, kRingIdentity, expected).has_value()) << "bit " << bit;
    }
    format::FlipBit(record, bit);
  }
  format::FlipBit(record, covered);  // The zeroes after the bytes mean nothing.
  EXPECT_TRUE(ReadRecord(record, kRingIdentity, kRecordExpected).has_value());
}

TEST(RecordTest, FlippedPlaceIsFoundByTheChecksum) {
  auto record = EncodedRecord(AsBytes("stream"));
  format::FlipBit(record, offsetof(RecordHeader, place) * 8);
  EXPECT_FALSE(ReadRecord(record, kRingIdentity, {kRecordPlace ^ 1, kRecordEpoch, kRecordEpoch}).has_value());
}

TEST(RecordTest, RecordOfAnotherRingPlaceOrEpochIsNotExpected) {
  RingIdentity identity = kRingIdentity;
  identity.uuid[15] ^= 1;
  EXPECT_FALSE(ReadRecord(EncodedRecord(AsBytes("x"), identity), kRingIdentity, kRecordExpected));
  identity = kRingIdentity;
  identity.secret[0] ^= 1;
  EXPECT_FALSE(ReadRecord(EncodedRecord(AsBytes("x"), identity), kRingIdentity, kRecordExpected));
  identity = kRingIdentity;
  ++identity.shard;
  EXPECT_FALSE(ReadRecord(EncodedRecord(AsBytes("x"), identity), kRingIdentity, kRecordExpected));

  const auto record = EncodedRecord(AsBytes("x"));
  for (const Place place : {kRecordPlace - 1, kRecordPlace + 1, Place{0}}) {
    EXPECT_FALSE(ReadRecord(record, kRingIdentity, {place, kRecordEpoch, kRecordEpoch}));
    EXPECT_FALSE(ExpectedBlocks(record, kRingIdentity, {place, kRecordEpoch, kRecordEpoch}));
  }
  EXPECT_FALSE(ReadRecord(record, kRingIdentity, {kRecordPlace, kRecordEpoch + 1, kRecordEpoch + 1}));
  EXPECT_FALSE(ReadRecord(record, kRingIdentity, {kRecordPlace, 0, kRecordEpoch - 1}));
  EXPECT_TRUE(ReadRecord(record, kRingIdentity, {kRecordPlace, kRecordEpoch - 1, kRecordEpoch + 1}));
}

TEST(RecordTest, ImpossibleFieldsAreRefusedThoughTheChecksumFits) {
  const auto refused = [](void (*change)(RecordHeader & header)) {
    auto record = EncodedRecord(SomeBytes(5000, 3));
    ChangeHeader(record, change);
    const Place place = LoadAs<RecordHeader>(record).place;
    return !ReadRecord(record, kRingIdentity, {place, kRecordEpoch, kRecordEpoch}).has_value();
  };
  EXPECT_FALSE(refused([](RecordHeader&) {}));
  EXPECT_FALSE(refused([](RecordHeader& header) { header.bytes = 2 * 4096 - sizeof(header); }));
  EXPECT_TRUE(refused([](RecordHeader& header) { header.bytes = 2 * 4096 - sizeof(header) + 1; }));
  EXPECT_TRUE(refused([](RecordHeader& header) { header.bytes = 0; }));
  EXPECT_TRUE(refused([](RecordHeader& header) { header.bytes = UINT32_MAX; }));
  EXPECT_TRUE(refused([](RecordHeader& header) { ++header.format_version; }));
  EXPECT_TRUE(refused([](RecordHeader& header) { ++header.magic; }));
  EXPECT_TRUE(refused([](RecordHeader& header) { header.held = header.place + 1; }));
  EXPECT_FALSE(refused([](RecordHeader& header) { header.held = header.place; }));
  EXPECT_TRUE(refused([](RecordHeader& header) { header.place = UINT64_MAX - header.bytes + 1; }));
  EXPECT_FALSE(refused([](RecordHeader& header) { header.place = UINT64_MAX - header.bytes; }));
}

TEST(RecordTest, RecordLongerThanTheBytesIsRefused) {
  auto record = EncodedRecord(SomeBytes(RecordRoom(2), 5));
  // Its checksum fits the bytes that follow in memory.
  record.resize(record.size() + Disk::kBlock);
  ChangeHeader(record, [](RecordHeader& header) { ++header.bytes; });
  EXPECT_TRUE(ReadRecord(record, kRingIdentity, kRecordExpected).has_value());
  const auto cut_off = std::span(record).first(2 * Disk::kBlock);
  EXPECT_FALSE(ReadRecord(cut_off, kRingIdentity, kRecordExpected).has_value());
}

TEST(RecordTest, RecordLongerThanTheLongestIsRefused) {
  std::vector<std::byte> record = EncodedRecord(SomeBytes(kRecordBytesMax, 4));
  record.resize(record.size() + Disk::kBlock);
  ChangeHeader(record, [](RecordHeader& header) { header.bytes = kRecordBytesMax + 1; });
  EXPECT_FALSE(ReadRecord(record, kRingIdentity, kRecordExpected).has_value());
  EXPECT_FALSE(ExpectedBlocks(record, kRingIdentity, kRecordExpected).has_value());
}

// --- Checkpoint blocks

std::vector<std::byte> TwoCopies(uint64_t first_generation, uint64_t second_generation) {
  std::vector<std::byte> copies(2 * Disk::kBlock);
  CheckpointBlock checkpoint = FirstCheckpoint(kRingIdentity);
  checkpoint.generation = first_generation;
  EncodeCheckpoint(checkpoint, std::span(copies).first(Disk::kBlock));
  checkpoint.generation = second_generation;
  EncodeCheckpoint(checkpoint, std::span(copies).subspan(Disk::kBlock));
  return copies;
}

TEST(CheckpointBlockTest, ValidCopyOfTheHigherGenerationCounts) {
  EXPECT_EQ(FindCheckpoint(TwoCopies(8, 7), kRingIdentity, 10)->generation, 8U);
  EXPECT_EQ(FindCheckpoint(TwoCopies(8, 9), kRingIdentity, 10)->generation, 9U);
}

TEST(CheckpointBlockTest, CopyWithAFlippedBitDoesNotCount) {
  auto copies = TwoCopies(7, 8);
  for (size_t bit = 0; bit < sizeof(CheckpointBlock) * 8; ++bit) {
    format::FlipBit(copies, Disk::kBlock * 8 + bit);
    const auto found = FindCheckpoint(copies, kRingIdentity, 10);
    ASSERT_TRUE(found.has_value()) << "bit " << bit;
    ASSERT_EQ(found->generation, 7U) << "bit " << bit;
    format::FlipBit(copies, Disk::kBlock * 8 + bit);
  }
}

TEST(CheckpointBlockTest, CheckpointOfAnotherRingDoesNotCount) {
  const auto copies = TwoCopies(7, 8);
  RingIdentity identity = kRingIdentity;
  identity.uuid[0] ^= 1;
  EXPECT_FALSE(FindCheckpoint(copies, identity, 10));
  identity = kRingIdentity;
  identity.secret[15] ^= 1;
  EXPECT_FALSE(FindCheckpoint(copies, identity, 10));
  identity = kRingIdentity;
  --identity.shard;
  EXPECT_FALSE(FindCheckpoint(copies, identity, 10));
}

TEST(CheckpointBlockTest, FaultOfEachCopyIsTold) {
  auto copies = TwoCopies(7, 8);
  const auto faults = [&](uint64_t blocks) { return CheckpointFaults(copies, kRingIdentity, blocks); };
  EXPECT_EQ(faults(10), "copy 1: valid; copy 2: valid");
  EXPECT_EQ(faults(2), "copy 1: impossible numbers; copy 2: impossible numbers");
  copies[0] ^= std::byte{1};
  std::ranges::fill(std::span(copies).subspan(Disk::kBlock), std::byte{});
  EXPECT_EQ(faults(10), "copy 1: wrong magic number; copy 2: only zeroes");
  RingIdentity other = kRingIdentity;
  ++other.shard;
  copies = TwoCopies(7, 8);
  copies[Disk::kBlock + offsetof(CheckpointBlock, format_version)] ^= std::byte{1};
  EXPECT_EQ(CheckpointFaults(copies, other, 10), "copy 1: of another ring; copy 2: wrong format version");
}

TEST(CheckpointBlockTest, ImpossibleFieldsDoNotCount) {
  const auto counts = [](void (*change)(CheckpointBlock & checkpoint)) {
    std::vector<std::byte> copies(2 * Disk::kBlock);
    CheckpointBlock checkpoint = FirstCheckpoint(kRingIdentity);
    change(checkpoint);
    EncodeCheckpoint(checkpoint, copies);
    return FindCheckpoint(copies, kRingIdentity, 10).has_value();
  };
  EXPECT_TRUE(counts([](CheckpointBlock&) {}));
  EXPECT_TRUE(counts([](CheckpointBlock& checkpoint) { checkpoint.first_block = 9; }));
  EXPECT_FALSE(counts([](CheckpointBlock& checkpoint) { checkpoint.first_block = 10; }));
  EXPECT_FALSE(counts([](CheckpointBlock& checkpoint) { checkpoint.first_block = 1; }));
  EXPECT_FALSE(counts([](CheckpointBlock& checkpoint) { ++checkpoint.place_epoch; }));
  EXPECT_FALSE(counts([](CheckpointBlock& checkpoint) { ++checkpoint.format_version; }));
}

}  // namespace
}  // namespace erda::journal
