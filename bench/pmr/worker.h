// The server's work for the four paths.
#pragma once

#include <cstdint>
#include <span>

#include "bench/pmr/responder.h"
#include "bench/pmr/targets.h"
#include "nvm/writer.h"

namespace erda::pmr_bench {

enum class Message : uint8_t { kToDisk, kToRegion, kFlushNvm, kFlushRegion };
[[nodiscard]] constexpr uint32_t ImmediateOf(Message message, uint64_t bytes) {
  return ImmediateOf(static_cast<uint8_t>(message), bytes);
}

class Worker final : public Handler {
 public:
  // REQUIRES: the targets outlive it, and have an area for this client.
  Worker(const Targets& targets, uint64_t client, std::span<const std::byte> payload)
      : disk_(*targets.disk), client_(client), payload_(payload), nvm_(*targets.nvm), region_(*targets.region) {}

  bool Do(uint8_t kind, uint64_t bytes) override;

 private:
  bool ToDisk(uint64_t bytes);

  const DurableFile& disk_;
  const uint64_t client_;
  const std::span<const std::byte> payload_;
  nvm::Writer nvm_;
  nvm::Writer region_;
  uint64_t next_ = 0;  // The offset of the next write, in the client's part of the file.
};

}  // namespace erda::pmr_bench
