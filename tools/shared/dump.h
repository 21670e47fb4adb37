// erda-cli dump and load: all keys of a server into a file, and back into any server.
#pragma once

#include <cstdint>
#include <cstdio>

#include "erda/client.h"
#include "erda/status.h"

namespace erda::tools {

struct Dumped {
  uint64_t keys = 0;
  uint64_t bytes = 0;    // of the file
  uint64_t damaged = 0;  // keys that are not in it, since they could not be told
};
Result<Dumped> Dump(Client& client, std::FILE* to, bool show_progress);

struct Loaded {
  uint64_t keys = 0;     // that were put
  uint64_t present = 0;  // that were not, since they were there
  uint64_t expired = 0;  // that were not, since their time is over
  uint64_t damaged = 0;  // that the dump does not have, as Dumped::damaged
};
// What was put before an error stays. `loaded` tells of it in any case.
Status Load(Client& client, std::FILE* from, bool if_absent, bool show_progress, Loaded* loaded);

}  // namespace erda::tools
