// Chooses the flush method of the sessions of a fabric. A pure function.
#pragma once

#include "erda/server.h"
#include "fabric/fabric.h"
#include "format/durability.h"
#include "format/hello.h"

namespace erda::server {

// A medium that loses what is not flushed needs a flush; on the others a placed value is as safe as it can be
// (docs/guarantees.md). A Read flushes the bytes that a NIC wrote past the CPU. It does not flush bytes in a CPU's
// caches. Clients over shm copy with their CPU, so there the shard flushes, whatever the user chose.
//
// A pool with mirrors has the shard flush on every medium: no version may count before the mirror has it.
constexpr format::FlushMethod ChooseFlush(FlushChoice choice, format::Durability durability,
                                          const fabric::Capabilities& capabilities, bool mirrored = false) {
  if (mirrored) return format::FlushMethod::kServerFlush;
  if (durability != format::Durability::kPowerSafe) return format::FlushMethod::kNone;
  return choice == FlushChoice::kReadAfterWrite && capabilities.nic_writes ? format::FlushMethod::kReadAfterWrite
                                                                           : format::FlushMethod::kServerFlush;
}

}  // namespace erda::server
