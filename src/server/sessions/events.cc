#include "server/sessions/events.h"

#include <array>
#include <cstdio>

namespace erda::server {

std::string NameOfClient(uint64_t client_id, std::string_view peer) {
  std::array<char, 32> number{};
  std::snprintf(number.data(), number.size(), "client %016llx", static_cast<unsigned long long>(client_id));
  std::string name = number.data();
  if (!peer.empty()) name.append(" (").append(peer).append(")");
  return name;
}

}  // namespace erda::server
