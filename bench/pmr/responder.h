// The server's end: it answers messages of clients, each in a separate thread, and offers its memory for one-sided
// Writes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/pmr/report.h"
#include "bench/pmr/targets.h"
#include "erda/status.h"
#include "fabric/fabric.h"

namespace erda::pmr_bench {

// A message is a WriteImm of a payload, or of nothing, into the first region. Its immediate has the kind and the size.
// The answer is a WriteImm without bytes: the immediate 0 says that the bytes are persistent.
enum class Message : uint8_t { kToDisk, kToRegion, kFlushNvm, kFlushRegion };
inline constexpr uint32_t kSizeBits = 24;
inline constexpr uint32_t kMessageRegion = 0;
// Empty looks between two looks at the clock, of both ends.
inline constexpr uint32_t kLooksPerClock = 16;
[[nodiscard]] constexpr uint32_t ImmediateOf(Message message, uint64_t bytes) {
  return static_cast<uint32_t>(message) << kSizeBits | static_cast<uint32_t>(bytes);
}

class Responder {
 public:
  // REQUIRES: the targets outlive it, and have an area for each client.
  static Result<std::unique_ptr<Responder>> Start(const std::string& address, const Targets& targets);
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;
  ~Responder();

  [[nodiscard]] const std::string& address() const { return listener_->address(); }
  [[nodiscard]] fabric::Capabilities capabilities() const { return fabric_->capabilities(); }
  // Returns the number of the offered region into which a direct path writes, or the reason why the fabric does not
  // offer it.
  [[nodiscard]] const Result<uint32_t>& RegionOf(Path path) const {
    return path == Path::kPmrDirect ? region_number_ : nvm_number_;
  }

 private:
  explicit Responder(const Targets& targets) : targets_(targets) {}
  Status Prepare(const std::string& address);
  Result<uint32_t> Offer(const nvm::Pool& pool);
  void Listen();
  // Serves one client until it leaves.
  void Serve(fabric::Incoming& incoming);

  const Targets& targets_;
  std::shared_ptr<fabric::Fabric> fabric_;
  std::vector<std::unique_ptr<fabric::Region>> offered_;
  Result<uint32_t> nvm_number_ = Status(Code::kInternal);
  Result<uint32_t> region_number_ = Status(Code::kInternal);
  std::unique_ptr<fabric::Listener> listener_;
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> serving_;  // The listening thread adds to it.
  std::thread listening_;
};

}  // namespace erda::pmr_bench
