// A client's connection to a shard: what it may do, the memory that it was given, and what of it waits. Plain data of
// one shard, which its thread alone reads and writes.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/shared_memory.h"
#include "fabric/fabric.h"
#include "server/gate.h"
#include "server/in_flight.h"
#include "server/rate.h"

namespace erda::server {

struct Session {
  SessionId id = 0;
  uint64_t client_id = 0;  // as it says
  std::string peer;        // as the fabric says
  size_t port = 0;
  size_t fabric = 0;       // by which it is counted
  bool connected = false;  // before that it is not counted, and nothing is heard of it or said to it
  uint32_t slots = 0;
  TokenId token = 0;
  bool read_only = false;  // then it has no request memory
  bool writable = false;   // it was offered the pool to write
  bool windowed = false;   // it writes into its chunks through windows
  struct Window {
    uint64_t chunk = 0;  // its version
    uint32_t key = 0;
  };
  std::vector<Window> windows;
  SharedMemory request_memory;
  SharedMemory staging;                 // of one that may write, and not into the pool
  std::vector<std::byte> reply_memory;  // where replies wait until they are sent; slot by slot
  std::unique_ptr<fabric::Region> request_region;
  std::unique_ptr<fabric::Region> reply_region;
  std::unique_ptr<fabric::Region> staging_region;
  std::unique_ptr<fabric::Channel> channel;  // last, so that it goes first: it uses the regions
  std::vector<fabric::WorkRequest> replies;  // of this Poll, not posted yet
  uint32_t waiting = 0;                      // requests of it, for room
  uint32_t undecided = 0;                    // for what others write
  struct Held {
    uint32_t imm = 0;
    Nanoseconds seen{0};
  };
  Rate rate;              // of those served, if there is a limit
  std::deque<Held> held;  // what it said beyond it, and was not heard yet
  bool doomed = false;    // to be ended after this Poll; what it still says is not heard
};

// A message of a session: about this slot, seen by the shard at this time of its clock.
struct Asked {
  Session& session;
  uint32_t slot = 0;
  Nanoseconds seen{0};
};

// What a client did against the protocol, for those who are told of its end. None: it kept to it.
class [[nodiscard]] Violation {
 public:
  constexpr Violation() = default;
  explicit constexpr Violation(const char* what) : what_(what) {}

  explicit constexpr operator bool() const { return what_ != nullptr; }
  // REQUIRES: there is one.
  [[nodiscard]] constexpr const char* what() const { return what_; }

 private:
  const char* what_ = nullptr;
};

}  // namespace erda::server
