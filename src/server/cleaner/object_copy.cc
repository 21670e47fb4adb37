#include "server/cleaner/object_copy.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/planted.h"

namespace erda::server {

namespace {

// From this size on, another pass over the value takes longer than to derive one checksum from the other.
constexpr uint64_t kLongBytes = 4 << 10;

// Returns the checksum of the value with the new header. `former` is its checksum with the former header. The two
// differ only in the state in which the value's bytes begin, and a checksum is linear in that state.
uint32_t ChecksumWith(const format::ObjectHeader& header, uint32_t former_crc, uint32_t former,
                      std::span<const std::byte> value) {
  if (value.size() < kLongBytes) return format::ObjectChecksum(header, value);
  return Crc32cOfBoth(former_crc ^ header.header_crc, former, value.size());
}

}  // namespace

// Copies the value first, and then verifies the copy, so it notices a value that changes in between. Gives a damaged
// value an invalid checksum.
void CopyObject(nvm::Writer& nvm, const format::ObjectView& object, uint64_t from, const CopySpace& to) {
  const uint64_t label_size = object.header.label_size();
  const uint64_t space = SpaceOf(object.header);
  if (space > nvm::Writer::kPieceAhead) nvm.WillUse(from, space);
  const auto original = nvm.Bytes(from, space);
  format::ObjectHeader header = object.header;
  header.previous = 0;  // nobody needs a version older than a settled one
  header.flags &= static_cast<uint8_t>(~format::ObjectHeader::kLeft);
  header.header_crc = format::HeaderCrc(to.place, header, object.key, object.deadline);

  const uint64_t value_at = to.offset + format::ValueOffset(label_size);
  nvm.Write(value_at, original.subspan(format::ValueOffset(label_size), header.value_size));
  const auto value = nvm.Bytes(value_at, header.value_size);
  const auto stated = LoadAs<uint32_t>(original.subspan(format::ChecksumOffset(label_size)));
  const uint32_t former = format::ObjectChecksum(object.header, value);
  const bool whole = former == stated || Planted(Flaw::kCopiesUnverified);
  uint32_t checksum = ChecksumWith(header, object.header.header_crc, former, value);
  if (!whole) checksum = ~checksum;
  nvm.Write(to.offset, BytesOf(header));
  nvm.Write(to.offset + format::kLabelOffset, original.subspan(format::kLabelOffset, label_size));
  nvm.Write(to.offset + format::ChecksumOffset(label_size), BytesOf(checksum));
  if (!Planted(Flaw::kCopyNotFlushed)) nvm.Flush(to.offset, space);
}

}  // namespace erda::server
