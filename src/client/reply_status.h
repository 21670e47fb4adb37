// Turns a shard's reply that reports no success into a status for the caller. Owns nothing. Only the client's
// thread calls it.
#pragma once

#include <string>

#include "client/link.h"
#include "erda/status.h"
#include "format/messages.h"

namespace erda::client {

[[nodiscard]] Status StatusOf(const Link& link, const format::Reply& reply);

}  // namespace erda::client
