#include "format/fixture.h"

#include <sstream>

#include "base/bytes.h"
#include "base/test_hash.h"

namespace erda::format {

std::string Hex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i > 0) text += i % 16 == 0 ? '\n' : ' ';
    text += kDigits[std::to_integer<size_t>(bytes[i] >> 4)];
    text += kDigits[std::to_integer<size_t>(bytes[i] & std::byte{15})];
  }
  return text;
}

std::string HexOf(std::string_view literal) {
  std::istringstream words{std::string(literal)};
  std::vector<std::byte> bytes;
  for (std::string word; words >> word;) {
    const size_t star = word.find('*');
    const size_t count = star == std::string::npos ? 1 : std::stoul(word.substr(star + 1));
    bytes.insert(bytes.end(), count, std::byte(std::stoul(word.substr(0, star), nullptr, 16)));
  }
  return Hex(bytes);
}

std::vector<std::byte> WholeObject(const Place& place, std::string_view key, std::string_view value, uint64_t version,
                                   uint64_t deadline) {
  ObjectHeader header{};
  header.key_size = static_cast<uint16_t>(key.size());
  header.kind = static_cast<uint8_t>(ObjectKind::kValue);
  header.flags = ObjectHeader::kPersistedFlag;
  if (deadline != 0) header.flags |= ObjectHeader::kExpiresFlag;
  header.value_size = static_cast<uint32_t>(value.size());
  header.previous = LogAddress::At(1, 128).raw();
  header.version = version;
  header.key_hash = HashKey(key);
  header.header_crc = HeaderCrc(place, header, key, deadline);
  const uint32_t checksum = ObjectChecksum(header, AsBytes(value));

  std::vector<std::byte> bytes;
  const auto its_deadline = BytesOf(deadline).first(deadline != 0 ? sizeof(deadline) : 0);
  for (const auto part : {BytesOf(header), its_deadline, AsBytes(key), BytesOf(checksum), AsBytes(value)})
    bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

Geometry TestGeometry() {
  Geometry geometry{};
  geometry.pool_size = 64 << 20;
  geometry.region_size = 1 << 20;
  geometry.segment_size = 1 << 18;
  geometry.index_slots = 4096;
  geometry.block_shift = 11;
  geometry.index_offset = 0x16000;
  geometry.regions_offset = 1 << 20;
  geometry.regions_per_shard = 31;
  geometry.shards = 2;
  geometry.heads_per_shard = 1;
  return geometry;
}

Superblock TestSuperblock(const Geometry& geometry, uint64_t generation) {
  Superblock superblock{};
  superblock.magic = kPoolMagic;
  superblock.format_version = kFormatVersion;
  superblock.uuid = kUuid;
  superblock.hash_seed = kTestHashSeed;
  superblock.generation = generation;
  superblock.clean = 1;
  superblock.geometry = geometry;
  for (uint8_t i = 0; i < 16; ++i) superblock.boot[i] = static_cast<uint8_t>(0xb0 + i);
  superblock.crc = SuperblockCrc(superblock);
  return superblock;
}

void FlipBit(std::span<std::byte> bytes, size_t bit) { bytes[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8); }

}  // namespace erda::format
