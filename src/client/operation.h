// One operation in flight: its state, and the memory that its Reads and Writes use.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "client/buffer.h"
#include "client/key_order.h"
#include "client/put_path.h"
#include "erda/client.h"
#include "fabric/fabric.h"
#include "format/control_block.h"
#include "format/index_layout.h"
#include "format/messages.h"
#include "format/object.h"

namespace erda::client {

class Link;

enum class OpType : uint8_t { kGet, kPut, kDelete, kIncrement, kClean, kBlock };

// What a shard says of the entries that it moves, and of the time: the first words of its control block.
struct Reading {
  uint64_t displacements;
  uint64_t blocks;
  uint64_t head_generation;
  uint64_t reaches;
  uint64_t time;
};
static_assert(sizeof(Reading) == format::kMissReadingBytes);

// How far a look at entries has come that has to lie between two readings of those words.
enum class Look : uint8_t {
  kBefore,  // the reading before it was asked for
  kAt,      // the entries were: the reading before is known
  kBehind,  // the reading behind them was
  kAll,     // all three were, since the fabric takes Reads in order
};

// An entry of the index, as a Read of its block found it.
struct FoundEntry {
  uint32_t shard = 0;
  uint32_t times_up = 0;      // of the link
  uint64_t slot_changes = 0;  // of the link, when the block was asked for
  uint64_t time_before = 0;   // the shard's time, Read before the block was
  uint64_t time_behind = 0;   // and behind that
  uint64_t block = 0;
  uint64_t slot = 0;  // counted through all blocks
  format::IndexEntry entry{};
};
// A block as it was at one moment: each key that was there all the time stands in one of its slots. An entry of slot 0
// is as all of them were found. The slots live for the call only.
struct BlockView {
  FoundEntry first;
  uint32_t depth = 0;  // how many low bits of the hash say that a key belongs there
  std::span<const std::byte> slots;
};
using BlockCallback = std::function<void(const Result<BlockView>&)>;
// kConflict: it has changed since, before its key was known.
using EntryCallback = std::function<void(std::string_view key, const Result<VersionedView>&)>;

// What an operation waits for.
enum class Step : uint8_t {
  kFree,         // it is none
  kDone,         // its callback, in the next Poll
  kKeyTurn,      // an earlier operation on the same key
  kLinkUp,       // the connection
  kStagingRoom,  // put: a place in the staging buffer
  kRequestSlot,  // a free request slot
  kHeads,        // the region numbers, read anew
  kStarting,     // get: the others that begin together with it
  kLocated,      // get: the version at the place where the key's was before
  kEntry,        // get: the key's neighbourhood
  kObject,       // get: a version
  kSecondLook,   // get: the entry, again
  kTime,         // get: the shard's time, behind the version that counts
  kMissConfirm,  // get: the neighbourhood, or the window, between two readings of the displacement counter
  kBlock,        // a block of the index: the same of all its slots
  kReply,        // put, delete: the server's answer
  kPlaced,       // put: the Read behind the Write of the value
  kCommitted,    // put: the answer to the commit behind the Write of the value
  kSent,         // put: that what it sent from memory of its own is acknowledged; the outcome is known
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

// Behind the operations' memory: the one report that may be under way.
inline constexpr uint64_t kReportBytesMax = sizeof(format::Request) + format::kKeyBytesMax;

inline constexpr uint64_t kLargeBytesKept = 1 << 20;

// What is read of a version of which only the key is wanted, at first: nearly all keys are shorter.
inline constexpr uint64_t kLabelBytesRead = 128;

struct Operation {
  static constexpr uint32_t kByKey = UINT32_MAX;
  static constexpr uint64_t kNoTime = UINT64_MAX;

  OpIndex index = kNoOp;
  OpType type = OpType::kGet;
  Step step = Step::kFree;
  Link* link = nullptr;
  uint32_t shard = kByKey;
  uint64_t key_hash = 0;
  uint16_t key_size = 0;
  std::array<char, format::kKeyBytesMax> key;
  Nanoseconds deadline{0};  // 0: not set yet; see Engine::CheckDeadlines

  // One of them: that of the call which began it.
  Client::GetCallback get_done;
  Client::GetVersionedCallback get_versioned_done;
  Client::DoneCallback done;
  Client::PutCallback put_done;
  Client::IncrementCallback increment_done;
  EntryCallback entry_done;
  BlockCallback block_done;
  Status result;  // for kDone and kSent, or if doomed

  std::span<std::byte> memory;
  std::unique_ptr<RegisteredMemory> large;  // for a version or a value that does not fit into kMessageBytes
  std::shared_ptr<Buffer::Memory> buffer;   // the caller's, if it gave one
  std::span<std::byte> in_buffer;           // where the message is, if that is in the buffer

  // Operations on one key, in their order: each starts when the one before it is finished.
  OpIndex bucket_next = kNoOp;  // in the table of operations by key hash
  OpIndex after = kNoOp;        // the operation that waits for this one
  bool in_order = false;        // it is in that order
  uint32_t block_reads = 0;     // of a block of the index, that were begun
  bool doomed = false;          // its connection went while it waited for its turn; then it ends with `result`

  // Puts and deletes
  std::optional<uint64_t> if_version;  // its condition
  uint64_t ttl = 0;                    // its time to live, in milliseconds; 0: none
  uint64_t number = 0;                 // what it came to: the version, or the sum
  uint32_t value_size = 0;
  uint32_t slot = UINT32_MAX;  // the request slot that it holds
  uint32_t sending = 0;        // requests sent from memory of its own that are not acknowledged
  format::Reply reply{};       // to the reserve request
  PutWay way = PutWay::kUndecided;
  bool lost_chunk = false;  // its chunk was taken back, or there was none: it goes another way
  static constexpr uint32_t kNotStaged = UINT32_MAX;
  uint32_t staged = kNotStaged;  // its place in the staging buffer

  // Gets
  uint64_t block = 0;                    // of the index, where its key is looked for
  format::IndexEntry entry{};            // the entry that is followed
  uint64_t entry_slot = 0;               // counted through all blocks
  bool label_only = false;               // of a version that is settled: it needs no value
  bool nameless = false;                 // it has an entry, and does not know its key yet (block.cc)
  uint32_t times_up = 0;                 // of its link, when that was read
  uint32_t slots_read = 0;               // of the neighbourhood: kFirstLook or all; or of the window's piece
  uint64_t first_slot = 0;               // of these, counted through all blocks
  format::IndexLayout::Window looked{};  // at all of that, since the reading before
  Look look = Look::kBehind;             // at the neighbourhood, or at a block
  Reading before{};                      // what was known before that was read
  format::LogAddress at;                 // the version that is being read
  uint64_t time_before = 0;              // the shard's time, Read before the entry was, or the version by its location
  uint64_t time_behind = kNoTime;        // and Read when the version that counts was published; kNoTime: not yet
  bool reads_time = false;               // by the Read behind the version's
  format::ObjectView found{};            // kTime: that version
  uint64_t read_bytes = 0;               // of it
  uint64_t newer_version = 0;            // of the version that was read before it; 0: none
  uint32_t rereads = 0;                  // of this version, because the size was not known
  format::HeadSlot slot_read;            // where it stood when that read was posted
  format::HeadSlot old_slot;             // the same of the entry's old version, if its header was read behind
  uint64_t next_control_read = 0;  // of its link: the first behind that read, and of a put, behind its reservation
  uint64_t slot_changes = 0;       // of its link, when the entry was asked for
  uint32_t foreign_count = 0;      // entries with this key's tag that turned out to be another key's
  std::array<uint64_t, format::kNeighbourhood> foreign;

  // True if it is under way, and ends when its link does.
  [[nodiscard]] bool waits_for_link() const {
    return step != Step::kFree && step != Step::kDone && step != Step::kKeyTurn;
  }
  // The next operation may use it too, unless it is huge.
  void DropLargeMemory() {
    if (large && large->bytes.size() > kLargeBytesKept) large.reset();
  }
  [[nodiscard]] uint64_t label_size() const { return format::LabelSize(key_size, ttl != 0); }
  [[nodiscard]] std::string_view key_view() const { return {key.data(), key_size}; }
  [[nodiscard]] std::span<std::byte> neighbourhood() const { return memory.first(format::kNeighbourhoodBytes); }
  [[nodiscard]] std::span<std::byte> readings() const {
    return memory.subspan(kReadingsAt, 2 * format::kMissReadingBytes);
  }
  // Where the shard's time is Read to, when the readings are not needed.
  [[nodiscard]] std::span<std::byte> time_copy() const { return memory.subspan(kReadingsAt, sizeof(uint64_t)); }
  // What arrived there. A server that says kNoTime lies.
  [[nodiscard]] uint64_t time_read() const { return std::min(LoadAs<uint64_t>(time_copy()), kNoTime - 1); }
  [[nodiscard]] std::span<std::byte> old_header() const { return memory.subspan(kOldHeaderAt, kOldHeaderBytes); }
  [[nodiscard]] std::span<std::byte> message() const {
    if (!in_buffer.empty()) return in_buffer;
    return large ? large->bytes : memory.subspan(kMessageAt);
  }
  // The message is in memory that goes with the operation: it stays until nothing is sent from it any more.
  [[nodiscard]] bool sends_own_memory() const { return large != nullptr || !in_buffer.empty(); }
};

}  // namespace erda::client
