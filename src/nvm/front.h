// The bytes of a front: a small NVM in front of a journal's disk (docs/journal.md, "A small NVM in front").
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "erda/status.h"
#include "nvm/pool.h"

namespace erda::nvm {

struct FrontOptions {
  // /dev/daxX.Y, a file on a DAX file system, or "pmr:" and the PCI resource of an NVMe disk's persistent memory region
  // (pmr_pool.h).
  std::string address;
  uint64_t least_size = 0;
  // Takes any file, though a power cut can damage its bytes. For tests and for measurements on a machine without NVM.
  bool any_file = false;
};

// Maps all of a front, and changes no byte. A lock keeps other processes away. A Writer stores there; if the medium
// breaks, the pool's failed() tells it after the next fence, as far as the medium says so.
//
// Returns kNotFound if there is no such file, and kUnavailable if another process has it open. Returns kInvalidArgument
// if it is smaller than least_size, or loses its bytes in a power cut.
Result<std::unique_ptr<Pool>> OpenFront(const FrontOptions& options);

}  // namespace erda::nvm
