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
#include "server/gate.h"
#include "server/in_flight.h"
#include "server/rate.h"

namespace erda::server {

struct Session {
  SessionId id = 0;
  uint64_t client_id = 0;  // as the client says
  std::string peer;        // as the fabric says
  size_t port = 0;
  size_t fabric = 0;       // the statistics count it there
  bool connected = false;  // until then the shard neither counts it, nor hears it, nor answers it
  uint32_t slots = 0;
  TokenId token = 0;
  bool read_only = false;  // such a session has no request memory
  bool writable = false;   // the client may write into the whole pool
  bool windowed = false;   // the client writes into its chunks through windows
  struct Window {
    uint64_t chunk = 0;  // the version of the chunk
    uint32_t key = 0;
  };
  std::vector<Window> windows;
  SharedMemory request_memory;
  SharedMemory staging;                 // of a client that may put, and may not write into the whole pool
  std::vector<std::byte> reply_memory;  // replies wait here until they are sent; one place for each slot
  std::unique_ptr<fabric::Region> request_region;
  std::unique_ptr<fabric::Region> reply_region;
  std::unique_ptr<fabric::Region> staging_region;
  std::unique_ptr<fabric::Channel> channel;  // last, so that it goes first: it uses the regions
  std::vector<fabric::WorkRequest> replies;  // of this Poll, not posted yet
  uint32_t waiting = 0;                      // requests that wait for room in the log
  uint32_t undecided = 0;                    // requests that wait for a value of another client
  struct Held {
    uint32_t imm = 0;
    Nanoseconds seen{0};
  };
  Rate rate;              // of requests, if there is a limit
  std::deque<Held> held;  // messages over the limit, which the shard has not served yet
  bool doomed = false;    // the shard ends it after this Poll, and ignores its messages until then
};

// A message of a session about this slot. The shard found it at the time `seen` of its clock.
struct Asked {
  Session& session;
  uint32_t slot = 0;
  Nanoseconds seen{0};
};

// A breach of the protocol by a client, in words for the log. A default one says that there was no breach.
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
