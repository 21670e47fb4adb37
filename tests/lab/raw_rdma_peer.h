// A peer that need not keep the fabric's rules. The test chooses the bytes with which it asks, and its requests. The
// peer uses librdmacm and libibverbs themselves.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "erda/status.h"
#include "fabric/verbs/handshake.h"

namespace erda {

class RawRdmaPeer {
 public:
  // Asks at the address with these bytes as private data of rdma_cm, and waits for the answer. Returns kUnavailable if
  // the other end refuses.
  static Result<std::unique_ptr<RawRdmaPeer>> Connect(const std::string& address,
                                                      std::span<const std::byte> private_data);
  RawRdmaPeer(const RawRdmaPeer&) = delete;
  RawRdmaPeer& operator=(const RawRdmaPeer&) = delete;
  ~RawRdmaPeer();

  // Posts Sends of the same bytes. This function and the next three do not wait.
  void Send(std::span<const std::byte> bytes, size_t times = 1);
  // Posts a WriteImm without bytes. It needs no memory of the other end.
  void WriteImm();
  // Writes a count of consumed messages to the place where the other end expects to be told. REQUIRES: greeted().
  void TellConsumed(uint64_t count);
  // Stores a count of consumed messages in the page that the other end reads when it has no room.
  void KeepConsumed(uint64_t count);
  // Returns true if the other end's greeting has arrived.
  bool greeted();
  // Returns the other end's greeting, with the addresses and keys of its regions. REQUIRES: greeted().
  [[nodiscard]] const fabric::verbs::Greeting& greeting() const { return *greeting_; }
  // Returns true if each posted request has completed, also with an error.
  bool idle();
  // Returns true if the other end has closed the connection, or accepts no request any more.
  bool closed();

  // Returns an honest greeting that offers one region for writing. The other end need not use the region.
  [[nodiscard]] fabric::verbs::Greeting GreetingWithRegion() const;
  // Returns the greeting of an honest client that offers no region.
  [[nodiscard]] fabric::verbs::Greeting HonestGreeting() const;

 private:
  RawRdmaPeer() = default;
  Status Ask(const std::string& address, std::span<const std::byte> private_data);
  // Copies the bytes into registered memory, and returns the piece.
  ibv_sge Stage(std::span<const std::byte> bytes);
  void Post(ibv_send_wr work);
  void Look();

  rdma_cm_id* id_ = nullptr;
  ibv_mr* region_ = nullptr;
  std::vector<std::byte> memory_;  // Bytes to send, then receives, then the credit page.
  size_t send_at_ = 0;
  size_t posted_ = 0;
  size_t done_ = 0;
  bool closed_ = false;
  std::optional<fabric::verbs::Greeting> greeting_;  // Of the other end.
};

}  // namespace erda
