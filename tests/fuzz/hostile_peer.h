// A client that keeps no rule but those of the fabric. A fuzzer's bytes decide its actions. It sends correct and
// incorrect requests and garbage, it reads and writes anywhere, it is silent, and it leaves in the middle of an
// exchange.
//
// It writes into the pool only where the server told it to: into its reservation, and into its chunk while that belongs
// to it. This fabric would let it write more, which is a known fact (docs/security.md, "Who can write into the pool").
// A peer of another user writes anywhere into its staging buffer.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/sim/network.h"
#include "format/control_block.h"
#include "format/hello.h"
#include "format/messages.h"

namespace erda::fuzz {

// One action of the peer. The kind decides the meaning of the other fields.
struct Action {
  uint8_t kind;
  uint8_t slot;
  uint8_t op;
  uint8_t key;
  uint16_t size;
  uint8_t where;
  uint8_t what;
};
static_assert(sizeof(Action) == 8);

class HostilePeer {
 public:
  static constexpr uint32_t kSlots = 8;
  // Each value is the first `kind` of an action. Smaller kinds ask for a connection.
  enum Kind : uint8_t {
    kRequest = 6,
    kSpoiltRequest = 130,
    kGarbage = 136,
    kWrite = 138,
    kTime = 180,
    kSend = 191,
    kRead = 192,
    kLeave = 199,
    kOthers = 201  // an action of the good client, in speak.cc
  };

  // user: 0 is the user of the server. The server gives a staging buffer to any other user, and no right to write into
  // the pool.
  HostilePeer(fabric::SimNetwork& network, const std::string& name, std::string address, uint64_t client_id,
              uint32_t user);

  void Act(const Action& action);
  // Handles the completions that have arrived.
  void Poll();
  void Leave();
  // The number of served requests by format::RequestOp.
  using Served = std::array<uint64_t, 12>;
  [[nodiscard]] const Served& served() const { return served_; }

 private:
  // A place where the peer may write, until it reports that it is done.
  struct Place {
    format::Reply told{};
    std::string key;
    uint64_t tail = 0;  // the first free byte of a chunk
  };

  void Ask(const Action& action);
  void Request(const Action& action);
  void WriteIntoPlace(const Action& action);
  void WriteBody(uint8_t what, size_t bytes);
  [[nodiscard]] bool stages() const { return hello_.placing == static_cast<uint8_t>(format::Placing::kStaging); }
  void Post(fabric::OpKind kind, uint32_t imm, std::string_view bytes, fabric::RemoteAddress to);
  [[nodiscard]] format::Request Build(const Action& action, std::string* rest);
  // Returns the offset of the place's first byte in the pool. Returns nothing if the last control block that the peer
  // read does not name its region.
  [[nodiscard]] std::optional<uint64_t> OffsetOf(const format::Reply& told) const;
  [[nodiscard]] std::string KeyOf(const Action& action) const;

  std::shared_ptr<fabric::Fabric> fabric_;
  std::unique_ptr<fabric::CompletionQueue> queue_;
  const std::string address_;
  const uint64_t client_id_;
  std::vector<std::byte> replies_;
  std::unique_ptr<fabric::Region> reply_region_;
  std::vector<std::byte> local_;  // the bytes of work requests, one part after the other
  std::unique_ptr<fabric::Region> local_region_;
  size_t next_part_ = 0;
  std::vector<std::byte> control_;
  std::unique_ptr<fabric::Region> control_region_;
  std::unique_ptr<fabric::Channel> channel_;
  uint32_t shard_ = 0;
  bool connected_ = false;
  bool closed_ = false;
  format::HelloReply hello_{};
  std::array<format::Request, kSlots> asked_{};
  std::array<std::string, kSlots> asked_key_;
  std::optional<Place> reserved_;
  std::optional<Place> chunk_;
  Served served_{};
};

}  // namespace erda::fuzz
