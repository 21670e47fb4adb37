// The functions of a Client that only the C API calls. The client's thread calls them.
#pragma once

#include <cstddef>

#include "erda/client.h"

namespace erda {

struct Client::Access {
  // Does the same as Client::Poll, and returns the status of a refused call.
  static Status Poll(Client& client, size_t* finished);
};

}  // namespace erda
