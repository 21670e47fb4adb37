// The persistent memory region of an NVMe disk, as a pool. A disk with such a region has a few MiB of memory that keep
// their bytes without power. The CPU stores there over PCI.
#pragma once

#include <memory>
#include <string>

#include "erda/status.h"
#include "nvm/pool.h"

namespace erda::nvm {

// Maps all of a region. `resource` is the file of its PCI resource, such as
// /sys/bus/pci/devices/0000:00:05.0/resource4. With _wc at the end of the name, it asks for write-combining: stores
// next to each other then go over PCI together. Without it each store of 8 bytes goes alone. Switches the device's
// memory and the region on, if nobody has. The region stays on.
//
// The pool is power-safe. Its Writer's Flush does nothing, since no cache has the bytes. Its Fence waits for the CPU's
// stores, and then reads from the device, as the device asks for. After a fence that found the region broken or gone,
// failed() is true for good, and no earlier store counts as persistent.
//
// Returns kUnavailable if another process has the region, if a driver keeps it, or if it does not become ready. Returns
// kInvalidArgument if the file is not the resource of a region.
Result<std::unique_ptr<Pool>> OpenPmr(const std::string& resource);

}  // namespace erda::nvm
