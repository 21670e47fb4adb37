// Reports to the service manager that started the program. The protocol is sd_notify's: a datagram to the socket that
// NOTIFY_SOCKET names.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "base/unique_fd.h"

namespace erda::tools {

// `state` is "READY=1" or "STOPPING=1". Returns false if there is a service manager, and it could not be told; errno
// has the reason.
inline bool Notify(std::string_view state) {
  const char* const named = std::getenv("NOTIFY_SOCKET");
  if (named == nullptr) return true;
  const std::string_view path = named;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    errno = EINVAL;
    return false;
  }
  std::copy(path.begin(), path.end(), &address.sun_path[0]);
  if (path.front() == '@') address.sun_path[0] = '\0';  // A socket without a file.
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  const ssize_t sent = ::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL,
                                reinterpret_cast<const sockaddr*>(&address), size);
  return sent == static_cast<ssize_t>(state.size());
}

}  // namespace erda::tools
