// A page of a scan: all keys of a stretch of the hash space, told by one-sided Reads alone (docs/protocol.md, "Scan").
//
// A key's place in its shard is the low 32 bits of its hash in reverse order. The keys of a block share some low bits.
// So a block is one interval of places, and a split cuts the interval in two. A scan goes through 2^depth intervals, in
// the order of the bits that their keys share. If there are as many blocks, that is the order of their numbers.
//
// The order of the places would be worse for a program that puts the scanned keys into another pool. It would fill one
// block there after the other, and the pool could split none of them before all were full.
//
// Owns the page until its caller takes it. Requires an engine, whose operations it starts. Only the client's thread
// calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "client/engine.h"
#include "client/operation.h"
#include "erda/client.h"
#include "erda/status.h"

namespace erda::client {

//   bit 63         48 47     40 39     32 31                         0
//   +----------------+---------+---------+----------------------------+
//   | pool           | shard   | depth   | position                   |
//   +----------------+---------+---------+----------------------------+
// `pool` has bits of the pool's seed, so that a cursor is good for one pool. `position` is the interval's number, of
// `depth` bits, and then the place in the interval. If it is 0, the scan begins the shard, and chooses the depth. If
// the cursor is 0, a scan begins.
struct ScanCursor {
  uint32_t shard = 0;
  uint32_t depth = 0;
  uint32_t position = 0;
  uint16_t pool = 0;

  static ScanCursor From(uint64_t raw) {
    return {static_cast<uint32_t>(raw >> 40) & 0xff, static_cast<uint32_t>(raw >> 32) & 0xff,
            static_cast<uint32_t>(raw), static_cast<uint16_t>(raw >> 48)};
  }
  [[nodiscard]] uint64_t raw() const {
    return uint64_t{pool} << 48 | uint64_t{shard} << 40 | uint64_t{depth} << 32 | position;
  }
};
static_assert(format::kShardsMax <= 0xff);

class Scan {
 public:
  // REQUIRES: the client is connected. The owner keeps the scan until GoOn has returned true.
  Scan(Engine& engine, const ScanOptions& options);
  Scan(const Scan&) = delete;
  Scan& operator=(const Scan&) = delete;

  // Begins operations as long as there is room. Its caller calls it again after a Poll. Returns true when the page has
  // ended, and no operation is under way.
  bool GoOn();
  // Returns the page, or the error that ended the scan. REQUIRES: GoOn has returned true.
  Result<ScanPage> Take();

  // Returns the place of the keys with these low 32 bits in their hashes. The function is its own inverse.
  [[nodiscard]] static uint32_t PlaceOf(uint32_t hash_low);
  // Returns the position of a place, for a cursor.
  [[nodiscard]] static uint32_t PositionOf(uint32_t place, uint32_t depth);

 private:
  struct Found {
    uint32_t place;
    FoundEntry entry;
  };

  [[nodiscard]] bool HasRoom() const { return engine_.in_flight() < engine_.queue_depth(); }
  [[nodiscard]] bool CanBe(const ScanCursor& cursor) const;
  [[nodiscard]] uint64_t BytesOf(const FoundEntry& entry) const;
  void ReadBlock();
  void OnBlock(const BlockView& block);
  void CutAt(uint64_t end);
  void Follow(size_t number);
  void OnEntry(size_t number, std::string_view key, const Result<VersionedView>& got);
  void EndRound();
  void Keep(size_t number, std::string_view key, const VersionedView& found);
  void Fail(Status status);

  Engine& engine_;
  const ScanOptions options_;
  ScanPage page_;
  Status status_;
  bool complete_ = false;
  const uint16_t pool_;
  const size_t shards_;  // When the scan began. The client may have learned of another pool since.
  size_t under_way_ = 0;
  size_t blocks_ = 0;  // The number of stretches that the page has gone through.
  size_t bytes_ = 0;   // The bytes of objects on the page, about.

  uint32_t shard_ = 0;
  uint32_t depth_ = 0;
  uint64_t begin_ = 0;           // The stretch of places that the scan looks at begins here.
  uint64_t end_ = 0;             // The stretch ends here, once its block has been read.
  bool ranged_ = false;          // The block of the stretch has been read.
  bool looks_again_ = false;     // The block that was read last was read again, since entries had changed.
  uint32_t looks_ = 0;           // The number of times that it was read again.
  size_t told_before_ = 0;       // The keys of the page that are of earlier stretches.
  std::vector<Found> found_;     // The entries of the stretch in the block that was read last.
  size_t followed_ = 0;          // The number of these whose keys the scan has asked for.
  std::vector<uint32_t> again_;  // Places in the stretch where an entry had changed before its key was known.
};

}  // namespace erda::client
