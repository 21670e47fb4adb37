// An RDMA device as one fabric uses it: its abilities, its protection domain, and the keys of the memory registered
// there.
//
// Owns the open device, or a share of the object that opened it, and its own protection domain. The fabric's regions,
// queues, channels and listeners share a Device. It is constant after Open, except its keys, which have a mutex. So any
// thread may call it.
#pragma once

#include <rdma/rdma_cma.h>

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "fabric/fabric.h"
#include "fabric/verbs/address.h"
#include "fabric/verbs/local_keys.h"

namespace erda::fabric::verbs {

// The longest time in which the kernel asks the network for address and route.
constexpr int kResolveMs = 2000;

struct Limits {
  uint32_t cq_entries = 0;
  uint32_t qp_requests = 0;
  uint32_t srq_requests = 0;
  uint8_t reads_out = 0;  // Reads of a channel that may be under way: this end's, and the peer's.
  uint8_t reads_in = 0;
  // The device checks a window's bounds. If false, it checks only the bounds of the region in which the window is
  // bound.
  bool windows_have_bounds = true;
};

class Device {
 public:
  // Opens the device to which the address leads. Returns kUnavailable if it leads to no device.
  static Result<std::shared_ptr<Device>> Open(const Address& address, Role role);
  // Opens the same device once more, with another protection domain.
  static Result<std::shared_ptr<Device>> WithOtherDomain(std::shared_ptr<Device> device);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] ibv_context* context() const { return id_->verbs; }
  [[nodiscard]] ibv_pd* domain() const { return domain_; }
  [[nodiscard]] const Capabilities& capabilities() const { return capabilities_; }
  [[nodiscard]] const Limits& limits() const { return limits_; }
  [[nodiscard]] LocalKeys& keys() { return keys_; }
  // Returns the address from which this end speaks, if the fabric's address names it.
  [[nodiscard]] const std::optional<SocketAddress>& source() const { return source_; }
  // Looks the host up. Remembers the host of Open, so that connecting again asks no name server.
  [[nodiscard]] Result<SocketAddress> Lookup(const Address& address) const;
  // Returns an address of this device that peers can reach, to stand in for 0.0.0.0 or ::.
  [[nodiscard]] std::optional<SocketAddress> OwnAddress(int family) const;

  // Explains why memory cannot be registered, and what to do.
  static Status RegisterError(size_t bytes, int error);
  Result<ibv_mr*> Register(std::span<std::byte> bytes, unsigned access);

 private:
  Device() = default;
  Status Find(const Address& address, Role role);
  Status FindByName(const Address& address, int family);
  Status FindOnlyOne(int family);
  Status BindTo(const Address& address, int family);
  Status Ask();
  Status MakeDomain();

  std::shared_ptr<Device> opened_;  // The first object for this device, if this is a further one.
  rdma_cm_id* id_ = nullptr;        // Keeps the device open.
  ibv_pd* domain_ = nullptr;
  Capabilities capabilities_;
  Limits limits_;
  LocalKeys keys_;
  std::optional<SocketAddress> source_;
  std::string host_;  // The host that Open looked up, and the result.
  SocketAddress found_;
};

}  // namespace erda::fabric::verbs
