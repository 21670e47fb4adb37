// A client's connection to a shard: its rights, its memory, and its requests that wait. Plain data of one shard. The
// shard's thread alone reads and writes it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/shared_memory.h"
#include "fabric/fabric.h"
#include "format/hello.h"
#include "server/sessions/gate.h"
#include "server/sessions/rate.h"
#include "server/versions/in_flight.h"

namespace erda::server {

struct Session {
  SessionId id = 0;
  uint64_t client_id = 0;  // As the client says.
  std::string peer;        // As the fabric says.
  size_t port = 0;
  size_t fabric = 0;       // The statistics count it there.
  bool connected = false;  // Before that, the shard neither counts it nor serves it.
  uint32_t slots = 0;
  TokenId token = 0;
  bool read_only = false;  // Such a session has no request memory.
  bool writable = false;   // The client may write into the whole pool.
  // The pool, if the client writes into its chunks through windows; otherwise null.
  const fabric::Region* windowed_pool = nullptr;
  format::FlushMethod flush_method = format::FlushMethod::kNone;
  struct Window {
    uint64_t chunk = 0;  // the version in the chunk's header
    uint32_t key = 0;
  };
  std::vector<Window> windows;
  SharedMemory request_memory;
  SharedMemory staging;                 // Of a client that may put, but not write into the whole pool.
  std::vector<std::byte> reply_memory;  // Replies wait here until they are sent, one for each slot.
  std::unique_ptr<fabric::Region> request_region;
  std::unique_ptr<fabric::Region> reply_region;
  std::unique_ptr<fabric::Region> staging_region;
  std::unique_ptr<fabric::Channel> channel;  // The last one, so that it is destroyed first: it uses the regions.
  std::vector<fabric::WorkRequest> replies;  // Of this Poll, not posted yet.
  uint64_t turns = 0;                        // QueuedRequests so far.
  uint64_t last_for_room = 0;                // The largest turn of its requests in the RoomQueue.
  uint32_t awaiting_room = 0;                // Requests in the RoomQueue.
  uint32_t awaiting_writer = 0;              // Requests in the WriterQueue and the MediumQueue.
  uint32_t awaiting_hold = 0;                // Replies in WaitingReplies.
  uint32_t placed = 0;                       // Answers to puts with kPlaced in WaitingReplies, which are sent.
  struct Held {
    uint32_t imm = 0;
    Nanoseconds seen{0};
  };
  Rate rate;              // The rate of requests, if there is a limit.
  std::deque<Held> held;  // Messages over the limit, for the RateQueue.
  bool doomed = false;    // The shard ends it after this Poll, and ignores its messages until then.

  [[nodiscard]] bool windowed() const { return windowed_pool != nullptr; }
};

// A message of a session about this request slot. The shard found it at the time `seen` of its clock.
struct Asked {
  Session& session;
  uint32_t slot = 0;
  Nanoseconds seen{0};
  uint64_t turn = 0;  // Of a QueuedRequest that the shard serves again.
};

// A request that the shard keeps for later, with the members of Asked.
struct ParkedRequest {
  Session* session = nullptr;
  uint32_t slot = 0;
  Nanoseconds seen{0};

  ParkedRequest() = default;
  explicit ParkedRequest(const Asked& asked) : session(&asked.session), slot(asked.slot), seen(asked.seen) {}
  [[nodiscard]] Asked asked() const { return {*session, slot, seen}; }
  [[nodiscard]] bool IsOf(const Session& other, uint32_t other_slot) const {
    return session == &other && slot == other_slot;
  }
};

// A request that waits for room or for the medium, and is served again. `turn` is its number among those of its
// session. It keeps the number when it has to wait once more. A client may have several puts of one key under way. By
// these numbers they keep their order when they go from one queue to another.
struct QueuedRequest : ParkedRequest {
  uint64_t turn = 0;

  explicit QueuedRequest(const Asked& asked)
      : ParkedRequest(asked), turn(asked.turn != 0 ? asked.turn : ++session->turns) {}
  [[nodiscard]] Asked asked() const { return {*session, slot, seen, turn}; }
  [[nodiscard]] bool IsBefore(const QueuedRequest& other) const {
    return session == other.session && turn < other.turn;
  }
};

// A breach of the protocol by a client, in words for the log. A default object means that there was no breach.
class [[nodiscard]] Violation {
 public:
  constexpr Violation() = default;
  explicit constexpr Violation(const char* what) : what_(what) {}

  explicit constexpr operator bool() const { return what_ != nullptr; }
  // REQUIRES: the object has a breach.
  [[nodiscard]] constexpr const char* what() const { return what_; }

 private:
  const char* what_ = nullptr;
};

}  // namespace erda::server
