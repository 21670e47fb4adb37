// Tells the owner of a server about its clients, one line for each event. An event is a breach of the protocol, or a
// refusal of a client with the reason (docs/security.md, "What clients do wrong").
//
// A line has numbers, and words that the server chose. It has no bytes that a client chose, and no secret.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace erda::server {

// The threads of shards and addresses call the function, which must not wait. An empty function: nobody wants to know.
using TellEvent = std::function<void(std::string_view line)>;

// Returns the text that names a client in such a line: the number that it chose for itself, and what its fabric says
// about it.
[[nodiscard]] std::string NameOfClient(uint64_t client_id, std::string_view peer);

}  // namespace erda::server
