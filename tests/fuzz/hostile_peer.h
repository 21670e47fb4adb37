// A client that keeps no rule but the fabric's. What it does comes from a fuzzer's bytes: requests that are in order
// and such that are not, garbage, Writes and Reads anywhere, silence, and leaving in the middle.
//
// It does not write into the pool but where it was told to: into what it reserved, and into its chunk, as long as that
// is its own. That it could do more on this fabric is known (docs/security.md, "Who can write into the pool"). One of
// another user writes anywhere into its staging buffer.
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
#include "format/messages.h"

namespace erda::fuzz {

// One thing that it does. What the fields mean hangs on the kind.
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
  // From which kind on it does what; those before ask to connect.
  enum Kind : uint8_t {
    kRequest = 6,
    kSpoiltRequest = 130,
    kGarbage = 136,
    kWrite = 138,
    kTime = 180,
    kSend = 191,
    kRead = 192,
    kLeave = 199,
    kOthers = 201  // speak.cc
  };

  // user: the server's own is 0; another one's is given a staging buffer, and no right to write into the pool.
  HostilePeer(fabric::SimNetwork& network, const std::string& name, std::string address, uint64_t client_id,
              uint32_t user);

  void Act(const Action& action);
  // Takes what has arrived.
  void Poll();
  void Leave();
  // How many of its requests were served, by format::RequestOp.
  using Served = std::array<uint64_t, 12>;
  [[nodiscard]] const Served& served() const { return served_; }

 private:
  // Where it may write, until it says that it has done so.
  struct Place {
    format::Reply told{};
    std::string key;
    uint64_t tail = 0;  // of a chunk
  };

  void Ask(const Action& action);
  void Request(const Action& action);
  void WriteIntoPlace(const Action& action);
  void WriteBody(uint8_t what, size_t bytes);
  [[nodiscard]] bool stages() const { return hello_.placing == static_cast<uint8_t>(format::Placing::kStaging); }
  void Post(fabric::OpKind kind, uint32_t imm, std::string_view bytes, fabric::RemoteAddress to);
  [[nodiscard]] format::Request Build(const Action& action, std::string* rest);
  // The offset of its first byte in the pool; nullopt if the control block that was read last does not tell.
  [[nodiscard]] std::optional<uint64_t> OffsetOf(const format::Reply& told) const;
  [[nodiscard]] std::string KeyOf(const Action& action) const;

  std::shared_ptr<fabric::Fabric> fabric_;
  std::unique_ptr<fabric::CompletionQueue> queue_;
  const std::string address_;
  const uint64_t client_id_;
  std::vector<std::byte> replies_;
  std::unique_ptr<fabric::Region> reply_region_;
  std::vector<std::byte> local_;  // what is posted, one part after the other
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
