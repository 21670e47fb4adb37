// The part of a front that has the newest bytes of one shard's stream (docs/journal.md, "A small NVM in front"). A
// front is a small NVM. Bytes that are there are held, and the disk gets them later.
//
//   byte 0        8         12      16     32         40       56      64         72    80      128
//   +------------+---------+-------+------+----------+--------+-------+----------+-----+-------+------+
//   | "ERDAFRNT" | format  | shard | uuid | capacity | secret | epoch | released | end | zeroes| area |
//   |            | version |       |      |          |        |       |          |     |       |      |
//   +------------+---------+-------+------+----------+--------+-------+----------+-----+-------+------+
//
// uuid: of the pool. secret, epoch: of the ring that gets the stream. capacity: the bytes of the area. The byte at
// place p of the stream is byte p % capacity of the area. The area has the bytes from `released` to `end`, if `end` is
// greater; otherwise it has none.
//
// Owns the words of the part, by the writer that it is given. One thread at a time, the shard's, calls it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "erda/status.h"
#include "format/check.h"
#include "journal/identity.h"
#include "journal/place.h"
#include "journal/record.h"
#include "nvm/writer.h"

namespace erda::journal {

inline constexpr uint64_t kFrontMagic = 0x544e524641445245;  // "ERDAFRNT"

struct FrontHeader {
  uint64_t magic;
  uint32_t format_version;
  uint32_t shard;
  Uuid uuid;
  uint64_t capacity;
  Secret secret;
  uint64_t epoch;
  uint64_t released;
  uint64_t end;
  uint64_t reserved[6];
};
ERDA_FORMAT_SIZE(FrontHeader, 128);
ERDA_FORMAT_FIELD(FrontHeader, shard, 12);
ERDA_FORMAT_FIELD(FrontHeader, uuid, 16);
ERDA_FORMAT_FIELD(FrontHeader, capacity, 32);
ERDA_FORMAT_FIELD(FrontHeader, secret, 40);
ERDA_FORMAT_FIELD(FrontHeader, epoch, 56);
ERDA_FORMAT_FIELD(FrontHeader, released, 64);
ERDA_FORMAT_FIELD(FrontHeader, end, 72);

class FrontPart {
 public:
  // Makes an empty part of these bytes of the NVM, which begins and ends at `first`. Durable on return. A power cut
  // meanwhile leaves a part that Open refuses, or one without bytes. REQUIRES: `offset` is a multiple of 64, and size
  // > sizeof(FrontHeader). The writer outlives the part.
  static FrontPart Format(nvm::Writer& nvm, uint64_t offset, uint64_t size, const RingIdentity& identity,
                          uint64_t epoch, Place first);
  // Goes on with a part that an earlier process left, and makes its words durable: that process may not have come to
  // its fence. Returns kNotFound if it has no part of this pool, shard, secret
  // and size, and kCorruption if its numbers cannot be. After a Format that was cut off, the part has no bytes, and its
  // end is no place: Format has to come next.
  static Result<FrontPart> Open(nvm::Writer& nvm, uint64_t offset, uint64_t size, const RingIdentity& identity);

  // Adds the bytes of the stream from place `from` on. They are held on return, and all before them. Returns false, and
  // changes nothing that counts, if there is no room before a Release, or if the NVM has failed. Bytes between end()
  // and `from` are left out: then the part has only those from `from` on. REQUIRES: from >= end(), and the disk holds
  // the stream up to `from` if it is greater.
  [[nodiscard]] bool Append(Place from, Parts bytes);
  // The disk holds the stream up to this place, so the part needs nothing before it.
  void Release(Place place);

  // Makes the part blank: it belongs to no journal any more.
  static void Clear(nvm::Writer& nvm, uint64_t offset);
  // Returns true if nobody's part is there: the header is blank, or of this ring and only half made or cleared.
  [[nodiscard]] static bool IsFree(const nvm::Writer& nvm, uint64_t offset, uint64_t size,
                                   const RingIdentity& identity);

  // Returns false after a Format that was cut off.
  [[nodiscard]] bool is_formatted() const { return released_ != UINT64_MAX; }
  [[nodiscard]] uint64_t epoch() const { return epoch_; }
  [[nodiscard]] uint64_t capacity() const { return capacity_; }
  // Returns how many bytes it has that were not released.
  [[nodiscard]] uint64_t used() const { return end_ - released_; }
  [[nodiscard]] Place end() const { return end_; }

  // The bytes for a restart, and the place of the first one.
  struct Found {
    Place from;
    std::vector<std::byte> bytes;
  };
  [[nodiscard]] Found Read() const;

 private:
  FrontPart(nvm::Writer& nvm, uint64_t offset, uint64_t capacity) : nvm_(&nvm), offset_(offset), capacity_(capacity) {}
  void StoreWord(uint64_t at, uint64_t value);
  void Write(Place at, std::span<const std::byte> bytes);
  // Makes the space before `released_` usable.
  void PersistReleased();
  [[nodiscard]] uint64_t area() const { return offset_ + sizeof(FrontHeader); }

  nvm::Writer* nvm_;
  uint64_t offset_;
  uint64_t capacity_;
  uint64_t epoch_ = 0;
  Place released_ = 0;          // As Release said.
  Place durable_released_ = 0;  // As the NVM says.
  Place end_ = 0;
};

}  // namespace erda::journal
