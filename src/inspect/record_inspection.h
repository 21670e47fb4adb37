// The inspection of a shard's record: version limit, number of keys, last move, blocks and reaches of the index.
//
// The inspection does not look at the record's time. IndexInspection compares the record's rest place and rest hash
// with the index, and ignores them if they are damaged.
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
