// A put, delete, increment or cleaning that is under way: its fields, and its message.
//
// Puts (put.h) own the operations, and take their steps. Only the client's thread calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "client/link.h"
#include "client/operation.h"
#include "client/put_path.h"
#include "erda/client.h"
#include "fabric/fabric.h"
#include "format/messages.h"
#include "format/object.h"

namespace erda::client {

enum class PutKind : uint8_t { kPut, kDelete, kIncrement, kClean };

struct PutOp : Operation {
  static constexpr OpType kType = OpType::kPut;
  static constexpr uint32_t kNotStaged = UINT32_MAX;

  PutKind kind = PutKind::kPut;
  // That of the call which began it.
  std::variant<std::monostate, Client::DoneCallback, Client::PutCallback, Client::IncrementCallback> done;
  std::optional<uint64_t> if_version;  // its condition
  uint64_t ttl = 0;                    // its time to live, in milliseconds; 0: none
  uint32_t value_size = 0;
  PutWay way = PutWay::kUndecided;
  bool lost_chunk = false;         // It has no chunk any more, or got none, and goes another way.
  uint32_t slot = Link::kNoSlot;   // the request slot that it holds
  uint32_t staged = kNotStaged;    // its place in the staging buffer
  uint32_t sending = 0;            // Requests sent from its own memory that are not completed.
  format::Reply reply{};           // to the reserve request
  uint64_t next_control_read = 0;  // the number of the first control read that its link posts after that reply
  uint64_t number = 0;             // what it came to: the version, or the sum

  // A new operation has this place.
  void BeginAgain() {
    Operation::BeginAgain();
    if_version.reset();
    ttl = 0;
    way = PutWay::kUndecided;
    lost_chunk = false;
    slot = Link::kNoSlot;
    staged = kNotStaged;
    sending = 0;
  }
  // It has ended.
  void Clear() { done.emplace<std::monostate>(); }
  // Calls back with what it came to.
  void Tell(const Status& status);

  [[nodiscard]] uint64_t label_size() const { return format::LabelSize(key_size, ttl != 0); }
  [[nodiscard]] bool FitsInline() const {
    return format::InlineValueOffset(key_size) + value_size <= link->hello().slot_bytes;
  }
  // The value, after key and checksum in the message.
  [[nodiscard]] std::span<std::byte> value() const {
    return message().subspan(format::InlineValueOffset(key_size), value_size);
  }
  // The first bytes of the message, as a request in its slot. REQUIRES: it has a slot.
  [[nodiscard]] fabric::WorkRequest RequestWork(uint64_t bytes);
};

}  // namespace erda::client
