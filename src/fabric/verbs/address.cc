#include "fabric/verbs/address.h"

#include <arpa/inet.h>
#include <netdb.h>

#include <charconv>
#include <cstring>
#include <memory>

namespace erda::fabric::verbs {

namespace {

constexpr std::string_view kScheme = "verbs://";

template <class Number>
bool ParseNumber(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

bool ParseOption(std::string_view option, Address* address) {
  const size_t equals = option.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view name = option.substr(0, equals);
  const std::string_view value = option.substr(equals + 1);
  if (name == "device" && !value.empty()) {
    address->device = value;
    return true;
  }
  if (name == "gid") {
    uint32_t index = 0;
    if (!ParseNumber(value, &index)) return false;
    address->gid = index;
    return true;
  }
  return false;
}

}  // namespace

Result<Address> ParseAddress(std::string_view text) {
  const auto wrong = [&](std::string_view what) {
    return Status(Code::kInvalidArgument, std::string(text).append(": ").append(what));
  };
  if (!text.starts_with(kScheme)) return wrong("not an address like verbs://host:port");
  std::string_view rest = text.substr(kScheme.size());
  Address address;
  if (const size_t question = rest.find('?'); question != std::string_view::npos) {
    std::string_view options = rest.substr(question + 1);
    rest = rest.substr(0, question);
    while (!options.empty()) {
      const size_t end = options.find('&');
      if (!ParseOption(options.substr(0, end), &address)) return wrong("the options are device=NAME and gid=INDEX");
      options = end == std::string_view::npos ? std::string_view() : options.substr(end + 1);
    }
    if (address.gid && address.device.empty()) return wrong("gid needs a device");
  }
  const size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) return wrong("the port is missing, as in verbs://host:7700");
  std::string_view host = rest.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return wrong("an IPv6 address goes into brackets, as in verbs://[fd00::1]:7700");
  }
  if (host.empty()) return wrong("the host is missing");
  if (!ParseNumber(rest.substr(colon + 1), &address.port)) return wrong("the port must be 0 to 65535");
  address.host = host;
  return address;
}

bool SocketAddress::any() const {
  if (storage.ss_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr == htonl(INADDR_ANY);
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr;
  return std::memcmp(&v6, &in6addr_any, sizeof(v6)) == 0;
}

void SocketAddress::set_port(uint16_t port) {
  if (storage.ss_family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(&storage)->sin_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port = htons(port);
  }
}

Result<SocketAddress> Lookup(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(address.host.c_str(), nullptr, &hints, &found);
  if (error != 0) {
    return Status(Code::kUnavailable, "no address is known of host " + address.host + ": " + ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  SocketAddress result;
  std::memcpy(&result.storage, found->ai_addr, std::min<size_t>(found->ai_addrlen, sizeof(result.storage)));
  result.set_port(address.port);
  return result;
}

std::string FormatAddress(const SocketAddress& address, uint16_t port) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.storage.ss_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr, text, sizeof(text));
    return std::string(kScheme) + text + ":" + std::to_string(port);
  }
  const auto& v6 = *reinterpret_cast<const sockaddr_in6*>(&address.storage);
  ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  const std::string scope = v6.sin6_scope_id == 0 ? "" : "%" + std::to_string(v6.sin6_scope_id);
  return std::string(kScheme) + "[" + text + scope + "]:" + std::to_string(port);
}

}  // namespace erda::fabric::verbs
