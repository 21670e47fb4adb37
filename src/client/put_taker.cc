#include "client/put_taker.h"

#include <cstring>
#include <string>
#include <utility>

#include "base/hash.h"
#include "base/option_bounds.h"
#include "client/key_bytes.h"
#include "format/messages.h"

namespace erda::client {

using format::Request;

static_assert(kTtlBounds.most == kTtlMax.count());

bool PutTaker::Refuse(Status why) {
  const bool refuses = !why.ok();
  if (refuses) refusal_ = std::move(why);
  return refuses;
}

void PutTaker::RefuseKey(std::string_view key) { Refuse(operations_.Refusal(key)); }

inline PutOp* PutTaker::TakeAny(PutKind kind, std::string_view key) {
  if (!operations_.CanTake(key)) {
    RefuseKey(key);
    return nullptr;
  }
  PutOp& op = operations_.Take(ops_);
  op.kind = kind;
  op.SetKey(key, HashKey(key, connections_.pool().hash_seed));
  return &op;
}

inline PutOp* PutTaker::TakePut(PutKind kind, std::string_view key, size_t value_size, const PutOptions& options) {
  const bool is_plain = !options.ttl && value_size <= format::kValueBytesOfEveryPool;
  if (!is_plain && Refuses(key.size(), value_size, options)) return nullptr;
  PutOp* op = TakeAny(kind, key);
  if (op == nullptr) return nullptr;
  op->value_size = static_cast<uint32_t>(value_size);
  op->if_version = options.if_version;
  op->ttl = options.ttl ? static_cast<uint64_t>(options.ttl->count()) : 0;
  return op;
}

bool PutTaker::Refuses(size_t key_size, size_t value_size, const PutOptions& options) {
  if (options.ttl) {
    Bounds bounds;
    bounds.Check(kTtlBounds, options.ttl->count());
    if (!bounds.status().ok()) return Refuse(bounds.status());
  }
  // (The client may not know the geometry yet, and a request has 32 bits for the size.)
  if (value_size > UINT32_MAX) return Refuse({Code::kInvalidArgument, "no pool takes a value of 4 GiB or more"});
  const KnownPool& pool = connections_.pool();
  if (!pool.is_known || key_size == 0 || key_size > format::kKeyBytesMax) return false;
  const uint64_t most = format::ValueBytesMax(pool.geometry, key_size, options.ttl.has_value());
  if (value_size <= most) return false;
  return Refuse({Code::kInvalidArgument, "a value for a key of " + std::to_string(key_size) + " bytes has at most " +
                                             std::to_string(most) + " bytes in this pool, not " +
                                             std::to_string(value_size)});
}

PutOp* PutTaker::Take(PutKind kind, std::string_view key, std::string_view value, const PutOptions& options) {
  PutOp* op = TakePut(kind, key, value.size(), options);
  if (op == nullptr) return nullptr;
  // This layout serves the request and the log: request, key, checksum, value.
  const uint64_t value_at = format::InlineValueOffset(key.size());
  auto message = op->message();
  if (value_at + value.size() > message.size()) {
    if (LacksMemory(*op, value_at + value.size())) return nullptr;
    message = op->message();
  }
  CopyKey(message.data() + sizeof(Request), key);
  std::memcpy(message.data() + value_at, value.data(), value.size());
  return op;
}

bool PutTaker::LacksMemory(PutOp& op, uint64_t message_bytes) {
  const bool lacks = Refuse(operations_.memory().Provide(op, message_bytes));
  if (lacks) operations_.Abandon(op);
  return lacks;
}

PutOp* PutTaker::TakeFrom(std::string_view key, const std::shared_ptr<Buffer::Memory>& from, size_t size,
                          const PutOptions& options) {
  if (size > from->value.size()) {
    Refuse({Code::kInvalidArgument, "the buffer has " + std::to_string(from->value.size()) +
                                        " bytes, and the value is to have " + std::to_string(size)});
    return nullptr;
  }
  PutOp* op = TakePut(PutKind::kPut, key, size, options);
  if (op == nullptr) return nullptr;
  op->UseBuffer(from, format::InlineValueOffset(key.size()));
  CopyKey(op->message().data() + sizeof(Request), key);
  return op;
}

PutOp* PutTaker::TakeKey(PutKind kind, std::string_view key, std::optional<uint64_t> if_version) {
  PutOp* op = TakeAny(kind, key);
  if (op == nullptr) return nullptr;
  op->if_version = if_version;
  op->value_size = 0;
  CopyKey(op->message().data() + sizeof(Request), key);
  return op;
}

}  // namespace erda::client
