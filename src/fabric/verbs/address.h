// Addresses of the verbs fabric: verbs://host:port and verbs://[fd00::1]:port. Options follow a question mark.
//
//   device=NAME  The RDMA device. Without it, the one to which the route leads.
//   gid=INDEX    With device: the entry of its table of addresses from which this end speaks.
//
// The host may be a name. Port 0 is for listening, at any free port.
//
// Owns nothing. Any thread may call these functions.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "erda/status.h"

namespace erda::fabric::verbs {

struct Address {
  std::string host;
  uint16_t port = 0;
  std::string device;
  std::optional<uint32_t> gid;
};

Result<Address> ParseAddress(std::string_view text);

// A socket address of either family.
struct SocketAddress {
  sockaddr_storage storage{};
  [[nodiscard]] sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] bool any() const;
  void set_port(uint16_t port);
};

// Looks the host up, which may take time if it is a name. Returns kUnavailable if the host has no address.
Result<SocketAddress> Lookup(const Address& address);

// Returns the address as text: "verbs://10.0.0.1:7700", "verbs://[fe80::1%2]:7700".
std::string FormatAddress(const SocketAddress& address, uint16_t port);

}  // namespace erda::fabric::verbs
