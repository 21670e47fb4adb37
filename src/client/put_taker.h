// Takes operations for puts, deletes, increments and cleaning, or says why it takes none.
//
// Owns nothing: Puts (put.h) own the operations. Only the client's thread calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "client/buffer.h"
#include "client/connections.h"
#include "client/operations.h"
#include "client/put_op.h"
#include "erda/client.h"
#include "erda/status.h"

namespace erda::client {

// The functions that are not inlined are rare, and other operations would pay for their frames.
class PutTaker {
 public:
  // ops: the operations of all rows.
  PutTaker(Operations& operations, Connections& connections, std::vector<PutOp>& ops)
      : operations_(operations), connections_(connections), ops_(ops) {}

  // These three return an operation that is in flight from here on. If they take none, they return null, and store the
  // reason in *why.

  // Takes an operation for a put, or for an increment by the value. Copies key and value into its message.
  PutOp* Take(PutKind kind, std::string_view key, std::string_view value, const PutOptions& options, Status* why);
  // Takes an operation for a put of the first bytes of a buffer. It uses the buffer from here on. REQUIRES: the buffer
  // is free.
  PutOp* TakeFrom(std::string_view key, const std::shared_ptr<Buffer::Memory>& from, size_t size,
                  const PutOptions& options, Status* why);
  // Takes an operation whose request has a key, and perhaps a condition, and no value.
  PutOp* TakeKey(PutKind kind, std::string_view key, std::optional<uint64_t> if_version, Status* why);

 private:
  PutOp* TakePut(PutKind kind, std::string_view key, size_t value_size, const PutOptions& options, Status* why);
  PutOp* TakeAny(PutKind kind, std::string_view key, Status* why);
  // Returns the reason for which no pool, or not this one, takes such a put; ok if there is no such reason.
  [[nodiscard]] Status Check(size_t key_size, size_t value_size, const PutOptions& options) const;
  // Stores the reason for which no operation on the key can begin. Returns null.
  [[gnu::noinline]] PutOp* RefuseKey(std::string_view key, Status* why) const;
  // These store the reason in *why, or ok. They return true if there is a reason.
  [[gnu::noinline]] bool Refuses(size_t key_size, size_t value_size, const PutOptions& options, Status* why) const;
  [[gnu::noinline]] bool LacksMemory(PutOp& op, uint64_t message_bytes, Status* why);

  Operations& operations_;
  Connections& connections_;
  std::vector<PutOp>& ops_;
};

}  // namespace erda::client
