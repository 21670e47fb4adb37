// The buffer of one shard's stream, in shared memory that the caller gives: a header page, then a circular area.
//
//   byte 0           8         12      16     32         40       56      64    72       128        136      4096
//   +---------------+---------+-------+------+----------+--------+-------+-----+--------+----------+--------+----------+
//   | "ERDASTRM"    | version | shard | uuid | capacity | secret | epoch | end | zeroes | released | zeroes | the area
//   |
//   +---------------+---------+-------+------+----------+--------+-------+-----+--------+----------+--------+----------+
//
// uuid: of the pool. secret, epoch: of the ring that gets the stream (identity.h). capacity: the bytes of the area, a
// power of two. The byte at place p of the stream is byte p % capacity of the area. The area has the bytes from
// `released` to `end`, all of them whole entries (entry.h).
//
// One thread appends: the shard's. Two threads read: the one that writes the ring, and the checkpointer. The
// checkpointer releases. No thread waits for another. Their process may die at any instruction. Then Open finds the
// entries that were appended until then, all of them whole.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "erda/status.h"
#include "format/check.h"
#include "journal/entry.h"
#include "journal/identity.h"
#include "journal/place.h"
#include "journal/uuid.h"

namespace erda::journal {

inline constexpr uint64_t kStreamMagic = 0x4d52545341445245;  // "ERDASTRM"
inline constexpr uint32_t kStreamVersion = 1;

struct StreamHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t shard;
  Uuid uuid;
  uint64_t capacity;
  Secret secret;
  uint64_t epoch;
  // Each of the two places has its own cache line: two threads store them.
  uint64_t end;
  std::array<uint64_t, 7> reserved1;
  uint64_t released;
  std::array<uint64_t, 7> reserved2;
};
ERDA_FORMAT_SIZE(StreamHeader, 192);
ERDA_FORMAT_FIELD(StreamHeader, magic, 0);
ERDA_FORMAT_FIELD(StreamHeader, version, 8);
ERDA_FORMAT_FIELD(StreamHeader, shard, 12);
ERDA_FORMAT_FIELD(StreamHeader, uuid, 16);
ERDA_FORMAT_FIELD(StreamHeader, capacity, 32);
ERDA_FORMAT_FIELD(StreamHeader, secret, 40);
ERDA_FORMAT_FIELD(StreamHeader, epoch, 56);
ERDA_FORMAT_FIELD(StreamHeader, end, 64);
ERDA_FORMAT_FIELD(StreamHeader, released, 128);

// Does not own the memory; a copy is the same stream. REQUIRES: the memory begins at a page, and outlives the Stream.
class Stream {
 public:
  static constexpr uint64_t kHeaderBytes = 4096;
  // An entry of the largest size and the filler before it always fit into an empty area.
  static constexpr uint64_t kCapacityMin = 256 << 10;
  static constexpr uint64_t kCapacityMax = uint64_t{1} << 36;
  static_assert(kCapacityMin >= 2 * kEntrySpaceMax);
  [[nodiscard]] static bool IsCapacity(uint64_t bytes);
  [[nodiscard]] static constexpr uint64_t MemoryFor(uint64_t capacity) { return kHeaderBytes + capacity; }

  // Makes an empty stream of the memory: it begins and ends at `first`, a multiple of 16. A process that dies meanwhile
  // may leave memory that Open takes, so the caller must know whether Format came to its end (image.h). Returns
  // kInvalidArgument if the memory does not have MemoryFor(a capacity) bytes, or if `first` is no such place.
  static Result<Stream> Format(std::span<std::byte> memory, const Uuid& uuid, uint32_t shard, Place first,
                               const RingLife& life = {});
  // Goes on with a stream that an earlier process left. Returns kInvalidArgument if the memory has the stream of
  // another pool, shard or version, or one of another size. Returns kCorruption if it has none.
  static Result<Stream> Open(std::span<std::byte> memory, const Uuid& uuid, uint32_t shard);

  // The shard's thread: append one entry. `fenced`: a fence stands before it. Return false if there is no room; then
  // nothing was appended. REQUIRE: the range is not empty, and bytes.size() <= kEntryBytesMax. A piece that FirstPiece
  // returns is never longer.
  [[nodiscard]] bool Append(uint64_t offset, std::span<const std::byte> bytes, bool fenced = false);
  [[nodiscard]] bool AppendZeroes(uint64_t offset, uint64_t size, bool fenced = false);

  [[nodiscard]] uint32_t shard() const { return header_->shard; }
  [[nodiscard]] RingLife life() const { return {header_->secret, header_->epoch}; }
  // Any thread. A thread that sees a new end also sees all bytes before it.
  [[nodiscard]] Place end() const {
    // Pairs with the release of Publish.
    return Word(header_->end).load(std::memory_order_acquire);
  }
  [[nodiscard]] Place released() const {
    // Pairs with the release of Release.
    return Word(header_->released).load(std::memory_order_acquire);
  }
  [[nodiscard]] uint64_t capacity() const { return capacity_; }
  // Any thread. Returns how many bytes of the area are free. The shard's thread may find more a moment later, and the
  // disk's thread fewer. An entry at the end of the area may need more than its own space.
  [[nodiscard]] uint64_t room() const {
    // In this order the difference is never negative: `released` may only have grown since.
    const Place released = this->released();
    return capacity_ - std::min(capacity_, end() - released);
  }

  // The threads of the disk. Returns the bytes of the stream from one place to another, in one or two pieces. Each
  // piece has whole entries if both places are between entries. The bytes stay as they are until they are released.
  // REQUIRES: released() <= from <= to <= an end() that this thread has seen.
  [[nodiscard]] std::array<std::span<const std::byte>, 2> Bytes(Place from, Place to) const;
  // The threads of the disk. Returns the last place between two entries that is at most `most` bytes after `from`, and
  // not after end(). It is `from` itself only if the stream ends there, or if the memory is damaged. REQUIRES: `from`
  // is such a place, and most >= kEntrySpaceMax.
  [[nodiscard]] Place Cut(Place from, uint64_t most) const;
  // The threads of the disk, and the shard's. Returns true if the stream has a place between two entries there. Reads
  // each entry's header on the way. REQUIRES: `from` is such a place, and released() <= from <= place <= end().
  [[nodiscard]] bool IsBetweenEntries(Place from, Place place) const;
  // The checkpointer's thread: gives the space before `place` back to the shard. REQUIRES: released() <= place <=
  // end(), and the place is between two entries.
  void Release(Place place) {
    // Pairs with the acquire in Take: the shard overwrites the bytes after this thread has read them.
    Word(header_->released).store(place, std::memory_order_release);
  }

 private:
  Stream(std::span<std::byte> memory, uint64_t capacity);
  [[nodiscard]] static std::atomic_ref<uint64_t> Word(uint64_t& word) { return std::atomic_ref<uint64_t>(word); }

  // Space for one entry, and the end that the stream will have with it.
  struct Space {
    std::byte* at = nullptr;  // Null: there is no room.
    Place end = 0;
  };
  Space Take(uint64_t size);
  [[nodiscard]] Place AfterEntryAt(Place place) const;
  [[nodiscard]] uint64_t InArea(Place place) const { return place & (capacity_ - 1); }
  void Publish(Place end) {
    // Pairs with the acquire of end(), also with one in the next process. After a kill, memory has the stores of the
    // dead process up to some instruction. If this one is among them, so are the bytes of the entry and its filler.
    Word(header_->end).store(end, std::memory_order_release);
  }

  StreamHeader* header_;
  std::byte* area_;
  uint64_t capacity_;
};

}  // namespace erda::journal
