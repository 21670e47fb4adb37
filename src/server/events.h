// What the owner of a server is told of its clients, a line for each thing: what they did that the protocol does not
// allow, and why they were not let in (docs/security.md, "What clients do wrong").
//
// A line has numbers and words of the server's own, but nothing that a client chose the bytes of, and no secret.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace erda::server {

// Is called from the threads of shards and addresses, and does not wait. Empty: nobody wants to know.
using TellEvent = std::function<void(std::string_view line)>;

// A client in such a line: by the number that it chose for itself, and what its fabric says of it.
[[nodiscard]] std::string NameOfClient(uint64_t client_id, std::string_view peer);

}  // namespace erda::server
