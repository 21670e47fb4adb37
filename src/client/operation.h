// The common part of all operations in flight. Each has the event that it waits for, its key and its place in the order
// of that key, and its memory.
//
// Its kind (get.h, put.h, block.h) owns an operation, and the other parts know it by its index. Only the client's
// thread uses it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "base/clock.h"
#include "client/buffer.h"
#include "client/key_bytes.h"
#include "client/key_order.h"
#include "erda/status.h"
#include "fabric/fabric.h"
#include "format/control_block.h"
#include "format/messages.h"
#include "format/object.h"

namespace erda::client {

class Link;

// The kinds of operations: GetOp, PutOp and BlockOp.
enum class OpType : uint8_t { kGet, kPut, kBlock };

// The event that an operation waits for.
enum class Step : uint8_t {
  kFree,     // It waits for nothing: the place is free.
  kDone,     // Its callback runs in the next Poll.
  kKeyTurn,  // An earlier operation on the same key ends.
  kLinkUp,   // The connection is made.
  kHeads,    // The control block arrives, read once more.
  kSent,     // The device has sent from its memory. Its outcome is in `result`.
  // A get
  kStarting,     // The other gets that begin together with it have come.
  kLocated,      // The version at its known location arrives.
  kEntry,        // The key's neighbourhood arrives.
  kObject,       // A version arrives.
  kSecondLook,   // The entry arrives again.
  kTime,         // The shard's time arrives, Read after the version that counts.
  kMissConfirm,  // The neighbourhood, or a piece of the window, arrives between two readings.
  // A read of a block
  kBlock,  // All slots of the block arrive between two readings.
  // A put, and the like
  kStagingRoom,  // The staging buffer has room.
  kRequestSlot,  // A request slot is free.
  kReply,        // The server answers.
  kPlaced,       // The Read after the Write of the value arrives.
  kCommitted,    // The server answers the commit after the Write of the value.
};

// The memory of an operation, registered with the fabric. The message is a request, or the version that a get reads.
//   0                1024          1104         1144  1152
//   +----------------+-------------+------------+-----+-----------------------------------------------------+
//   | neighbourhood  | two readings| old header |     | message                                             |
//   +----------------+-------------+------------+-----+-----------------------------------------------------+
inline constexpr uint64_t kReadingsAt = format::kNeighbourhoodBytes;
inline constexpr uint64_t kOldHeaderAt = kReadingsAt + 2 * format::kMissReadingBytes;
inline constexpr uint64_t kMessageAt = kReadingsAt + 2 * kCacheLine;
// The header, and the deadline if the version has one.
inline constexpr uint64_t kOldHeaderBytes = sizeof(format::ObjectHeader) + format::kDeadlineBytes;
static_assert(kOldHeaderAt + kOldHeaderBytes <= kMessageAt);
inline constexpr uint64_t kMessageBytes = 20480;  // More than any inline put. Larger values get separate memory.
inline constexpr uint64_t kOpMemoryBytes = kMessageAt + kMessageBytes;

inline constexpr uint64_t kLargeBytesKept = 1 << 20;

// The client reads this number of bytes at first of a version of which it wants only the key. Nearly all keys are
// shorter.
inline constexpr uint64_t kLabelBytesRead = 128;

struct Operation {
  static constexpr uint32_t kByKey = UINT32_MAX;

  OpIndex index = kNoOp;
  OpType type = OpType::kGet;
  Step step = Step::kFree;
  Link* link = nullptr;
  uint32_t shard = kByKey;
  uint64_t key_hash = 0;
  uint16_t key_size = 0;
  std::array<char, format::kKeyBytesMax> key;
  Nanoseconds deadline{0};  // 0: not set yet (deadlines.h).
  Status result;            // The outcome, at steps kDone and kSent, or if it is doomed.

  std::span<std::byte> memory;
  std::unique_ptr<RegisteredMemory> large;  // For a version or a value that does not fit into kMessageBytes.
  std::shared_ptr<Buffer::Memory> buffer;   // The caller's buffer, if it gave one.
  std::span<std::byte> in_buffer;           // The place of the message, if that is in the buffer.

  // The order of operations on one key (key_order.h).
  OpIndex bucket_next = kNoOp;
  OpIndex after = kNoOp;   // The next operation on the key.
  bool in_order = false;   // The operation is in that order.
  bool doomed = false;     // Its connection ended while it waited for its turn. In its turn it ends with `result`.
  bool link_lost = false;  // Its connection ended while it was under way. All that it had there is gone.

  // A new operation begins in this place.
  void BeginAgain() {
    shard = kByKey;
    key_size = 0;
    deadline = Nanoseconds(0);
    link = nullptr;
    in_order = false;
    doomed = false;
    link_lost = false;
  }
  void SetKey(std::string_view new_key, uint64_t hash) {
    key_hash = hash;
    key_size = static_cast<uint16_t>(new_key.size());
    CopyKey(key.data(), new_key);
  }
  // Gives the operation the caller's buffer. Its message begins `before_value` bytes before the value.
  void UseBuffer(const std::shared_ptr<Buffer::Memory>& of_caller, uint64_t before_value) {
    buffer = of_caller;
    in_buffer = buffer->From(before_value);
    buffer->in_use = true;
  }
  // Returns true if the operation may begin while `before` is under way, an earlier operation on its key. Both are
  // inline puts without a condition, and `before` is sent (docs/protocol.md, "Put, inline"). REQUIRES: the operation
  // has not begun.
  [[nodiscard]] bool MayFollow(const Operation& before) const;
  [[nodiscard]] bool waits_for_turn() const { return step == Step::kKeyTurn; }
  // Returns true if the operation is under way, and ends when its link closes.
  [[nodiscard]] bool waits_for_link() const {
    return step != Step::kFree && step != Step::kDone && step != Step::kKeyTurn;
  }
  // Frees the large memory if it is huge. Otherwise the next operation may use it too.
  void DropLargeMemory() {
    if (large && large->bytes.size() > kLargeBytesKept) large.reset();
  }
  [[nodiscard]] std::string_view key_view() const { return {key.data(), key_size}; }
  [[nodiscard]] std::span<std::byte> neighbourhood() const { return memory.first(format::kNeighbourhoodBytes); }
  [[nodiscard]] std::span<std::byte> readings() const {
    return memory.subspan(kReadingsAt, 2 * format::kMissReadingBytes);
  }
  // Returns the place to which the client Reads the shard's time. The readings have that place at other steps.
  [[nodiscard]] std::span<std::byte> time_copy() const { return memory.subspan(kReadingsAt, sizeof(uint64_t)); }
  // Returns the time that arrived there. A server lies if it says the largest number.
  [[nodiscard]] uint64_t time_read() const { return std::min(LoadAs<uint64_t>(time_copy()), UINT64_MAX - 1); }
  [[nodiscard]] std::span<std::byte> old_header() const { return memory.subspan(kOldHeaderAt, kOldHeaderBytes); }
  [[nodiscard]] std::span<std::byte> message() const {
    if (!in_buffer.empty()) return in_buffer;
    return large ? large->bytes : memory.subspan(kMessageAt);
  }
  // Returns true if the message is in memory that goes with the operation. It must stay until the device has sent from
  // it.
  [[nodiscard]] bool sends_own_memory() const { return large != nullptr || !in_buffer.empty(); }
};

}  // namespace erda::client
