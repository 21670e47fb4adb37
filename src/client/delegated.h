// The chunks in the log of one shard that a client fills itself (docs/protocol.md, "Put, delegated").
//
// For each head the client has a chunk that it fills, and the next one. It asks for the next one when half of the first
// is used, so a client that puts all the time never waits for one. Each time it asks for twice the size that it was
// given. The server revokes a chunk that was unused for some time, or whose region it needs. Then the client begins
// with a small chunk again, so the size follows its rate of puts. If less than half of a revoked chunk was used, or if
// the server refuses a chunk, the next kPatience puts go another way.
//
// Owns what the client knows of its chunks, and the requests about them. Only OwnRequests (own_requests.h) reaches it,
// and sends these requests. Requires: Reset for each connection that comes up, and for each that is gone. Only the
// client's thread calls it.
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
    format::LogAddress address;  // The place of its header.
    uint64_t tail = 0;           // The offset of the next object in the chunk.
    uint64_t bytes = 0;
    uint64_t version = 0;     // The version in its header.
    uint32_t generation = 0;  // The generation of its region.
    uint32_t window = 0;      // The key of its window, if it has one.
    uint32_t in_flight = 0;   // Puts there that are not answered.
    bool revoked = false;
    bool passed = false;  // The client fills the next one. The server lets this one go once it knows that.
    [[nodiscard]] uint64_t room() const { return revoked || passed ? 0 : bytes - tail; }
    [[nodiscard]] bool Holds(uint32_t of_head, format::LogAddress object) const {
      return head == of_head && address.slot() == object.slot() &&
             object.offset_in_slot() - address.offset_in_slot() < bytes;
    }
  };

  // Begins a new connection, to a shard with `heads` heads from `first_head` on, whose chunks have at most `bytes_max`
  // bytes. If `heads` is 0, the connection is gone.
  void Reset(uint32_t first_head, uint32_t heads, uint64_t bytes_max);

  // Returns true if the client has chunks, or requests about them. Then the server may have a message about them, too.
  [[nodiscard]] bool active() const { return sending || !chunks_.empty() || !to_send.empty(); }
  // Returns the chunk of the head for an object of this size, or null. Asks for the next chunk in time.
  Chunk* Find(uint32_t head, uint64_t object_bytes);
  // Takes the place for the object, in a chunk that Find returned. The client uses the earlier chunks of the head no
  // more.
  format::LogAddress Place(Chunk& chunk, uint64_t object_bytes);
  // Notes that a put there was answered. refused: the server takes no puts there any more.
  void OnAnswer(uint32_t head, format::LogAddress object, bool refused);

  // Takes the answer to a request for a chunk of this head.
  void OnDelegated(uint32_t head, const format::Reply& reply);
  void OnRefused(uint32_t head);
  // Notes that the server revokes the chunk at this address. The message does not name the head, so the client also
  // gives back another head's chunk at this address, which does no harm.
  void OnRevoked(format::LogAddress address);

  // Requests about chunks, which the client sends one after the other.
  Fifo<format::Request> to_send;
  bool sending = false;

 private:
  static constexpr uint64_t kObjectsAtFirst = 8;
  // This number of puts go another way before the client asks again.
  static constexpr uint32_t kPatience = 64;
  struct Head {
    bool asked = false;
    uint32_t patience = 0;
    uint64_t wanted = 0;
  };

  [[nodiscard]] Head& HeadAt(uint32_t head) { return heads_[head - first_head_]; }
  void Ask(uint32_t head, uint64_t object_bytes);
  void Revoke(Chunk& chunk);
  // Forgets the chunk if none of its puts is in flight, and the client does not fill it any more.
  bool Drop(const Chunk& chunk);

  std::vector<Chunk> chunks_;  // in the order in which the client got them
  std::vector<Head> heads_;    // of the shard
  uint32_t first_head_ = 0;
  uint64_t bytes_max_ = 0;
};

}  // namespace erda::client
