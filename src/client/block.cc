#include "client/block.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/planted.h"
#include "client/expiry.h"
#include "client/link.h"
#include "format/index_layout.h"

namespace erda::client {

namespace {

// The operation fails if the index has changed during this many Reads in a row: a peer lies, or never pauses.
constexpr uint32_t kBlockReadsMax = 1000;

}  // namespace

BlockOp& Blocks::Take(uint32_t shard, uint32_t hash_low) {
  BlockOp& op = operations_.Take(ops_);
  op.shard = shard;
  op.key_hash = hash_low;
  return op;
}

void Blocks::Start(BlockOp& op) {
  Link& link = *op.link;
  if (++op.reads > kBlockReadsMax) {
    return Fail(op, {Code::kTimeout, connections_.address() + ": the index is changed faster than a scan can read it"});
  }
  op.time_before = link.known.time();  // the scan need not read keys that had expired at that time
  op.slot_changes = link.known.slot_changes();
  op.times_up = link.times_up;
  op.block = link.known.layout().BlockOf(op.key_hash);
  if (!link.known.layout().IsKnown(op.block)) return connections_.WaitForHeads(op);
  const uint64_t bytes = link.geometry().block_slots() * sizeof(format::IndexEntry);
  if (auto status = operations_.memory().Provide(op, bytes); !status.ok()) return Fail(op, std::move(status));
  const uint64_t first = link.known.layout().SlotOffset(link.known.layout().FirstOf(op.block));
  between_readings_.Begin(op, Step::kBlock, op.message().first(bytes), {format::kPoolRegion, first});
}

// The client has read each key whose entry was there all the time. This holds if the shard moved nothing, and the block
// belonged to its keys before and after. A split takes keys away from the block. The number of blocks after the Read
// tells which keys no longer count here.
void Blocks::OnRead(BlockOp& op) {
  if (op.look == Look::kBefore) {
    op.link->known.Learn(LoadAs<Reading>(op.readings()));
    return Start(op);
  }
  if (op.look == Look::kAt) return between_readings_.ReadBehind(op);
  if (op.look == Look::kAll) op.before = LoadAs<Reading>(op.readings());
  const Reading before = op.before;
  const Reading after = BetweenReadings::TakeReading(op);
  const bool moved = before.displacements != after.displacements || before.displacements % 2 != 0;
  const bool split = !BetweenReadings::IsOfBlock(op, before) || !BetweenReadings::IsOfBlock(op, after);
  if (split && !Planted(Flaw::kBlockSplitNotSeen)) return Start(op);
  if (moved && !Planted(Flaw::kBlockNotConfirmed)) return Start(op);
  BlockView view;
  view.first.shard = op.shard;
  view.first.times_up = op.times_up;
  view.first.slot_changes = op.slot_changes;
  view.first.time_before = op.time_before;
  view.first.time_behind = std::min(after.time, kNoTime - 1);
  view.first.block = op.block;
  view.first.slot = op.link->known.layout().FirstOf(op.block);
  view.depth = format::IndexLayout::DepthOf(op.block, Planted(Flaw::kBlockSplitNotSeen) ? before.blocks : after.blocks);
  view.slots = op.message().first(op.link->geometry().block_slots() * sizeof(format::IndexEntry));
  End(op, Result<BlockView>(view));
}

void Blocks::Fail(BlockOp& op, Status status) {
  if (!operations_.polling()) return operations_.Defer(op, std::move(status));
  End(op, Result<BlockView>(std::move(status)));
}

void Blocks::End(BlockOp& op, const Result<BlockView>& block) {
  if (!block.ok()) ++stats_.failures;
  operations_.Retire(op, [&] { op.done(block); });
}

}  // namespace erda::client
