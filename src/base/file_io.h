// Reads and writes of a whole range of a file. They own nothing. Any thread may call them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "erda/status.h"

namespace erda {

// `name` is the file's name in messages, as in "pool /srv/erda.pool". ReadRange returns kCorruption if the file ends
// before the range does.
Status ReadRange(int fd, const std::string& name, uint64_t offset, std::span<std::byte> to);
Status WriteRange(int fd, const std::string& name, uint64_t offset, std::span<const std::byte> from);

}  // namespace erda
