// erda-cli dump and load: copy all keys of a server into a file, and back into any server.
#pragma once

#include <cstdint>
#include <cstdio>

#include "erda/client.h"
#include "erda/status.h"

namespace erda::tools {

struct Dumped {
  uint64_t keys = 0;
  uint64_t bytes = 0;    // of the file
  uint64_t damaged = 0;  // keys that are damaged, and not in the file
};
Result<Dumped> Dump(Client& client, std::FILE* to, bool show_progress);

struct Loaded {
  uint64_t keys = 0;     // put
  uint64_t present = 0;  // not put, since the key has a value
  uint64_t expired = 0;  // not put, since the value has expired
  uint64_t damaged = 0;  // not in the dump, as Dumped::damaged
};
// Puts the keys of a dump. Keys that were put before an error stay. Fills in `loaded` in any case.
Status Load(Client& client, std::FILE* from, bool if_absent, bool show_progress, Loaded* loaded);

}  // namespace erda::tools
