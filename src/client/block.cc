// What a scan is made of (docs/protocol.md, "Scan"): a block of the index, and the keys that its entries name.
//
//   block          read all of it between two readings of the displacement counter and of the number of blocks
//                  (I6, I14)
//   entry          read the version that the entry names as new: its header says which key it is. From then on it is
//                  a get of that key (get.cc), which has its version already
//   older          if that does not verify: the old version says it as well; then a get of the key
//   second look    if none does: has the entry changed since?
#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/planted.h"
#include "client/engine.h"

namespace erda::client {

using format::EntryMeta;
using format::EntryWord;
using format::IndexLayout;
using format::LogAddress;
using format::ObjectState;
using format::ObjectView;

namespace {

// An index that is changed during each of so many Reads cannot be read by blocks: a peer lies, or never pauses.
constexpr uint32_t kBlockReadsMax = 1000;

Status NoRoom(uint32_t queue_depth) {
  return {Code::kResourceExhausted, "queue_depth, " + std::to_string(queue_depth) + ", operations are in flight"};
}

}  // namespace

// --- A block

Status Engine::ReadBlock(uint32_t shard, uint32_t hash_low, BlockCallback&& done) {
  if (in_flight_ == options_.queue_depth) return NoRoom(options_.queue_depth);
  Operation& op = TakeOperation(OpType::kBlock);
  op.shard = shard;
  op.key_hash = hash_low;
  op.block_done.swap(done);
  op.block_reads = 0;
  Run(op);
  return {};
}

void Engine::StartBlock(Operation& op) {
  Link& link = *op.link;
  if (++op.block_reads > kBlockReadsMax) {
    return Finish(op, {Code::kTimeout, address_ + ": the index is changed faster than a scan can read it"});
  }
  op.time_before = link.time();  // its keys that had expired at that time need no Reads
  op.slot_changes = link.slot_changes;
  op.times_up = link.times_up;
  op.block = link.layout().BlockOf(op.key_hash);
  if (!link.layout().IsKnown(op.block)) return WaitForHeads(op);
  const uint64_t bytes = link.geometry().block_slots() * sizeof(format::IndexEntry);
  if (auto status = ProvideMessageMemory(op, bytes); !status.ok()) return Finish(op, std::move(status));
  const uint64_t first = link.layout().SlotOffset(link.layout().FirstOf(op.block));
  LookBetweenReadings(op, Step::kBlock, op.message().first(bytes), {format::kPoolRegion, first});
}

// Whose entry was there all the time has been read, if nothing was moved, and the block was that of its keys before and
// after. A split takes keys away from it: what went does not count, by the number behind it.
void Engine::OnBlockRead(Operation& op) {
  if (op.look == Look::kBefore) {
    op.link->Learn(LoadAs<Reading>(op.readings()));
    return StartBlock(op);
  }
  if (op.look == Look::kAt) return ReadBehind(op);
  if (op.look == Look::kAll) op.before = LoadAs<Reading>(op.readings());
  const Reading before = op.before;
  const Reading after = TakeReading(op);
  const bool moved = before.displacements != after.displacements || before.displacements % 2 != 0;
  const bool split = !IsOfBlock(op, before) || !IsOfBlock(op, after);
  if (split && !Planted(Flaw::kBlockSplitNotSeen)) return StartBlock(op);
  if (moved && !Planted(Flaw::kBlockNotConfirmed)) return StartBlock(op);
  BlockView view;
  view.first.shard = op.shard;
  view.first.times_up = op.times_up;
  view.first.slot_changes = op.slot_changes;
  view.first.time_before = op.time_before;
  view.first.time_behind = std::min(after.time, Operation::kNoTime - 1);
  view.first.block = op.block;
  view.first.slot = op.link->layout().FirstOf(op.block);
  view.depth = IndexLayout::DepthOf(op.block, Planted(Flaw::kBlockSplitNotSeen) ? before.blocks : after.blocks);
  view.slots = op.message().first(op.link->geometry().block_slots() * sizeof(format::IndexEntry));
  EndBlock(op, Result<BlockView>(view));
}

// --- An entry

Status Engine::GetEntry(const FoundEntry& found, bool with_value, EntryCallback&& done) {
  if (in_flight_ == options_.queue_depth) return NoRoom(options_.queue_depth);
  Operation& op = TakeOperation(OpType::kGet);
  op.shard = found.shard;
  op.nameless = true;
  op.label_only = !with_value && found.entry.entry_word().settled();
  op.times_up = found.times_up;
  op.slot_changes = found.slot_changes;
  op.time_before = found.time_before;
  // A version that is settled in the block was published when the block was read, and so before this reading.
  op.time_behind = found.entry.entry_word().settled() ? found.time_behind : Operation::kNoTime;
  op.block = found.block;
  op.entry = found.entry;
  op.entry_slot = found.slot;
  op.key_hash = found.entry.entry_meta().tag();  // which says the head
  op.foreign_count = 0;
  op.entry_done.swap(done);
  Run(op);
  return {};
}

void Engine::StartEntry(Operation& op) {
  if (op.times_up != op.link->times_up) return StartGet(op);  // another server's, perhaps
  ReadNewest(op);
}

// From here on it is a get of the key, if the version tells it.
bool Engine::TakeKey(Operation& op, const ObjectView& view) {
  const bool of_tag = EntryMeta::TagOf(view.header.key_hash) == op.entry.entry_meta().tag();
  if (view.state == ObjectState::kNothing || view.key.empty() || !of_tag) return false;
  op.nameless = false;
  op.label_only = false;
  op.key_hash = view.header.key_hash;
  op.key_size = static_cast<uint16_t>(view.key.size());
  std::memcpy(op.key.data(), view.key.data(), view.key.size());
  return true;
}

// The version that the entry names as new is what a get of its key would look at now. If another one told the key, the
// get begins from the start.
void Engine::LearnKey(Operation& op, const ObjectView& view) {
  const bool label_only = op.label_only;
  if (!TakeKey(op, view)) return DecideNameless(op, EntryLook::kNotYet);
  if (op.at != op.entry.entry_word().new_address()) return StartGet(op);
  if (!label_only) return DecideVersion(op, view, EntryLook::kNotYet);
  // It is settled, and so it was whole.
  const bool is_value = view.header.is_value();
  is_value ? EndWith(op, view) : Finish(op, Status(Code::kNotFound));
}

// No version has told the key. If the entry is the same still, its key has no value yet, or nobody can tell it.
void Engine::DecideNameless(Operation& op, EntryLook look) {
  const EntryWord word = op.entry.entry_word();
  const LogAddress old_address = word.old_address();
  switch (look) {
    case EntryLook::kNotYet:
      if (Planted(Flaw::kScanSkipsUnverified)) return Finish(op, Status(Code::kNotFound));
      // (I1) Beside a settled version the old address means nothing: its place may be another key's by now.
      if (!word.settled() && !old_address.none() && op.at != old_address) return GoTo(op, old_address);
      ++stats_.second_looks;
      return PostRead(op, Step::kSecondLook, EntryCopy(op), EntryAddress(op));
    case EntryLook::kChanged:
      return StartGet(op);
    case EntryLook::kUnchanged:
      break;
  }
  if (!SlotHolds(op)) return;
  if (op.slot_changes != op.link->slot_changes) return StartGet(op);  // of the other version's slot, perhaps
  if (!word.settled() && old_address.none()) return Finish(op, Status(Code::kNotFound));
  Finish(op, {Code::kCorruption, address_ + ": a stored key is damaged"});
}

}  // namespace erda::client
