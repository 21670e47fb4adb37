#include "server/versions/new_version.h"

#include <array>
#include <cstring>

#include "format/log_layout.h"

namespace erda::server {

using format::ObjectHeader;

uint32_t MakeHeader(const log::ShardLog& log, NewVersion* version, format::ObjectKind kind, std::string_view key,
                    uint64_t key_hash, uint32_t value_size, uint8_t flags, uint64_t number, uint32_t previous) {
  ObjectHeader& header = version->header;
  header.key_size = static_cast<uint16_t>(key.size());
  header.kind = static_cast<uint8_t>(kind);
  header.flags = static_cast<uint8_t>(flags | (version->deadline != 0 ? ObjectHeader::kExpiresFlag : 0));
  header.value_size = value_size;
  header.previous = previous;
  header.version = number;
  header.key_hash = key_hash;
  const format::Place place = log.PlaceOf(version->head, version->space.address);
  header.header_crc = format::HeaderCrc(place, header, key, version->deadline);
  return place.generation;
}

void WriteHeaderAndKey(nvm::Writer& nvm, const NewVersion& version, std::string_view key, const uint32_t* checksum) {
  std::array<std::byte, format::ValueOffset(format::kLabelBytesMax)> buffer;
  std::memcpy(buffer.data(), &version.header, sizeof(ObjectHeader));
  if (version.deadline != 0) std::memcpy(buffer.data() + format::kLabelOffset, &version.deadline, sizeof(uint64_t));
  std::memcpy(buffer.data() + version.header.key_offset(), key.data(), key.size());
  size_t size = format::ChecksumOffset(version.header.label_size());
  if (checksum != nullptr) {
    std::memcpy(buffer.data() + size, checksum, sizeof(*checksum));
    size += sizeof(*checksum);
  }
  nvm.Write(version.space.offset, std::span(buffer).first(size));
}

}  // namespace erda::server
