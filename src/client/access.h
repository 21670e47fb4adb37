// What the C API needs of a Client and C++ has no words for.
#pragma once

#include <cstddef>

#include "erda/client.h"

namespace erda {

struct Client::Access {
  // As Client::Poll, with the status of a call that is refused.
  static Status Poll(Client& client, size_t* finished);
};

}  // namespace erda
