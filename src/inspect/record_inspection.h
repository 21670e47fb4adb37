// The inspection of a shard's record: version limit, number of keys, blocks and reaches of the index, last move.
#pragma once

#include "format/index_layout.h"
#include "inspect/shard_bytes.h"
#include "inspect/shard_findings.h"

namespace erda::inspect {

// Copies the record into the report, and adds its damage. Sets the blocks and reaches of the layout. Where the record
// is damaged, the layout gets the first blocks alone, or the farthest reaches. REQUIRES: the shard's regions are
// counted, and the layout knows their runs.
void InspectRecord(const ShardBytes& bytes, format::IndexLayout* layout, ShardFindings* findings);

}  // namespace erda::inspect
