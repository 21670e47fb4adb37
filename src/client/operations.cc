#include "client/operations.h"

#include <string>

namespace erda::client {

Status Operations::Prepare(fabric::Fabric& fabric, uint32_t queue_depth) {
  queue_depth_ = queue_depth;
  const size_t count = queue_depth + 1;
  if (auto status = memory_.Prepare(fabric, count); !status.ok()) return status;
  slots_.resize(count);
  for (OpIndex i = 0; i < count; ++i) free_.push_back(i);
  key_order_.Reset(count);
  done_.reserve(2 * count);  // operations that are delivered now, and operations that end meanwhile
  ready_.Reserve(count);
  return {};
}

Status Operations::NoRoom() const {
  return {Code::kResourceExhausted, "queue_depth, " + std::to_string(queue_depth_) + ", operations are in flight"};
}

Status Operations::Refusal(std::string_view key) const {
  if (key.empty() || key.size() > format::kKeyBytesMax) {
    return {Code::kInvalidArgument,
            "a key has 1 to " + std::to_string(format::kKeyBytesMax) + " bytes, not " + std::to_string(key.size())};
  }
  return NoRoom();
}

void Operations::Rehash(const HashSeed& seed) {
  for (Operation* op : slots_) {
    if (op->in_order) op->key_hash = HashKey(op->key_view(), seed);
  }
  key_order_.Rehash(*this);
}

void Operations::ThrowAgain() { std::rethrow_exception(std::exchange(thrown_, nullptr)); }

Operation* Operations::TakeNextReady() {
  while (!ready_.empty()) {
    Operation& op = *slots_[ready_.front()];
    ready_.pop_front();
    if (!op.doomed) return &op;
    Defer(op, std::move(op.result));
  }
  return nullptr;
}

}  // namespace erda::client
