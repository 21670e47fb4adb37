// A peer that keeps to none of the fabric's rules: what it asks with and what it posts is up to the test. Over
// librdmacm and libibverbs themselves.
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
  // Asks there with these bytes as rdma_cm's private data, and waits for the answer. kUnavailable: it is refused.
  static Result<std::unique_ptr<RawRdmaPeer>> Connect(const std::string& address,
                                                      std::span<const std::byte> private_data);
  RawRdmaPeer(const RawRdmaPeer&) = delete;
  RawRdmaPeer& operator=(const RawRdmaPeer&) = delete;
  ~RawRdmaPeer();

  // These do not wait. So many Sends of the same bytes.
  void Send(std::span<const std::byte> bytes, size_t times = 1);
  // A WriteImm without bytes: it needs no memory of the other end.
  void WriteImm();
  // Writes its count of the other end's messages where that looks. REQUIRES: greeted().
  void TellConsumed(uint64_t count);
  // Keeps that count where the other end reads it when it has run out.
  void KeepConsumed(uint64_t count);
  // Whether the other end's greeting is there.
  bool greeted();
  // What it said: where the other end's regions are, and by what keys. REQUIRES: greeted().
  [[nodiscard]] const fabric::verbs::Greeting& greeting() const { return *greeting_; }
  // Whether all that was posted is done, well or not.
  bool idle();
  // Whether the other end has closed the connection, or takes nothing any more.
  bool closed();

  // The same with a region for the other end to write, of which nothing is used.
  [[nodiscard]] fabric::verbs::Greeting GreetingWithRegion() const;
  // What an honest client that offers nothing would send first.
  [[nodiscard]] fabric::verbs::Greeting HonestGreeting() const;

 private:
  RawRdmaPeer() = default;
  Status Ask(const std::string& address, std::span<const std::byte> private_data);
  // Registered memory with these bytes.
  ibv_sge Stage(std::span<const std::byte> bytes);
  void Post(ibv_send_wr work);
  void Look();

  rdma_cm_id* id_ = nullptr;
  ibv_mr* region_ = nullptr;
  std::vector<std::byte> memory_;  // what it has sent, what it receives, a page of credit
  size_t send_at_ = 0;
  size_t posted_ = 0;
  size_t done_ = 0;
  bool closed_ = false;
  std::optional<fabric::verbs::Greeting> greeting_;  // the other end's
};

}  // namespace erda
