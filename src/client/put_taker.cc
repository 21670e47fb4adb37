#include "client/put_taker.h"

#include <cstring>
#include <string>

#include "base/hash.h"
#include "base/option_bounds.h"
#include "client/key_bytes.h"
#include "format/messages.h"

namespace erda::client {

using format::Request;

static_assert(kTtlBounds.most == kTtlMax.count());

Status PutTaker::Check(size_t key_size, size_t value_size, const PutOptions& options) const {
  if (options.ttl) {
    Bounds bounds;
    bounds.Check(kTtlBounds, options.ttl->count());
    if (!bounds.status().ok()) return bounds.status();
  }
  // (The client may not know the geometry yet, and a request has 32 bits for the size.)
  if (value_size > UINT32_MAX) return {Code::kInvalidArgument, "no pool takes a value of 4 GiB or more"};
  const KnownPool& pool = connections_.pool();
  if (!pool.is_known || key_size == 0 || key_size > format::kKeyBytesMax) return {};
  const uint64_t most = format::ValueBytesMax(pool.geometry, key_size, options.ttl.has_value());
  if (value_size <= most) return {};
  return {Code::kInvalidArgument, "a value for a key of " + std::to_string(key_size) + " bytes has at most " +
                                      std::to_string(most) + " bytes in this pool, not " + std::to_string(value_size)};
}

bool PutTaker::Refuses(size_t key_size, size_t value_size, const PutOptions& options, Status* why) const {
  *why = Check(key_size, value_size, options);
  return !why->ok();
}

PutOp* PutTaker::RefuseKey(std::string_view key, Status* why) const {
  *why = operations_.Refusal(key);
  return nullptr;
}

inline PutOp* PutTaker::TakeAny(PutKind kind, std::string_view key, Status* why) {
  if (!operations_.CanTake(key)) return RefuseKey(key, why);
  PutOp& op = operations_.Take(ops_);
  op.kind = kind;
  op.SetKey(key, HashKey(key, connections_.pool().hash_seed));
  return &op;
}

inline PutOp* PutTaker::TakePut(PutKind kind, std::string_view key, size_t value_size, const PutOptions& options,
                                Status* why) {
  const bool is_plain = !options.ttl && value_size <= format::kValueBytesOfEveryPool;
  if (!is_plain && Refuses(key.size(), value_size, options, why)) return nullptr;
  PutOp* op = TakeAny(kind, key, why);
  if (op == nullptr) return nullptr;
  op->value_size = static_cast<uint32_t>(value_size);
  op->if_version = options.if_version;
  op->ttl = options.ttl ? static_cast<uint64_t>(options.ttl->count()) : 0;
  return op;
}

PutOp* PutTaker::Take(PutKind kind, std::string_view key, std::string_view value, const PutOptions& options,
                      Status* why) {
  PutOp* op = TakePut(kind, key, value.size(), options, why);
  if (op == nullptr) return nullptr;
  // This layout serves the request and the log: request, key, checksum, value.
  const uint64_t value_at = format::InlineValueOffset(key.size());
  auto message = op->message();
  if (value_at + value.size() > message.size()) {
    if (LacksMemory(*op, value_at + value.size(), why)) return nullptr;
    message = op->message();
  }
  CopyKey(message.data() + sizeof(Request), key);
  if (!value.empty()) std::memcpy(message.data() + value_at, value.data(), value.size());  // An empty one may be null.
  return op;
}

bool PutTaker::LacksMemory(PutOp& op, uint64_t message_bytes, Status* why) {
  *why = operations_.memory().Provide(op, message_bytes);
  if (!why->ok()) operations_.Abandon(op);
  return !why->ok();
}

PutOp* PutTaker::TakeFrom(std::string_view key, const std::shared_ptr<Buffer::Memory>& from, size_t size,
                          const PutOptions& options, Status* why) {
  if (size > from->value.size()) {
    *why = {Code::kInvalidArgument, "the buffer has " + std::to_string(from->value.size()) +
                                        " bytes, and the value is to have " + std::to_string(size)};
    return nullptr;
  }
  PutOp* op = TakePut(PutKind::kPut, key, size, options, why);
  if (op == nullptr) return nullptr;
  op->UseBuffer(from, format::InlineValueOffset(key.size()));
  CopyKey(op->message().data() + sizeof(Request), key);
  return op;
}

PutOp* PutTaker::TakeKey(PutKind kind, std::string_view key, std::optional<uint64_t> if_version, Status* why) {
  PutOp* op = TakeAny(kind, key, why);
  if (op == nullptr) return nullptr;
  op->if_version = if_version;
  op->value_size = 0;
  CopyKey(op->message().data() + sizeof(Request), key);
  return op;
}

}  // namespace erda::client
