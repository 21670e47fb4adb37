// Which flush method the sessions of a fabric get.
#pragma once

#include "erda/server.h"
#include "fabric/fabric.h"
#include "format/durability.h"
#include "format/messages.h"

namespace erda::server {

// A medium that loses what is not flushed needs a flush; on the others a placed value is as safe as it can be
// (docs/guarantees.md). A Read flushes what a NIC wrote past the CPU, and nothing that went through a CPU's caches: the
// clients of shm copy with theirs, so there the shard flushes, whatever was chosen.
constexpr format::FlushMethod ChooseFlush(FlushChoice choice, format::Durability durability,
                                          const fabric::Capabilities& capabilities) {
  if (durability != format::Durability::kPowerSafe) return format::FlushMethod::kNone;
  return choice == FlushChoice::kReadAfterWrite && capabilities.nic_writes ? format::FlushMethod::kReadAfterWrite
                                                                           : format::FlushMethod::kServerFlush;
}

}  // namespace erda::server
