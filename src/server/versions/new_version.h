// A version that a request is about to publish: its place in index and log, and its header. Free functions make the
// header and write it. The shard's thread calls them.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "erda/status.h"
#include "format/object.h"
#include "index/index.h"
#include "log/shard_log.h"
#include "nvm/writer.h"
#include "server/versions/all_published.h"
#include "server/versions/in_flight.h"

namespace erda::server {

struct NewVersion {
  index::Slot slot = 0;
  // The settled value that the entry names, if its place is known: the entry's word, the value's offset in the pool,
  // and its space. Otherwise all three are 0.
  format::EntryWord left;
  uint64_t left_at = 0;
  uint32_t left_bytes = 0;
  bool replaces = false;  // the slot's entry is the key's, so one store publishes the version
  uint32_t head = 0;
  log::ShardLog::Space space;
  uint64_t deadline = 0;
  format::ObjectHeader header{};
};

// Returns the reservation for a version in flight. Requires: its header is made.
inline Reservation ReservationOf(const NewVersion& version, SessionId session) {
  Reservation reservation;
  reservation.key_hash = version.header.key_hash;
  reservation.version = version.header.version;
  reservation.address = version.space.address;
  reservation.head = version.head;
  reservation.bytes = SpaceOf(version.header);
  reservation.session = session;
  return reservation;
}

// (I9) Reserves space in the log (Tails::Reserve). This may open a segment, and mark the earlier ones. So no put waits
// that stands in one of them.
inline Result<log::Space> ReserveSpace(AllPublished /*proof*/, log::ShardLog& log, uint32_t head, uint64_t bytes,
                                       uint64_t number) {
  return log.Reserve(head, bytes, number);
}

// Fills in version->header, and returns the generation of the version's region. previous: a log address. Requires:
// version->head, ->space and ->deadline are set.
inline uint32_t MakeHeader(const log::ShardLog& log, NewVersion* version, format::ObjectKind kind, std::string_view key,
                           uint64_t key_hash, uint32_t value_size, uint8_t flags, uint64_t number, uint32_t previous) {
  format::ObjectHeader& header = version->header;
  header.key_size = static_cast<uint16_t>(key.size());
  header.kind = static_cast<uint8_t>(kind);
  header.flags = static_cast<uint8_t>(flags | (version->deadline != 0 ? format::ObjectHeader::kExpiresFlag : 0));
  header.value_size = value_size;
  header.previous = previous;
  header.version = number;
  header.key_hash = key_hash;
  const format::Place place = log.PlaceOf(version->head, version->space.address);
  header.header_crc = format::HeaderCrc(place, header, key, version->deadline);
  return place.generation;
}

// Writes header, deadline and key to the version's space, and the checksum if it is not null. (I3) Does not flush: the
// caller makes these bytes persistent together with the ones that it writes.
inline void WriteHeaderAndKey(nvm::Writer& nvm, const NewVersion& version, std::string_view key,
                              const uint32_t* checksum) {
  const uint64_t at = version.space.offset;
  const uint64_t key_at = at + version.header.key_offset();
  nvm.Write(at, BytesOf(version.header));
  if (version.deadline != 0) nvm.Write(at + format::kLabelOffset, BytesOf(version.deadline));
  nvm.Write(key_at, AsBytes(key));
  if (checksum != nullptr) nvm.Write(key_at + key.size(), BytesOf(*checksum));
}

}  // namespace erda::server
