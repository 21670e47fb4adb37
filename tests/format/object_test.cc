#include "format/object.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/bytes.h"
#include "base/random.h"
#include "format/fixture.h"

namespace erda::format {
namespace {

using Bytes = std::vector<std::byte>;

// Copies into memory of exactly that size, so that the address sanitizer sees a read after the end.
ObjectView InspectPrefix(const Place& place, const Bytes& bytes, size_t size, Bytes* memory) {
  *memory = Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
  memory->shrink_to_fit();
  return InspectObject(place, *memory);
}

TEST(InspectObjectTest, AWholeObjectGivesKeyAndValue) {
  const Bytes bytes = WholeObject(TestPlace(), "key", "value", 42);
  const ObjectView view = InspectObject(TestPlace(), bytes);
  ASSERT_EQ(view.state, ObjectState::kWhole);
  EXPECT_EQ(view.key, "key");
  EXPECT_EQ(AsString(view.value), "value");
  EXPECT_EQ(view.header.version, 42U);
  EXPECT_TRUE(view.header.persisted());
  EXPECT_EQ(view.bytes_wanted, 0U);
}

TEST(InspectObjectTest, BytesAfterAnObjectDoNotMatter) {
  Bytes bytes = WholeObject(TestPlace(), "key", "value");
  bytes.resize(bytes.size() + 100, std::byte{0xee});
  const ObjectView view = InspectObject(TestPlace(), bytes);
  ASSERT_EQ(view.state, ObjectState::kWhole);
  EXPECT_EQ(AsString(view.value), "value");
}

TEST(InspectObjectTest, TheLongestKeyAndTheEmptyValueAreWhole) {
  const std::string key(kKeyBytesMax, 'k');
  for (const std::string& value : {std::string(), std::string(100'000, 'v')}) {
    const Bytes bytes = WholeObject(TestPlace(), key, value);
    const ObjectView view = InspectObject(TestPlace(), bytes);
    ASSERT_EQ(view.state, ObjectState::kWhole);
    EXPECT_EQ(view.key, key);
    EXPECT_EQ(AsString(view.value), value);
  }
}

TEST(InspectObjectTest, ADeadlineStandsBeforeTheKey) {
  const std::string longest(kKeyBytesMax, 'k');
  for (const std::string& key : {std::string("k"), longest}) {
    const Bytes bytes = WholeObject(TestPlace(), key, "value", 77, 0x0102030405);
    EXPECT_EQ(bytes.size(), ObjectBytes(LabelSize(key.size(), true), 5));
    for (size_t size = 0; size < bytes.size(); ++size) {
      const ObjectView cut = InspectHeader(TestPlace(), std::span(bytes).first(size));
      ASSERT_EQ(cut.state, ObjectState::kNothing) << size;
      ASSERT_GT(cut.bytes_wanted, size);
      ASSERT_LE(cut.bytes_wanted, bytes.size());
    }
    const ObjectView view = InspectObject(TestPlace(), bytes);
    ASSERT_EQ(view.state, ObjectState::kWhole);
    EXPECT_EQ(view.key, key);
    EXPECT_EQ(AsString(view.value), "value");
    EXPECT_EQ(view.deadline, 0x0102030405U);
    EXPECT_TRUE(view.header.expires());
    EXPECT_EQ(SpaceOf(view.header), ObjectSpace(key.size() + 8, 5));
  }
  EXPECT_EQ(InspectObject(TestPlace(), WholeObject(TestPlace(), "k", "value")).deadline, 0U);
}

TEST(InspectObjectTest, ADeadlineThatChangesDoesNotVerify) {
  Bytes bytes = WholeObject(TestPlace(), "key", "value", 77, 0x0102030405);
  for (size_t bit = kLabelOffset * 8; bit < (kLabelOffset + kDeadlineBytes) * 8; ++bit) {
    FlipBit(bytes, bit);
    EXPECT_EQ(InspectHeader(TestPlace(), bytes).state, ObjectState::kNothing) << bit;
    EXPECT_EQ(InspectHeader(TestPlace(), bytes).deadline, 0U) << bit;
    FlipBit(bytes, bit);
  }
}

TEST(InspectObjectTest, TheDeadlineOfAReservationIsKnownBeforeItsValue) {
  Bytes bytes = WholeObject(TestPlace(), "key", "value", 77, 0x0102030405);
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(ChecksumOffset(LabelSize(3, true))), bytes.end(), std::byte{0});
  const ObjectView view = InspectObject(TestPlace(), bytes);
  EXPECT_EQ(view.state, ObjectState::kHeader);
  EXPECT_EQ(view.key, "key");
  EXPECT_EQ(view.deadline, 0x0102030405U);
}

// The checksums cover the flags. So a writer set an unknown flag on purpose, and it changes no known flag.
TEST(InspectObjectTest, EachFlagIsReadAloneAndUnknownFlagsDoNotMatter) {
  for (unsigned flags = 0; flags < 256; ++flags) {
    if ((flags & ObjectHeader::kExpiresFlag) != 0) continue;  // The object would need a deadline.
    Bytes bytes = WholeObject(TestPlace(), "key", "value");
    auto header = LoadAs<ObjectHeader>(bytes);
    header.flags = static_cast<uint8_t>(flags);
    std::memcpy(bytes.data(), &header, sizeof(header));
    // The checksums do not cover kLeft, the upper half.
    EXPECT_EQ(InspectObject(TestPlace(), bytes).state, flags % 16 == 1 ? ObjectState::kWhole : ObjectState::kNothing);
    header.header_crc = HeaderCrc(TestPlace(), header, "key");
    std::memcpy(bytes.data(), &header, sizeof(header));
    const uint32_t checksum = ObjectChecksum(header, AsBytes(std::string_view("value")));
    std::memcpy(bytes.data() + ChecksumOffset(3), &checksum, sizeof(checksum));
    const ObjectView view = InspectObject(TestPlace(), bytes);
    ASSERT_EQ(view.state, ObjectState::kWhole);
    EXPECT_EQ(view.header.persisted(), flags % 2 == 1);
    EXPECT_EQ(view.header.flushed_by_read(), flags / 2 % 2 == 1);
    EXPECT_EQ(view.header.left(), flags / 16 != 0);
  }
}

TEST(InspectObjectTest, AReservationHasItsHeaderAndKeyOnly) {
  Bytes bytes = WholeObject(TestPlace(), "key", "value");
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(ChecksumOffset(3)), bytes.end(), std::byte{0});
  const ObjectView view = InspectObject(TestPlace(), bytes);
  EXPECT_EQ(view.state, ObjectState::kHeader);
  EXPECT_EQ(view.key, "key");
  EXPECT_TRUE(view.value.empty());
  EXPECT_EQ(view.bytes_wanted, 0U);
}

TEST(InspectObjectTest, AValueThatIsHalfThereIsNotWhole) {
  const Bytes whole = WholeObject(TestPlace(), "key", "value");
  for (size_t placed = ChecksumOffset(3); placed < whole.size(); ++placed) {
    Bytes bytes(whole.size());
    std::copy_n(whole.begin(), placed, bytes.begin());
    EXPECT_EQ(InspectObject(TestPlace(), bytes).state, ObjectState::kHeader) << placed << " bytes placed";
  }
}

TEST(InspectObjectTest, ZeroesAreNoObject) {
  for (const size_t size : {size_t{32}, size_t{33}, size_t{4096}}) {
    const ObjectView view = InspectObject(TestPlace(), Bytes(size));
    EXPECT_EQ(view.state, ObjectState::kNothing);
    EXPECT_EQ(view.bytes_wanted, 0U);
  }
}

TEST(InspectObjectTest, EveryTruncationSaysHowManyBytesToRead) {
  const Bytes bytes = WholeObject(TestPlace(), "some key", std::string(90, 'v'));
  Bytes memory;
  for (size_t size = 0; size < bytes.size(); ++size) {
    const ObjectView view = InspectPrefix(TestPlace(), bytes, size, &memory);
    ASSERT_EQ(view.state, ObjectState::kNothing) << size;
    const size_t wanted = size < sizeof(ObjectHeader) ? sizeof(ObjectHeader)
                          : size < ChecksumOffset(8)  ? ChecksumOffset(8)
                                                      : bytes.size();
    ASSERT_EQ(view.bytes_wanted, wanted) << size;
  }
  EXPECT_EQ(InspectPrefix(TestPlace(), bytes, bytes.size(), &memory).state, ObjectState::kWhole);
}

// A reader that starts with the header alone needs two more looks for the object.
TEST(InspectObjectTest, FollowingTheBytesWantedLeadsToTheWholeObject) {
  const Bytes bytes = WholeObject(TestPlace(), "some key", std::string(90, 'v'));
  Bytes memory;
  size_t size = 0;
  for (int look = 0; look < 3; ++look) size = InspectPrefix(TestPlace(), bytes, size, &memory).bytes_wanted;
  EXPECT_EQ(size, bytes.size());
}

// No checksum covers the bits of kLeft.
bool IsOfLeft(size_t bit) {
  return bit / 8 == offsetof(ObjectHeader, flags) && ((1U << (bit % 8)) & ObjectHeader::kLeft) != 0;
}

TEST(InspectObjectTest, NoFlippedBitGoesUnnoticed) {
  Bytes bytes = WholeObject(TestPlace(), "key", "small value");
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    FlipBit(bytes, bit);
    const ObjectView view = InspectObject(TestPlace(), bytes);
    if (IsOfLeft(bit)) {
      EXPECT_EQ(view.state, ObjectState::kWhole) << "bit " << bit;
      EXPECT_TRUE(view.header.left()) << "bit " << bit;
      FlipBit(bytes, bit);
      continue;
    }
    EXPECT_NE(view.state, ObjectState::kWhole) << "bit " << bit;
    const bool in_header = bit / 8 < ChecksumOffset(3);
    EXPECT_EQ(view.state, in_header ? ObjectState::kNothing : ObjectState::kHeader) << "bit " << bit;
    FlipBit(bytes, bit);
  }
  EXPECT_EQ(InspectObject(TestPlace(), bytes).state, ObjectState::kWhole);
}

TEST(InspectObjectTest, NoFlippedBitOfAnExpiringObjectGoesUnnoticed) {
  Bytes bytes = WholeObject(TestPlace(), "key", "small value", 77, 0x0102030405);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    if (IsOfLeft(bit)) continue;
    FlipBit(bytes, bit);
    const ObjectView view = InspectObject(TestPlace(), bytes);
    const bool in_header = bit / 8 < ChecksumOffset(LabelSize(3, true));
    EXPECT_EQ(view.state, in_header ? ObjectState::kNothing : ObjectState::kHeader) << "bit " << bit;
    EXPECT_EQ(view.deadline, in_header ? 0U : 0x0102030405U) << "bit " << bit;
    FlipBit(bytes, bit);
  }
}

// A version that is left stays left, whichever two bits flip.
TEST(InspectObjectTest, TwoFlippedBitsNeverHideThatAVersionIsLeft) {
  Bytes bytes = WholeObject(TestPlace(), "k", "v");
  const uint64_t first_word = WithLeft(LoadAs<uint64_t>(bytes));
  std::memcpy(bytes.data(), &first_word, sizeof(first_word));
  EXPECT_EQ(InspectObject(TestPlace(), bytes).state, ObjectState::kWhole);
  for (size_t first = 0; first < bytes.size() * 8; ++first) {
    FlipBit(bytes, first);
    for (size_t second = 0; second < bytes.size() * 8; ++second) {
      if (second != first) FlipBit(bytes, second);
      const ObjectView view = InspectObject(TestPlace(), bytes);
      ASSERT_TRUE(view.state != ObjectState::kWhole || view.header.left()) << "bits " << first << ", " << second;
      if (second != first) FlipBit(bytes, second);
    }
    FlipBit(bytes, first);
  }
}

TEST(InspectObjectTest, NoTwoFlippedBitsGoUnnoticed) {
  Bytes bytes = WholeObject(TestPlace(), "k", "v");
  for (size_t first = 0; first < bytes.size() * 8; ++first) {
    FlipBit(bytes, first);
    for (size_t second = first + 1; second < bytes.size() * 8; ++second) {
      FlipBit(bytes, second);
      const ObjectView view = InspectObject(TestPlace(), bytes);
      ASSERT_EQ(view.state == ObjectState::kWhole, IsOfLeft(first) && IsOfLeft(second))
          << "bits " << first << ", " << second;
      ASSERT_TRUE(view.state != ObjectState::kWhole || view.header.left()) << "bits " << first << ", " << second;
      FlipBit(bytes, second);
    }
    FlipBit(bytes, first);
  }
}

TEST(InspectObjectTest, ObjectInAnotherPlaceDoesNotVerify) {
  const Bytes bytes = WholeObject(TestPlace(), "key", "value");
  for (int bit = 0; bit < 32; ++bit) {
    Place other_pool = TestPlace();
    other_pool.pool_seed ^= uint32_t{1} << bit;
    EXPECT_EQ(InspectObject(other_pool, bytes).state, ObjectState::kNothing) << bit;
    Place other_head = TestPlace();
    other_head.head ^= uint32_t{1} << bit;
    EXPECT_EQ(InspectObject(other_head, bytes).state, ObjectState::kNothing) << bit;
    if (bit == 31) continue;  // The bit is no part of an address.
    Place elsewhere = TestPlace();
    elsewhere.address = LogAddress(elsewhere.address.raw() ^ (uint32_t{1} << bit));
    EXPECT_EQ(InspectObject(elsewhere, bytes).state, ObjectState::kNothing) << bit;
  }
}

TEST(InspectObjectTest, TheValueOfAnotherVersionDoesNotCount) {
  Bytes bytes = WholeObject(TestPlace(), "key", "value", 1);
  const Bytes newer = WholeObject(TestPlace(), "key", "other", 2);
  // The header of version 2 stands before the value of version 1.
  std::copy_n(newer.begin(), ChecksumOffset(3), bytes.begin());
  EXPECT_EQ(InspectObject(TestPlace(), bytes).state, ObjectState::kHeader);
}

TEST(InspectObjectTest, AKeySizeOutOfRangeIsRefusedEvenWithAGoodChecksum) {
  for (const uint16_t key_size : {uint16_t{0}, uint16_t{kKeyBytesMax + 1}, uint16_t{UINT16_MAX}}) {
    ObjectHeader header{};
    header.key_size = key_size;
    header.kind = static_cast<uint8_t>(ObjectKind::kValue);
    const std::string key(key_size, 'k');
    header.header_crc = HeaderCrc(TestPlace(), header, key);
    Bytes bytes(ObjectBytes(key_size, 0));
    const uint32_t checksum = ObjectChecksum(header, {});
    std::memcpy(bytes.data(), &header, sizeof(header));
    std::memcpy(bytes.data() + kLabelOffset, key.data(), key.size());
    std::memcpy(bytes.data() + ChecksumOffset(key_size), &checksum, sizeof(checksum));
    const ObjectView view = InspectObject(TestPlace(), bytes);
    EXPECT_EQ(view.state, ObjectState::kNothing) << key_size;
    EXPECT_EQ(view.bytes_wanted, 0U) << key_size;
  }
}

TEST(InspectObjectTest, AValueOfFourGigabytesIsWantedAndNotTouched) {
  ObjectHeader header{};
  header.key_size = 3;
  header.kind = static_cast<uint8_t>(ObjectKind::kValue);
  header.value_size = UINT32_MAX;
  header.header_crc = HeaderCrc(TestPlace(), header, "key");
  Bytes bytes(64);
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + kLabelOffset, "key", 3);
  const ObjectView view = InspectObject(TestPlace(), bytes);
  EXPECT_EQ(view.state, ObjectState::kNothing);
  EXPECT_EQ(view.bytes_wanted, ObjectBytes(3, UINT32_MAX));
}

TEST(InspectObjectTest, GarbageIsNeverWhole) {
  constexpr uint64_t kSeed = 5;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  for (int i = 0; i < 100'000; ++i) {
    Bytes bytes(random.Uniform(200));
    for (std::byte& byte : bytes) byte = std::byte(random.Uniform(256));
    // Most sizes are possible ones. The function would refuse the others at once.
    if (bytes.size() >= 6 && random.Chance(0.9)) {
      const auto key_size = static_cast<uint16_t>(random.Between(1, 64));
      std::memcpy(bytes.data() + 4, &key_size, sizeof(key_size));
    }
    if (bytes.size() >= 12 && random.Chance(0.9)) {
      const auto value_size = static_cast<uint32_t>(random.Uniform(100));
      std::memcpy(bytes.data() + 8, &value_size, sizeof(value_size));
    }
    ASSERT_EQ(InspectObject(TestPlace(), bytes).state, ObjectState::kNothing) << "input " << i;
  }
}

TEST(InspectObjectTest, DamageOfAnyKindIsSafe) {
  constexpr uint64_t kSeed = 6;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  const Bytes whole = WholeObject(TestPlace(), "some key", std::string(60, 'v'));
  for (int i = 0; i < 100'000; ++i) {
    Bytes bytes = whole;
    for (uint64_t left = random.Between(1, 8); left > 0; --left)
      bytes[random.Uniform(bytes.size())] = std::byte(random.Uniform(256));
    bytes.resize(random.Between(0, bytes.size()));
    const ObjectView view = InspectObject(TestPlace(), bytes);
    if (view.state == ObjectState::kWhole) {
      ASSERT_EQ(bytes, whole) << "input " << i;  // The damage changed no byte.
    }
    if (view.state != ObjectState::kNothing) {
      ASSERT_EQ(view.key, "some key") << "input " << i;
    }
  }
}

// --- BytesWithoutValue

void WriteAt(Bytes* bytes, size_t granule, std::span<const std::byte> object) {
  std::copy(object.begin(), object.end(), bytes->begin() + static_cast<std::ptrdiff_t>(granule * kGranuleBytes));
}

TEST(BytesWithoutValueTest, StopsAtTheFirstValue) {
  const Bytes object = WholeObject(TestPlace(), "key", "value", 77, 12345);
  for (size_t granule = 0; granule < 21; ++granule) {
    Bytes bytes(25 * kGranuleBytes);
    WriteAt(&bytes, granule, object);
    EXPECT_EQ(BytesWithoutValue(bytes), granule * kGranuleBytes);
  }
}

TEST(BytesWithoutValueTest, PassesBytesWithoutOneToTheirEnd) {
  EXPECT_EQ(BytesWithoutValue({}), 0U);
  for (size_t granules = 1; granules < 10; ++granules) {
    const Bytes zeroes(granules * kGranuleBytes);
    EXPECT_EQ(BytesWithoutValue(zeroes), zeroes.size());
    const Bytes ones(granules * kGranuleBytes, std::byte{0xff});
    EXPECT_EQ(BytesWithoutValue(ones), ones.size());
  }
}

TEST(BytesWithoutValueTest, StopsForEachSizeOfAKeyAndForNoOtherKind) {
  for (const uint32_t key_size : {0U, 1U, 2U, kKeyBytesMax - 1, kKeyBytesMax, kKeyBytesMax + 1, 65535U}) {
    for (uint32_t kind = 0; kind < 256; ++kind) {
      for (const uint8_t flags : {uint8_t{0}, ObjectHeader::kExpiresFlag, ObjectHeader::kLeft, uint8_t{0xff}}) {
        ObjectHeader header{};
        header.header_crc = 0xffffffff;
        header.key_size = static_cast<uint16_t>(key_size);
        header.kind = static_cast<uint8_t>(kind);
        header.flags = flags;
        Bytes bytes(2 * sizeof(header));
        std::memcpy(bytes.data(), &header, sizeof(header));
        const bool may_be_value = header.is_value() && key_size != 0 && key_size <= kKeyBytesMax;
        EXPECT_EQ(BytesWithoutValue(bytes), may_be_value ? 0 : bytes.size()) << key_size << ", kind " << kind;
      }
    }
  }
}

TEST(BytesWithoutValueTest, PassesNoHeaderThatInspectLabelFinds) {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    Bytes bytes(512 * kGranuleBytes);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Uniform(round % 2 == 0 ? 256 : 3));
    const std::string value(random.Uniform(300), 'v');
    WriteAt(&bytes, random.Uniform(480), WholeObject(TestPlace(), "key", value));
    const uint64_t passed = BytesWithoutValue(bytes);
    for (uint64_t at = 0; at < passed; at += kGranuleBytes) {
      const ObjectView view = InspectLabel(TestPlace(), std::span(bytes).subspan(at));
      EXPECT_TRUE(view.state == ObjectState::kNothing || !view.header.is_value()) << at;
    }
  }
}

TEST(PoolSeedTest, EveryBitOfTheUuidCounts) {
  std::array<uint8_t, 16> uuid = kUuid;
  const uint32_t seed = PoolSeed(uuid);
  for (size_t bit = 0; bit < 128; ++bit) {
    uuid[bit / 8] = static_cast<uint8_t>(uuid[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(PoolSeed(uuid), seed) << bit;
    uuid[bit / 8] = static_cast<uint8_t>(uuid[bit / 8] ^ (1 << bit % 8));
  }
}

}  // namespace
}  // namespace erda::format
