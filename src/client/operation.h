// What all operations in flight have in common: what each waits for, its key and its place in the order of that key,
// and the memory that its Reads and Writes use.
//
// An operation is owned by its kind (get.h, put.h, block.h), and known to the others by its index. Only the client's
// thread uses it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "base/clock.h"
#include "client/buffer.h"
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

// What an operation waits for.
enum class Step : uint8_t {
  kFree,     // nothing: the place is free
  kDone,     // its callback, in the next Poll
  kKeyTurn,  // an earlier operation on the same key
  kLinkUp,   // the connection
  kHeads,    // the region numbers, read once more
  kSent,     // the device, which may still send from its memory; its outcome is in `result`
  // A get
  kStarting,     // the others that begin together with it
  kLocated,      // the version at the place where the key's was before
  kEntry,        // the key's neighbourhood
  kObject,       // a version
  kSecondLook,   // the entry, again
  kTime,         // the shard's time, Read after the version that counts
  kMissConfirm,  // the neighbourhood, or a piece of the window, between two readings
  // A read of a block
  kBlock,  // all slots of the block, between two readings
  // A put, and the like
  kStagingRoom,  // a place in the staging buffer
  kRequestSlot,  // a free request slot
  kReply,        // the server's answer
  kPlaced,       // the Read after the Write of the value
  kCommitted,    // the answer to the commit after the Write of the value
};

// Memory of an operation, registered with the fabric.
//   0                1024          1104         1144  1152
//   +----------------+-------------+------------+-----+-----------------------------------------------------+
//   | neighbourhood  | two readings| old header |     | message: what is sent, or the version that is read  |
//   +----------------+-------------+------------+-----+-----------------------------------------------------+
inline constexpr uint64_t kReadingsAt = format::kNeighbourhoodBytes;
inline constexpr uint64_t kOldHeaderAt = kReadingsAt + 2 * format::kMissReadingBytes;
inline constexpr uint64_t kMessageAt = kReadingsAt + 2 * kCacheLine;
// With a deadline, if it has one.
inline constexpr uint64_t kOldHeaderBytes = sizeof(format::ObjectHeader) + format::kDeadlineBytes;
static_assert(kOldHeaderAt + kOldHeaderBytes <= kMessageAt);
inline constexpr uint64_t kMessageBytes = 20480;  // more than any inline put; larger values get memory of their own
inline constexpr uint64_t kOpMemoryBytes = kMessageAt + kMessageBytes;

// After the operations' memory comes the one report that may be under way.
inline constexpr uint64_t kReportBytesMax = sizeof(format::Request) + format::kKeyBytesMax;

inline constexpr uint64_t kLargeBytesKept = 1 << 20;

// The client reads that much at first of a version of which it wants only the key: nearly all keys are shorter.
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
  Nanoseconds deadline{0};  // 0: not set yet (deadlines.h)
  Status result;            // at steps kDone and kSent, or if doomed

  std::span<std::byte> memory;
  std::unique_ptr<RegisteredMemory> large;  // for a version or a value that does not fit into kMessageBytes
  std::shared_ptr<Buffer::Memory> buffer;   // the caller's, if it gave one
  std::span<std::byte> in_buffer;           // where the message is, if that is in the buffer

  // The order of operations on one key (key_order.h).
  OpIndex bucket_next = kNoOp;
  OpIndex after = kNoOp;   // the operation that waits for this one
  bool in_order = false;   // it is in that order
  bool doomed = false;     // its connection went while it waited for its turn; then it ends with `result`
  bool link_lost = false;  // its connection ended while it was under way, and took all that it had there

  // A new operation has this place.
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
    std::memcpy(key.data(), new_key.data(), new_key.size());
  }
  // The operation has the buffer from here on. Its message begins that much before the value.
  void UseBuffer(const std::shared_ptr<Buffer::Memory>& of_caller, uint64_t before_value) {
    buffer = of_caller;
    in_buffer = buffer->From(before_value);
    buffer->in_use = true;
  }
  // True if it is under way, and ends when its link does.
  [[nodiscard]] bool waits_for_link() const {
    return step != Step::kFree && step != Step::kDone && step != Step::kKeyTurn;
  }
  // The next operation may use it too, unless it is huge.
  void DropLargeMemory() {
    if (large && large->bytes.size() > kLargeBytesKept) large.reset();
  }
  [[nodiscard]] std::string_view key_view() const { return {key.data(), key_size}; }
  [[nodiscard]] std::span<std::byte> neighbourhood() const { return memory.first(format::kNeighbourhoodBytes); }
  [[nodiscard]] std::span<std::byte> readings() const {
    return memory.subspan(kReadingsAt, 2 * format::kMissReadingBytes);
  }
  // Where the shard's time is Read to, when the readings are not needed.
  [[nodiscard]] std::span<std::byte> time_copy() const { return memory.subspan(kReadingsAt, sizeof(uint64_t)); }
  // What arrived there. A server that says the largest number lies.
  [[nodiscard]] uint64_t time_read() const { return std::min(LoadAs<uint64_t>(time_copy()), UINT64_MAX - 1); }
  [[nodiscard]] std::span<std::byte> old_header() const { return memory.subspan(kOldHeaderAt, kOldHeaderBytes); }
  [[nodiscard]] std::span<std::byte> message() const {
    if (!in_buffer.empty()) return in_buffer;
    return large ? large->bytes : memory.subspan(kMessageAt);
  }
  // The message is in memory that goes with the operation: it stays until nothing is sent from it any more.
  [[nodiscard]] bool sends_own_memory() const { return large != nullptr || !in_buffer.empty(); }
};

}  // namespace erda::client
