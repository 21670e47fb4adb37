// The file of a pool, and its lock.
#pragma once

#include <cstdint>
#include <string>

#include "base/unique_fd.h"
#include "erda/status.h"

namespace erda::nvm {

// Opens the file or device of a pool, and locks it until the descriptor is closed. Creates a file that does not exist
// if `size` is not 0; `created` tells. It locks before anybody reads, so that no other process has the pool open.
// Returns kUnavailable if another process has.
Result<UniqueFd> OpenLocked(const std::string& path, uint64_t size, bool* created);

// Returns the number of bytes of a file. Returns 0 for a device.
Result<uint64_t> ExistingSize(const std::string& path, int fd);

// Returns an error about the pool at that path.
Status InPath(const std::string& path, Code code, const std::string& what);

}  // namespace erda::nvm
