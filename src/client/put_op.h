// A put, delete, increment or cleaning that is under way: its fields, and its message.
//
// Puts (put.h) own the operations, and take their steps. Only the client's thread calls them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "client/link.h"
#include "client/operation.h"
#include "client/put_path.h"
#include "erda/client.h"
#include "fabric/fabric.h"
#include "format/messages.h"
#include "format/object.h"

namespace erda::client {

enum class PutKind : uint8_t { kPut, kDelete, kIncrement, kClean };

// The callback of the call that began the operation. Each field is for one outcome: a status, the version of a put, or
// the sum of an increment. One of them is set. A variant costs more instructions.
struct PutDone {
  Client::DoneCallback plain;
  Client::PutCallback version;
  Client::IncrementCallback sum;

  // REQUIRES for all three: there is no callback yet.
  void Take(Client::DoneCallback& done) { plain.swap(done); }
  void Take(Client::PutCallback& done) { version.swap(done); }
  void Take(Client::IncrementCallback& done) { sum.swap(done); }
  void Clear() {
    if (plain) plain = nullptr;
    if (version) version = nullptr;
    if (sum) sum = nullptr;
  }
};

struct PutOp : Operation {
  static constexpr OpType kType = OpType::kPut;
  static constexpr uint32_t kNotStaged = UINT32_MAX;

  PutKind kind = PutKind::kPut;
  PutDone done;
  std::optional<uint64_t> if_version;  // The operation's condition.
  uint64_t ttl = 0;                    // The value's time to live, in milliseconds. 0: it does not expire.
  uint32_t value_size = 0;             // 0 if there is no value.
  PutWay way = PutWay::kUndecided;
  uint32_t slot = RequestSlots::kNoSlot;  // The request slot that the operation holds.
  uint64_t request_id = 0;                // The number of its last request.
  uint32_t sending = 0;                   // Requests sent from the operation's memory that are not completed.
  uint64_t number = 0;                    // The outcome: the version, or the sum.

  // The places of a put's value on its way. No other kind has them.
  struct Places {
    bool lost_chunk = false;         // Its chunk was revoked, or none had room. It goes another way.
    uint32_t staged = kNotStaged;    // Its place in the staging buffer.
    format::Reply reserved{};        // The reply to the reserve request.
    uint64_t next_control_read = 0;  // The number of the first control read that the link posts after that reply.
  };
  Places places;

  // A new operation begins in this place.
  void BeginAgain() {
    Operation::BeginAgain();
    if_version.reset();
    ttl = 0;
    way = PutWay::kUndecided;
    places.lost_chunk = false;
    slot = RequestSlots::kNoSlot;
    places.staged = kNotStaged;
    sending = 0;
  }
  // The operation has ended.
  void Clear() { done.Clear(); }
  // Calls back with the outcome.
  void Tell(Status status) {
    if (done.plain) return done.plain(std::move(status));
    TellNumber(std::move(status));
  }
  void TellNumber(Status status);

  [[nodiscard]] uint64_t label_size() const { return format::LabelSize(key_size, ttl != 0); }
  // Returns true if key and value fit into one request on this link.
  [[nodiscard]] bool FitsInline(const Link& on) const {
    return format::InlineValueOffset(key_size) + value_size <= on.hello().slot_bytes;
  }
  // Returns the value, which stands after key and checksum in the message.
  [[nodiscard]] std::span<std::byte> value() const {
    return message().subspan(format::InlineValueOffset(key_size), value_size);
  }
  // Returns a WriteImm of the first bytes of the message into the request slot. REQUIRES: the operation has a slot, and
  // `in` is message().
  // A reply proves that the request has arrived. But the memory must stay until the device has completed the request.
  // If an acknowledgement was lost, the device sends the request again.
  [[nodiscard]] fabric::WorkRequest RequestWork(std::span<std::byte> in, uint64_t bytes) {
    fabric::WorkRequest work;
    work.kind = fabric::OpKind::kWriteImm;
    work.signaled = sends_own_memory();
    if (work.signaled) ++sending;
    work.id = index;
    work.imm = slot;
    work.local = in.first(bytes);
    work.remote = {format::kRequestRegion, link->slots.OffsetOf(slot)};
    return work;
  }
  [[nodiscard]] fabric::WorkRequest RequestWork(uint64_t bytes) { return RequestWork(message(), bytes); }
};

}  // namespace erda::client
