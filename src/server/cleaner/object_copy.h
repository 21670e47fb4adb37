// Copies an object to another place in the log. The cleaner's thread calls it.
#pragma once

#include <cstdint>

#include "format/object.h"
#include "nvm/writer.h"
#include "server/cleaner/copy_target.h"

namespace erda::server {

// The copy keeps its version and its label, and has no `previous`. Persistent after the next fence. If the original is
// damaged the copy is damaged, too. from: the object's offset in the pool. REQUIRES: the header and the label of the
// object verify there, and nobody else writes to `to`.
void CopyObject(nvm::Writer& nvm, const format::ObjectView& object, uint64_t from, const CopySpace& to);

}  // namespace erda::server
