// The registered memory of one client's operations, and of the requests that it sends for itself.
//
// All of it is one region of the fabric, and stays until the client goes. A message that is too large for it gets
// memory with the operation. Only the client's thread calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "client/operation.h"
#include "erda/status.h"
#include "fabric/fabric.h"
#include "format/geometry.h"
#include "format/messages.h"

namespace erda::client {

class OperationMemory {
 public:
  // Makes and registers memory for this number of operations.
  Status Prepare(fabric::Fabric& fabric, size_t operations);

  // Returns the memory of one operation.
  [[nodiscard]] std::span<std::byte> Of(OpIndex index) {
    return std::span(memory_).subspan(index * kOpMemoryBytes, kOpMemoryBytes);
  }
  // Returns the memory of the one report that may be under way.
  [[nodiscard]] std::span<std::byte> report() { return std::span(memory_).subspan(report_at_, kReportBytesMax); }
  // Returns the memory of the one request about a chunk that may be under way to this shard.
  [[nodiscard]] std::span<std::byte> chunk_request(uint32_t shard) {
    return std::span(memory_).subspan(report_at_ + kReportBytesMax + shard * sizeof(format::Request),
                                      sizeof(format::Request));
  }

  // Makes the operation's message as large as that, at least.
  Status Provide(Operation& op, uint64_t message_bytes) {
    return message_bytes <= op.message().size() ? Status() : ProvideLarge(op, message_bytes);
  }

 private:
  static constexpr uint64_t kReportBytesMax = AlignUp(sizeof(format::Request) + format::kKeyBytesMax, kCacheLine);

  Status ProvideLarge(Operation& op, uint64_t message_bytes);

  fabric::Fabric* fabric_ = nullptr;
  std::vector<std::byte> memory_;  // of the operations, then of the report, then of the requests about chunks
  uint64_t report_at_ = 0;
  std::unique_ptr<fabric::Region> region_;
};

}  // namespace erda::client
