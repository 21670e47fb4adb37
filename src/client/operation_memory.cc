#include "client/operation_memory.h"

#include <new>
#include <utility>

namespace erda::client {

Status OperationMemory::Prepare(fabric::Fabric& fabric, size_t operations) {
  fabric_ = &fabric;
  report_at_ = operations * kOpMemoryBytes;
  memory_.resize(report_at_ + kReportBytesMax + format::kShardsMax * sizeof(format::Request));
  auto region = fabric.Register(MemoryView{memory_, -1, -1}, fabric::Access::kLocal);
  if (!region.ok()) return region.status();
  region_ = *std::move(region);
  return {};
}

Status OperationMemory::ProvideLarge(Operation& op, uint64_t message_bytes) try {
  if (!op.in_buffer.empty()) {
    op.in_buffer = {};
    return Provide(op, message_bytes);
  }
  auto large = RegisteredMemory::Make(*fabric_, message_bytes);
  if (!large.ok()) return large.status();
  op.large = std::make_unique<RegisteredMemory>(*std::move(large));
  return {};
} catch (const std::bad_alloc&) {
  return Status(Code::kResourceExhausted);
}

}  // namespace erda::client
