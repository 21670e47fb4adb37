#include "inspect/record_inspection.h"

#include <algorithm>

#include "format/version_limit.h"

namespace erda::inspect {

using format::CheckedWord;
using format::IndexEntry;
using format::IndexLayout;

namespace {

// Leaves the layout with the first blocks alone, if the record is damaged, or if a run is missing.
void SetBlocks(const ShardBytes& bytes, CheckedWord record, IndexLayout* layout, ShardFindings* findings) {
  const format::Geometry& g = bytes.geometry();
  const uint64_t blocks = record.raw() == 0 ? g.first_blocks() : record.number();
  const uint32_t runs = findings->report().regions_index;
  const bool can_be = !record.damaged() && blocks >= g.first_blocks() && blocks <= g.blocks_max();
  if (can_be) layout->SetBlocks(blocks);
  bool known = true;
  for (uint64_t block = g.first_blocks(); block < layout->blocks(); ++block) known = known && layout->IsKnown(block);
  if (!known) layout->SetBlocks(g.first_blocks());
  const bool fits = runs <= (layout->grown() ? layout->RunOf(layout->blocks() - 1) + 2 : 1);
  if (can_be && known && fits) return;
  findings->Add(
      "the number of index blocks in the shard's record is damaged, or does not fit the regions of the index");
}

void ReportWindows(const IndexLayout& layout, ShardReport* report) {
  for (uint64_t of = 0; of < format::Reaches::kClasses; ++of) {
    const uint64_t slots = layout.WindowOf(of << 60).slots();
    report->window_slots = std::max(report->window_slots, slots);
    report->windows_grown += slots > format::kNeighbourhood ? 1 : 0;
  }
}

void InspectMove(const ShardBytes& bytes, uint64_t record, const IndexLayout& layout, ShardFindings* findings) {
  if (record == 0) return;
  const CheckedWord checked(record);
  const format::MoveWord move(checked.number());
  if (checked.damaged() || !move.Fits(layout.slots())) {
    findings->Add("the shard's record names a move in its index that cannot be");
    return;
  }
  const auto from = bytes.Load<IndexEntry>(layout.SlotOffset(move.from()));
  const auto to = bytes.Load<IndexEntry>(layout.SlotOffset(move.to()));
  const bool under_way = from.word != 0 && format::IsMovedCopy(from, to, move.to() - move.from());
  findings->report().move = ShardReport::Move{move.from(), move.to(), under_way};
}

}  // namespace

void InspectRecord(const ShardBytes& bytes, IndexLayout* layout, ShardFindings* findings) {
  const format::Geometry& g = bytes.geometry();
  ShardReport& report = findings->report();
  const auto record = bytes.Load<format::ShardRecord>(format::ShardRecordOffset(bytes.shard()));
  const auto limit = format::VersionLimitIn(record.version_limit);
  const CheckedWord keys(record.keys);
  const CheckedWord reaches(record.reaches);
  report.version_limit = limit.value_or(UINT64_MAX);
  report.keys_at_close = keys.number();
  SetBlocks(bytes, CheckedWord(record.blocks), layout, findings);
  layout->SetReaches(format::ReachesIn(reaches));
  report.index_blocks = layout->blocks();
  report.index_slots = layout->slots();
  ReportWindows(*layout, &report);
  report.log_bytes = (g.regions_per_shard - report.regions_index) * g.region_size;
  if (!limit) findings->Add("the shard's record has a damaged limit of versions");
  if (keys.damaged() || keys.number() > layout->slots()) {
    findings->Add("the shard's record has a damaged number of keys");
  }
  if (reaches.damaged()) {
    findings->Add("the shard's record has a damaged number of reaches: all are taken for the farthest");
  }
  InspectMove(bytes, record.move, *layout, findings);
}

}  // namespace erda::inspect
