#include "journal/record.h"

#include <cassert>
#include <cstring>

#include "base/crc32c.h"

namespace erda::journal {

namespace {

uint32_t RecordCrc(RecordHeader header, std::span<const std::byte> bytes) {
  header.crc = 0;
  return Crc32c(Crc32c(0, BytesOf(header)), bytes);
}

bool IsExpected(const RecordHeader& header, const RingIdentity& identity, const Expected& expected) {
  return header.magic == kRecordMagic && header.format_version == kFormatVersion && header.uuid == identity.uuid &&
         header.secret == identity.secret && header.shard == identity.shard && header.place == expected.place &&
         expected.epoch_min <= header.epoch && header.epoch <= expected.epoch_max && header.bytes > 0 &&
         header.bytes <= kRecordBytesMax && header.bytes <= UINT64_MAX - header.place && header.held <= header.place;
}

}  // namespace

std::span<const std::byte> EncodeRecord(const RingIdentity& identity, const Record& record, Parts parts,
                                        std::span<std::byte> to) {
  uint64_t size = sizeof(RecordHeader);
  for (const auto part : parts) {
    if (part.empty()) continue;  // memcpy takes no null pointer, even for 0 bytes.
    assert(part.size() <= to.size() - size);
    std::memcpy(to.data() + size, part.data(), part.size());
    size += part.size();
  }
  const std::span<const std::byte> bytes = to.first(size).subspan(sizeof(RecordHeader));
  assert(!bytes.empty() && bytes.size() <= kRecordBytesMax);
  RecordHeader header{};
  header.magic = kRecordMagic;
  header.format_version = kFormatVersion;
  header.uuid = identity.uuid;
  header.shard = identity.shard;
  header.bytes = static_cast<uint32_t>(bytes.size());
  header.epoch = record.epoch;
  header.place = record.from;
  header.held = record.held;
  header.time_us = record.time_us;
  header.secret = identity.secret;
  header.crc = RecordCrc(header, bytes);
  std::memcpy(to.data(), &header, sizeof(header));
  const auto whole = to.first(RecordBlocks(bytes.size()) * Disk::kBlock);
  std::memset(whole.data() + size, 0, whole.size() - size);
  return whole;
}

std::optional<uint64_t> ExpectedBlocks(std::span<const std::byte> bytes, const RingIdentity& identity,
                                       const Expected& expected) {
  const auto header = LoadAs<RecordHeader>(bytes);
  if (!IsExpected(header, identity, expected)) return {};
  return RecordBlocks(header.bytes);
}

std::optional<Record> ReadRecord(std::span<const std::byte> bytes, const RingIdentity& identity,
                                 const Expected& expected) {
  const auto header = LoadAs<RecordHeader>(bytes);
  if (!IsExpected(header, identity, expected)) return {};
  if (header.bytes > bytes.size() - sizeof(RecordHeader)) return {};
  const auto stream = bytes.subspan(sizeof(RecordHeader), header.bytes);
  if (RecordCrc(header, stream) != header.crc) return {};
  return Record{header.place, header.held, header.epoch, header.time_us, stream};
}

}  // namespace erda::journal
