// The error of an end of a link whose peer breaks the rules.
#pragma once

#include <string>

#include "erda/status.h"

namespace erda::mirror {

// peer: "the mirror" or "the primary".
[[gnu::cold]] inline Status Breach(const char* peer, const char* what) {
  return {Code::kInvalidArgument, std::string(peer) + " broke the protocol: " + what};
}

}  // namespace erda::mirror
