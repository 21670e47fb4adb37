// The server's end: it answers messages of clients, each in a separate thread, and offers memory for one-sided Writes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "erda/status.h"
#include "fabric/fabric.h"
#include "nvm/pool.h"

namespace erda::pmr_bench {

// The most bytes of a message.
inline constexpr uint64_t kBytesMax = 64 << 10;

// A message is a WriteImm of a payload, or of nothing, into the first region. Its immediate has the kind and the size.
// The answer is a WriteImm without bytes: the immediate 0 says that the server has done what was asked.
inline constexpr uint32_t kSizeBits = 24;
inline constexpr uint32_t kMessageRegion = 0;
// Empty looks between two looks at the clock, of both ends.
inline constexpr uint32_t kLooksPerClock = 16;
[[nodiscard]] constexpr uint32_t ImmediateOf(uint8_t kind, uint64_t bytes) {
  return uint32_t{kind} << kSizeBits | static_cast<uint32_t>(bytes);
}

// The work of the server for one client. One thread calls it.
class Handler {
 public:
  Handler() = default;
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;
  virtual ~Handler() = default;
  // Returns false if it could not do it. REQUIRES: bytes <= kBytesMax.
  virtual bool Do(uint8_t kind, uint64_t bytes) = 0;
};
// `payload` is the place of this client's messages, of kBytesMax bytes.
using MakeHandler = std::function<std::unique_ptr<Handler>(uint64_t client, std::span<const std::byte> payload)>;

class Responder {
 public:
  // REQUIRES: the memories, and all that the handlers use, outlive it.
  static Result<std::unique_ptr<Responder>> Start(const std::string& address,
                                                  std::span<const nvm::Pool* const> memories, MakeHandler make);
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;
  ~Responder();

  [[nodiscard]] const std::string& address() const { return listener_->address(); }
  [[nodiscard]] fabric::Capabilities capabilities() const { return fabric_->capabilities(); }
  // Returns the number of the offered region that is this memory, or the reason why the fabric does not offer it.
  [[nodiscard]] const Result<uint32_t>& RegionOf(size_t memory) const { return numbers_[memory]; }

 private:
  explicit Responder(MakeHandler make) : make_(std::move(make)) {}
  Status Prepare(const std::string& address, std::span<const nvm::Pool* const> memories);
  Result<uint32_t> Offer(const nvm::Pool& memory);
  void Listen();
  // Serves one client until it leaves.
  void Serve(fabric::Incoming& incoming);

  const MakeHandler make_;
  std::shared_ptr<fabric::Fabric> fabric_;
  std::vector<std::unique_ptr<fabric::Region>> offered_;
  std::vector<Result<uint32_t>> numbers_;
  std::unique_ptr<fabric::Listener> listener_;
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> serving_;  // The listening thread adds to it.
  std::thread listening_;
};

}  // namespace erda::pmr_bench
