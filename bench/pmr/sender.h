// The client's end of all four paths.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/shared_memory.h"
#include "bench/pmr/report.h"
#include "bench/pmr/responder.h"
#include "bench/pmr/worker.h"
#include "erda/status.h"
#include "fabric/fabric.h"

namespace erda::pmr_bench {

// One thread at a time uses it.
class Sender {
 public:
  // `flush` is not kAuto. REQUIRES: the responder outlives the sender. No other sender has this number.
  static Result<std::unique_ptr<Sender>> Connect(const Responder& responder, uint64_t number, Flush flush);
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;
  ~Sender() = default;

  // Makes `bytes` of the payload persistent, and waits for it. REQUIRES: bytes <= kBytesMax, and the responder has a
  // region for the path if it is a direct one.
  Status Persist(Path path, uint64_t bytes);
  // Sends a message with this immediate and the first bytes of the payload, and waits for the answer. Returns
  // kUnavailable if the server could not do it.
  Status Ask(uint32_t immediate, uint64_t bytes);
  // The bytes that Persist and Ask send.
  [[nodiscard]] std::span<std::byte> payload() const { return payload_; }

 private:
  Sender(const Responder& responder, uint64_t number, Flush flush)
      : responder_(responder), number_(number), flush_(flush) {}
  Status Prepare();
  Status WriteAndFlush(Path path, uint64_t bytes);
  // Waits for a completion of this kind.
  Status Await(fabric::OpKind kind);

  const Responder& responder_;
  const uint64_t number_;
  const Flush flush_;
  std::vector<std::byte> memory_;
  std::span<std::byte> payload_;
  std::span<std::byte> read_;  // For the Read that flushes.
  SharedMemory answers_;       // The answers have no bytes, but the responder needs a region to write to.
  std::shared_ptr<fabric::Fabric> fabric_;
  std::unique_ptr<fabric::Region> region_;
  std::unique_ptr<fabric::Region> answer_region_;
  std::unique_ptr<fabric::CompletionQueue> queue_;
  std::unique_ptr<fabric::Channel> channel_;  // Last, so destroyed first: it uses the memory above.
  std::array<fabric::Completion, 16> completions_;
};

}  // namespace erda::pmr_bench
