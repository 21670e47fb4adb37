// What a client has of the log of one shard: chunks that it fills itself (docs/protocol.md, "Put, delegated").
//
// For each head one that is being filled and one that comes next, which is asked for when half of the first is used: so
// a client that puts all the time never waits for one. Each time it asks for twice as much as it was given. When one
// was taken back, since it was not used for a while or its region is wanted, it begins small again: the size follows
// its rate. If less than half of it was used, or if it is refused one since space is short, its puts go another way for
// a while.
#pragma once

#include <cstdint>
#include <vector>

#include "base/fifo.h"
#include "format/log_address.h"
#include "format/messages.h"
#include "format/object.h"

namespace erda::client {

class Delegated {
 public:
  struct Chunk {
    uint32_t head = 0;
    format::LogAddress address;  // of its header
    uint64_t tail = 0;           // where the next object stands, from its beginning
    uint64_t bytes = 0;
    uint64_t version = 0;     // in its header
    uint32_t generation = 0;  // of its region
    uint32_t window = 0;      // its key, if there is one
    uint32_t in_flight = 0;   // puts there that are not answered
    bool taken_back = false;
    bool passed = false;  // the one behind it is being filled: the server holds it no more once it knows that
    [[nodiscard]] uint64_t room() const { return taken_back || passed ? 0 : bytes - tail; }
    [[nodiscard]] bool Holds(uint32_t of_head, format::LogAddress object) const {
      return head == of_head && address.slot() == object.slot() &&
             object.offset_in_slot() - address.offset_in_slot() < bytes;
    }
  };

  // The connection is new, to a shard with so many heads, from this one on; no chunk has more bytes. Or it is gone (0).
  void Reset(uint32_t first_head, uint32_t heads, uint64_t bytes_max);

  // It has chunks, or something is to be said of them: the server may have something to say, too.
  [[nodiscard]] bool active() const { return sending || !chunks_.empty() || !to_send.empty(); }
  // The chunk of the head where an object of so many bytes goes, or null. Asks for another one in time.
  Chunk* Find(uint32_t head, uint64_t object_bytes);
  // The place for it, in a chunk that Find gave. The chunks of the head before that one are used no more.
  format::LogAddress Place(Chunk& chunk, uint64_t object_bytes);
  // A put there was answered; refused: the server takes none there any more.
  void OnAnswer(uint32_t head, format::LogAddress object, bool refused);

  // The answer to a request for a chunk of this head.
  void OnDelegated(uint32_t head, const format::Reply& reply);
  void OnRefused(uint32_t head);
  // The server takes back what begins there. (It does not say in which head: another head's chunk at such an address is
  // given back as well, which does no harm.)
  void OnTakenBack(format::LogAddress address);

  // Requests that concern chunks: sent one after the other.
  Fifo<format::Request> to_send;
  bool sending = false;

 private:
  static constexpr uint64_t kObjectsAtFirst = 8;
  // So many puts go another way before it asks again.
  static constexpr uint32_t kPatience = 64;
  struct Head {
    bool asked = false;
    uint32_t patience = 0;
    uint64_t wanted = 0;
  };

  [[nodiscard]] Head& HeadAt(uint32_t head) { return heads_[head - first_head_]; }
  void Ask(uint32_t head, uint64_t object_bytes);
  void TakeBack(Chunk& chunk);
  // Forgets it if nothing of it is in flight, and it is not to be filled any more.
  bool Drop(const Chunk& chunk);

  std::vector<Chunk> chunks_;  // in the order in which they were given
  std::vector<Head> heads_;    // of the shard
  uint32_t first_head_ = 0;
  uint64_t bytes_max_ = 0;
};

}  // namespace erda::client
