// The connection of a scheme's client to its server, and the memory that the fabric uses for it.
//
// Owns the registered memory of all operations, and that of their replies. Requires: the caller calls Open first, and
// Accept when the connection is there. The thread of the client calls it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/shared_memory.h"
#include "bench/schemes/messages.h"
#include "bench/schemes/scheme.h"
#include "erda/status.h"
#include "fabric/fabric.h"

namespace erda::schemes {

class SchemeLink {
 public:
  SchemeLink(Scheme scheme, std::string address) : scheme_(scheme), address_(std::move(address)) {}

  // Begins to connect, for this number of operations at once.
  Status Open(uint32_t slots);
  // Checks the server's greeting, and registers the memory of the operations: `extra` bytes for each, and room for the
  // largest request.
  Status Accept(size_t extra);
  // Returns the reason for which the connection has ended.
  [[nodiscard]] Status CloseReason() const;

  [[nodiscard]] Scheme scheme() const { return scheme_; }
  [[nodiscard]] const std::string& address() const { return address_; }
  // Returns the server's greeting. It is all zeroes before Accept.
  [[nodiscard]] const HelloReply& hello() const { return hello_; }
  [[nodiscard]] bool accepted() const { return accepted_; }
  [[nodiscard]] fabric::CompletionQueue& queue() { return *queue_; }
  [[nodiscard]] fabric::Channel& channel() { return *channel_; }
  // Requires: Accept was called.
  [[nodiscard]] std::span<std::byte> MemoryOf(uint32_t slot) {
    return std::span(memory_).subspan(slot * stride_, stride_);
  }
  [[nodiscard]] std::span<const std::byte> ReplyOf(uint32_t slot) const {
    return reply_memory_.bytes().subspan(uint64_t{slot} * kReplySlotBytes, kReplySlotBytes);
  }

 private:
  const Scheme scheme_;
  const std::string address_;
  uint32_t slots_ = 0;
  size_t stride_ = 0;
  HelloReply hello_{};
  bool accepted_ = false;
  std::vector<std::byte> memory_;  // Of the operations.
  SharedMemory reply_memory_;
  std::shared_ptr<fabric::Fabric> fabric_;
  std::unique_ptr<fabric::Region> region_;
  std::unique_ptr<fabric::Region> reply_region_;
  std::unique_ptr<fabric::CompletionQueue> queue_;
  std::unique_ptr<fabric::Channel> channel_;  // Last, so destroyed first: it uses the memory above.
};

}  // namespace erda::schemes
