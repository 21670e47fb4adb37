// A page of a scan: all keys of a stretch of the hash space, told by one-sided Reads alone (docs/protocol.md, "Scan").
//
// A key's place in its shard is the low 32 bits of its hash in reverse order: so a block of the index, whose keys share
// so many low bits, is one interval of places, and a split cuts it in two. A scan goes through 2^depth intervals in the
// order of the bits that their keys share: as the blocks are numbered, if there are as many. (Not in the order of the
// places: who puts what a scan tells into another pool would fill one block there after the other, and none of them
// could be split before all were.)
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
// pool: of its seed, so that a cursor is good for one pool. position: the interval's number, depth bits, and where in
// it; 0: the shard begins, and the depth is chosen then. All 0: a scan begins.
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
  // REQUIRES: connected. It stays until GoOn has said true.
  Scan(Engine& engine, const ScanOptions& options);
  Scan(const Scan&) = delete;
  Scan& operator=(const Scan&) = delete;

  // Begins what there is room for; to be called again after a Poll. True when all is done, and nothing is under way.
  bool GoOn();
  // What it came to, then.
  Result<ScanPage> Take();

  // Of the keys with these low 32 bits in their hashes; its own inverse.
  [[nodiscard]] static uint32_t PlaceOf(uint32_t hash_low);
  // Of a place, and the other way round.
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
  const size_t shards_;  // when the scan began: the client may have learned of another pool since
  size_t under_way_ = 0;
  size_t blocks_ = 0;  // that are through
  size_t bytes_ = 0;   // of objects, about

  uint32_t shard_ = 0;
  uint32_t depth_ = 0;
  uint64_t begin_ = 0;           // the places that are looked at: from here
  uint64_t end_ = 0;             // to there, once the block was read that they are in
  bool ranged_ = false;          // it was
  bool looks_again_ = false;     // at what had changed, in the block that was read last
  uint32_t looks_ = 0;           // of that kind
  size_t told_before_ = 0;       // keys of the page that are of earlier stretches
  std::vector<Found> found_;     // in that
  size_t followed_ = 0;          // of them
  std::vector<uint32_t> again_;  // places in that stretch where an entry had changed before its key was known
};

}  // namespace erda::client
