// Get, step by step (docs/protocol.md, "Get"):
//
//   located        with a known location: read the version alone (located.cc); else, and if that does not count:
//   entry          read the first half of the key's neighbourhood, follow the entry with its tag
//   version        read the version it names, verify it, decide (read_table.h)
//   older          along `previous`: read with the old version's header, and go there unless it is newer than that
//   second look    if it does not verify: has the entry changed since?
//   miss confirm   if there is no entry: look at all of it between two readings of the displacement counter and of the
//                  number of blocks (I6, I14); in the block where the key is by now, if the index has grown. Reads in
//                  flight together are in no order, so each of the three is asked for when the one before it is there,
//                  unless the fabric takes Reads in order
//   farther        if the key's window is larger than its neighbourhood (I15): at the rest of it, a piece at a time,
//                  between the same two readings
#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/planted.h"
#include "client/engine.h"

namespace erda::client {

using format::EntryWord;
using format::IndexEntry;
using format::LogAddress;
using format::ObjectHeader;
using format::ObjectState;
using format::ObjectView;

namespace {

// Read of a version whose size is not known.
constexpr uint64_t kVersionBytesMin = 64;
constexpr uint64_t kSizeHintBytesMax = format::EntryMeta::kSizeHintMax * format::kGranuleBytes;
// Reads of one version because the size was not known: header, then key, then value, then not again.
constexpr uint32_t kRereadsMax = 4;
// A reader tells the server of a broken version at most so often.
constexpr std::chrono::milliseconds kReportEvery{1};

constexpr fabric::RemoteAddress kCounter{format::kControlRegion, offsetof(format::ControlBlock, displacements)};
static_assert(offsetof(format::ControlBlock, displacements) == offsetof(Reading, displacements));
static_assert(offsetof(format::ControlBlock, blocks) == offsetof(Reading, blocks));
static_assert(offsetof(format::ControlBlock, reaches) == offsetof(Reading, reaches));
static_assert(offsetof(format::ControlBlock, time) == offsetof(Reading, time));

// REQUIRES: the place of the operation's block is known.
fabric::RemoteAddress NeighbourhoodOf(Operation& op) {
  const format::IndexLayout& layout = op.link->layout();
  op.first_slot = layout.HomeIn(op.block, op.key_hash);
  return {format::kPoolRegion, layout.SlotOffset(op.first_slot)};
}

}  // namespace

// --- Expiry

// The shard's word is the only clock: from the moment at which it reaches the deadline on, the version says that the
// key is absent. So the version has expired if the word had reached the deadline before the Read that says that it is
// the newest: a later Read of the word may come behind another put. And it lives, if the word had not reached the
// deadline in a Read at a moment of this get when the version was published: it was the newest then, or from then on
// until it was read. (A version may be published behind its deadline, by a put that took as long. Nobody may return
// it.)
Engine::Expiry Engine::ExpiryOf(Link& link, uint64_t deadline, uint64_t time_before, uint64_t time_behind) {
  if (Planted(Flaw::kReturnsExpired)) return Expiry::kLives;
  const bool by_own_clock = Planted(Flaw::kTrustsOwnClock);
  if (by_own_clock) time_before = time_behind = 0;
  if (time_before >= deadline) return Expiry::kOver;
  if (time_behind == Operation::kNoTime) return Expiry::kUnknown;
  link.LearnTime(time_behind);
  if (time_behind >= deadline) return Planted(Flaw::kExpiresBehindRead) ? Expiry::kOver : Expiry::kMeanwhile;
  if (!link.time_hint.HasPassed(deadline, clock_.Now())) return Expiry::kLives;
  return by_own_clock ? Expiry::kOver : Expiry::kOverdue;
}

// The version is the one that counts.
void Engine::EndWithDeadline(Operation& op, const ObjectView& view) {
  Link& link = *op.link;
  switch (ExpiryOf(link, view.deadline, op.time_before, op.time_behind)) {
    case Expiry::kLives:
      return FinishGet(op, ViewOf(view));
    case Expiry::kOver:
      return Finish(op, Status(Code::kNotFound));
    case Expiry::kUnknown:
      op.found = view;
      return PostRead(op, Step::kTime, op.time_copy(), kTimeWord);
    case Expiry::kOverdue:
      AskTime(link);
      if (!link.up()) return;  // it has ended with its connection
      break;
    case Expiry::kMeanwhile:
      break;
  }
  StartGet(op);
}

// The client posted this Read after the version had arrived, so the version was published before.
void Engine::OnTimeRead(Operation& op) {
  op.time_behind = op.time_read();
  EndWithDeadline(op, op.found);
}

VersionedView Engine::ViewOf(const ObjectView& view) {
  VersionedView found{AsString(view.value), view.header.version, std::nullopt};
  if (view.deadline != 0) found.expires = Deadline(std::chrono::milliseconds(view.deadline));
  return found;
}

// --- Entry

void Engine::StartGet(Operation& op) {
  if (op.nameless) return Finish(op, Status(Code::kConflict));  // who found the entry looks again
  op.foreign_count = 0;
  op.time_before = op.link->time();
  op.time_behind = Operation::kNoTime;
  op.slot_changes = op.link->slot_changes;
  // Where misses are likely, the first look is at all that a miss has to look at.
  const bool at_all = misses_ && !ReadsInOrder();
  op.slots_read = at_all ? format::kNeighbourhood : format::kFirstLook;
  op.block = op.link->layout().BlockOf(op.key_hash);
  if (!op.link->layout().IsKnown(op.block)) return WaitForBlock(op);
  op.before = op.link->reading();
  PostRead(op, Step::kEntry, op.neighbourhood().first(op.slots_read * sizeof(IndexEntry)), NeighbourhoodOf(op));
}

void Engine::OnEntryRead(Operation& op) {
  misses_ = !FollowNextEntry(op);
  if (!misses_) return;
  uint64_t block = LikelyBlock(op);
  if (op.slots_read == format::kNeighbourhood && block == op.block && op.before.displacements % 2 == 0) {
    ++stats_.second_looks;
    op.looked = {op.first_slot, op.first_slot + format::kNeighbourhood};
    return GoFarther(op, format::Reaches(op.before.reaches));
  }
  if (!op.link->layout().IsKnown(block)) {
    // It may have a place that the control block tells.
    block = op.block;
    if (auto status = op.link->ReadControl(); !status.ok()) return CloseLink(*op.link, status);
  }
  ConfirmMiss(op, block);
}

// What was read tells of a block's depth that is not known yet: then the key is likely to be in the block which that
// makes its own. No more than a guess: what counts is the number of blocks.
uint64_t Engine::LikelyBlock(const Operation& op) {
  const format::IndexLayout& layout = op.link->layout();
  if (const uint64_t block = layout.BlockOf(op.key_hash); block != op.block) return block;  // another get has told
  const uint32_t known = layout.DepthOf(op.block);
  uint32_t deepest = known;
  const std::byte* at = op.neighbourhood().data();
  for (uint32_t slot = 0; slot < op.slots_read; ++slot, at += sizeof(IndexEntry)) {
    IndexEntry entry;
    std::memcpy(&entry, at, sizeof(entry));
    deepest = std::max(deepest, entry.entry_meta().depth());
  }
  const uint64_t likely = format::IndexLayout::BlockAt(op.key_hash, deepest);
  return deepest == known || likely >= op.link->geometry().blocks_max() ? op.block : likely;
}

// The control block tells it.
void Engine::WaitForBlock(Operation& op) {
  op.block = kNoBlock;
  WaitForHeads(op);
}

// Follows the first entry that has the key's tag and is not known to be another key's.
bool Engine::FollowNextEntry(Operation& op) {
  const uint32_t tag = format::EntryMeta::TagOf(op.key_hash);
  const std::byte* at = op.neighbourhood().data();
  for (uint32_t slot = 0; slot < op.slots_read; ++slot, at += sizeof(IndexEntry)) {
    IndexEntry entry;
    std::memcpy(&entry, at, sizeof(entry));
    if (entry.entry_meta().tag() != tag || entry.word == 0) continue;
    const auto foreign = std::span(op.foreign).first(op.foreign_count);
    if (std::find(foreign.begin(), foreign.end(), entry.word) != foreign.end()) continue;
    op.entry = entry;
    op.entry_slot = op.first_slot + slot;
    ReadNewest(op);
    return true;
  }
  return false;
}

// --- Version

// What the entry names as new. The largest hint says only that it is large: its header says how large.
void Engine::ReadNewest(Operation& op) {
  op.at = op.entry.entry_word().new_address();
  op.newer_version = 0;
  op.rereads = 0;
  const uint64_t hint = op.entry.entry_meta().size_hint_bytes();
  if (op.label_only) return ReadVersion(op, std::min(hint, kLabelBytesRead));
  ReadVersion(op, hint == kSizeHintBytesMax ? 0 : hint);
}

void Engine::ReadVersion(Operation& op, uint64_t bytes) {
  uint64_t offset = 0;
  uint64_t in_segment = 0;
  op.read_bytes = bytes;
  // (I10) An address counts in the use of its region in which the entry named it. If slots have changed since, it may
  // be another use: then the entry is read anew.
  if (op.slot_changes != op.link->slot_changes) return StartGet(op);
  op.next_control_read = op.link->NextControlRead();
  op.slot_read = op.link->SlotOf(HeadOf(op), op.at);
  if (!op.link->Resolve(op.slot_read, op.at, &offset, &in_segment)) {
    op.read_bytes = 0;
    return WaitForHeads(op);
  }
  op.read_bytes = std::min(std::max(bytes, kVersionBytesMin), in_segment);
  if (auto status = ProvideMessageMemory(op, op.read_bytes); !status.ok()) return Finish(op, std::move(status));
  const fabric::RemoteAddress version{format::kPoolRegion, offset};
  if (IsComparedWithOld(op)) {
    const LogAddress old_address = op.entry.entry_word().old_address();
    op.old_slot = op.link->SlotOf(HeadOf(op), old_address);
    const bool can_be = op.link->Resolve(op.old_slot, old_address, &offset, &in_segment);
    if (!can_be || in_segment < kOldHeaderBytes) return GoTo(op, old_address);
    op.step = Step::kObject;
    const fabric::RemoteAddress old_version{format::kPoolRegion, offset};
    const fabric::WorkRequest works[] = {ReadWork(op, op.message().first(op.read_bytes), version, false),
                                         ReadWork(op, op.old_header(), old_version, true)};
    Post(*op.link, works);
    return;
  }
  if (op.newer_version != 0 || op.link->geometry().heads_per_shard == 1) {
    return PostRead(op, Step::kObject, op.message().first(op.read_bytes), version);
  }
  // The entry is two words, and may have been read while its slot passed from one key to another: then the address is
  // looked for in the wrong head, and an old version of the key may stand just there. So the entry is read once more:
  // the first Read of it has arrived, so this one is behind that, and may be before the version's.
  op.step = Step::kObject;
  const fabric::WorkRequest works[] = {ReadWork(op, op.message().first(op.read_bytes), version, false),
                                       ReadWork(op, EntryCopy(op), EntryAddress(op), true)};
  Post(*op.link, works);
}

fabric::RemoteAddress Engine::EntryAddress(const Operation& op) const {
  return {format::kPoolRegion, op.link->layout().SlotOffset(op.entry_slot)};
}

std::span<std::byte> Engine::EntryCopy(const Operation& op) { return op.readings().first(sizeof(IndexEntry)); }

ObjectView Engine::InspectRead(const Operation& op) const {
  const format::Place place = op.link->PlaceOf(HeadOf(op), op.slot_read, op.at);
  const auto bytes = op.message().first(op.read_bytes);
  return op.label_only ? format::InspectLabel(place, bytes) : format::InspectObject(place, bytes);
}

void Engine::OnVersionRead(Operation& op) {
  op.next_control_read = op.link->NextControlRead();
  if (op.newer_version == 0 && op.read_bytes != 0 && op.link->geometry().heads_per_shard > 1) {
    const auto now = LoadAs<IndexEntry>(EntryCopy(op));
    if (now.word != op.entry.word || now.entry_meta().tag() != op.entry.entry_meta().tag()) {
      if (op.nameless)
        (void)TakeKey(op, InspectRead(op));  // a get of the key decides; without it the entry is sought anew
      return StartGet(op);
    }
  }
  const ObjectView view = InspectRead(op);
  if (view.bytes_wanted > op.read_bytes && op.rereads < kRereadsMax) {
    uint64_t offset = 0;
    uint64_t in_segment = 0;
    const bool fits = op.link->Resolve(op.slot_read, op.at, &offset, &in_segment) && view.bytes_wanted <= in_segment;
    ++op.rereads;
    if (fits) return ReadVersion(op, view.bytes_wanted);
  }
  if (op.nameless) return LearnKey(op, view);
  const bool compared = op.read_bytes != 0 && IsComparedWithOld(op);
  if (compared && view.state != ObjectState::kNothing && view.header.version <= OldVersion(op)) {
    return GoTo(op, op.entry.entry_word().old_address());
  }
  const bool first = op.newer_version == 0;
  const bool of_tag = view.state != ObjectState::kNothing &&
                      format::EntryMeta::TagOf(view.header.key_hash) == op.entry.entry_meta().tag();
  if (first && of_tag && view.key != op.key_view()) {
    // Another key with the same tag.
    if (op.foreign_count == op.foreign.size()) return StartGet(op);
    op.foreign[op.foreign_count++] = op.entry.word;
    if (FollowNextEntry(op)) return;
    if (op.first_slot != op.link->layout().HomeIn(op.block, op.key_hash)) {
      return GoFarther(op, format::Reaches(op.before.reaches));  // from a piece that was looked at in between
    }
    ConfirmMiss(op, op.link->layout().BlockOf(op.key_hash));
    return;
  }
  DecideVersion(op, view, EntryLook::kNotYet);
}

void Engine::DecideVersion(Operation& op, ObjectView view, EntryLook look) {
  if (op.nameless) return DecideNameless(op, look);
  // What is there counts only if it is a version of the key: else the entry is damaged, or has changed since it was
  // read (its slot is another key's now, or the tombstone of its delete made way for the next one). Further down the
  // chain a place may have been used anew: only an older version counts.
  const bool of_chain = view.key == op.key_view() && (op.newer_version == 0 || view.header.version < op.newer_version);
  if (!of_chain) view.state = ObjectState::kNothing;
  if (Planted(Flaw::kNoChecksum) && view.state == ObjectState::kHeader) {
    view.state = ObjectState::kWhole;
    view.value = op.message().subspan(format::ValueOffset(view.header.label_size()), view.header.value_size);
  }
  const EntryWord word = op.entry.entry_word();
  ReadFacts facts;
  facts.whole = view.state == ObjectState::kWhole;
  facts.settled = (op.at == word.new_address() && word.settled()) || op.at == word.old_address();
  facts.persisted = view.header.persisted();
  facts.flushed_by_read = view.header.flushed_by_read();
  facts.flush = op.link->flush_method();
  facts.look = look;
  switch (DecideRead(facts)) {
    case ReadStep::kReturn:
      if (op.newer_version != 0) ++stats_.older_versions;
      if (view.header.kind != static_cast<uint8_t>(format::ObjectKind::kValue))
        return Finish(op, Status(Code::kNotFound));
      if (view.header.left() && op.in_order) {
        locations_.Erase(op.key_hash);  // taken back to, or not the newest: it would be looked for there in vain
      } else if (op.at == word.new_address() && word.settled() && op.in_order) {
        Locate(op, op.at, op.slot_read.generation(), format::ObjectBytes(view.header.label_size(), view.value.size()),
               view.deadline != 0);
      }
      return EndWith(op, view);
    case ReadStep::kOlderAndReport:
      if (view.state == ObjectState::kNothing && !SlotHolds(op)) return;
      if (!Report(op)) return;
      return GoOlder(op, view);
    case ReadStep::kOlder:
      return GoOlder(op, view);
    case ReadStep::kLookAgain:
      ++stats_.second_looks;
      return PostRead(op, Step::kSecondLook, EntryCopy(op), EntryAddress(op));
    case ReadStep::kRestart:
      return StartGet(op);
    case ReadStep::kDamaged:
      if (!SlotHolds(op)) return;
      return Finish(op, {Code::kCorruption, address_ + ": the stored value of a key is damaged"});
  }
}

// (I10) That a version does not verify means nothing unless its slot was the same from before the entry was read until
// behind the version's Read: else it may have been looked for in another use of its region, or been torn by the zeroes
// over that; and the entry may have come back to the address meanwhile. A reading of the slots counts as behind that
// Read if it was posted when the Read had arrived. False: the operation goes on by itself.
bool Engine::SlotHolds(Operation& op) {
  const bool holds = op.link->SlotOf(HeadOf(op), op.at) == op.slot_read;
  const bool known = op.link->control_reads >= op.next_control_read || Planted(Flaw::kSlotNotConfirmed);
  if (holds && known) return true;
  holds ? WaitForHeads(op) : StartGet(op);
  return false;
}

void Engine::OnSecondLook(Operation& op) {
  const auto entry = LoadAs<IndexEntry>(EntryCopy(op));
  // Word and meta are two words: one Read may see the word of a key beside the meta of the key that had the slot
  // before, and then look for the version in the wrong head. The size hint may differ.
  const bool same = entry.word == op.entry.word && entry.entry_meta().tag() == op.entry.entry_meta().tag();
  DecideVersion(op, InspectRead(op), same ? EntryLook::kUnchanged : EntryLook::kChanged);
}

// From newest to oldest along `previous`; the entry's old address is where that ends, and the short cut if the chain
// cannot be followed.
void Engine::GoOlder(Operation& op, const ObjectView& view) {
  const LogAddress old_address = op.entry.entry_word().old_address();
  if (op.at == old_address) return Finish(op, Status(Code::kNotFound));
  const bool known = view.state != ObjectState::kNothing;
  // It may be the original of an old version that cannot be told any more. Then what is older is too old.
  if (known && IsComparedWithOld(op) && OldVersion(op) == 0) return GoTo(op, old_address);
  const LogAddress previous = known ? LogAddress(view.header.previous) : format::kNoAddress;
  const LogAddress next = previous.none() || Planted(Flaw::kSkipsChain) ? old_address : previous;
  if (next.none()) return Finish(op, Status(Code::kNotFound));
  op.newer_version = known ? view.header.version : (op.newer_version == 0 ? UINT64_MAX : op.newer_version);
  GoTo(op, next);
}

void Engine::GoTo(Operation& op, LogAddress address) {
  op.at = address;
  op.rereads = 0;
  ReadVersion(op, op.entry.entry_meta().size_hint_bytes());
}

// The version was reached along `previous`. The old one may have been moved since, and this be its original: whether it
// is the old one or older, its address does not tell.
bool Engine::IsComparedWithOld(const Operation& op) {
  const LogAddress old_address = op.entry.entry_word().old_address();
  return op.newer_version != 0 && !old_address.none() && op.at != old_address;
}

// The number of the entry's old version, by the header that was read behind another version; its key is known. 0 if it
// does not verify.
uint64_t Engine::OldVersion(const Operation& op) {
  const auto old = LoadAs<ObjectHeader>(op.old_header());
  const LogAddress old_address = op.entry.entry_word().old_address();
  const format::Place place = op.link->PlaceOf(HeadOf(op), op.old_slot, old_address);
  const auto deadline = LoadAs<uint64_t>(op.old_header().subspan(format::kLabelOffset));
  const bool verifies =
      old.key_size == op.key_size && format::HeaderCrc(place, old, op.key_view(), deadline) == old.header_crc;
  return verifies ? old.version : 0;
}

// --- Miss

void Engine::ConfirmMiss(Operation& op, uint64_t block) {
  op.time_before = op.link->time();
  op.time_behind = Operation::kNoTime;
  op.slot_changes = op.link->slot_changes;
  op.slots_read = format::kNeighbourhood;
  op.block = block;
  if (!op.link->layout().IsKnown(block)) return WaitForBlock(op);
  const fabric::RemoteAddress neighbourhood = NeighbourhoodOf(op);
  op.looked = {op.first_slot, op.first_slot + format::kNeighbourhood};
  LookBetweenReadings(op, Step::kMissConfirm, op.neighbourhood(), neighbourhood);
  if (op.look != Look::kBefore) ++stats_.second_looks;
}

// (I15) The neighbourhood of the operation's block was looked at, and perhaps more. Next is the rest of the window, as
// these reaches say how large it is; behind it all, the reading that says how large it was.
void Engine::GoFarther(Operation& op, format::Reaches reaches) {
  if (!LookFarther(op, reaches)) ReadBehind(op);
}

// Up to 64 slots at a time, away from the home; false if all of the window was looked at.
bool Engine::LookFarther(Operation& op, format::Reaches reaches) {
  op.step = Step::kMissConfirm;
  if (reaches.Exponent(op.key_hash) == 0 || Planted(Flaw::kReachNotSeen)) return false;
  const format::IndexLayout::Window window = op.link->layout().WindowIn(op.block, op.key_hash, reaches);
  uint64_t& begin = op.looked.begin;
  uint64_t& end = op.looked.end;
  if (end < window.end) {
    op.first_slot = end;
    end = std::min(end + format::kNeighbourhood, window.end);
    op.slots_read = static_cast<uint32_t>(end - op.first_slot);
  } else if (begin > window.begin) {
    op.first_slot = begin - std::min(begin - window.begin, uint64_t{format::kNeighbourhood});
    op.slots_read = static_cast<uint32_t>(begin - op.first_slot);
    begin = op.first_slot;
  } else {
    return false;
  }
  op.look = Look::kAt;
  op.foreign_count = 0;  // of the piece before
  op.slot_changes = op.link->slot_changes;
  PostRead(op, Step::kMissConfirm, op.neighbourhood().first(op.slots_read * sizeof(IndexEntry)),
           {format::kPoolRegion, op.link->layout().SlotOffset(op.first_slot)});
  return true;
}

bool Engine::ReadsInOrder() const { return reads_in_order_ || Planted(Flaw::kReadsInOrder); }

// Where Reads are taken in order, all three go out together. Else each is asked for when the one before it has arrived,
// and the reading before is what this client knows already, from whatever Read: the words only grow, so if the reading
// behind is equal, nothing was moved between the two. It is read only if it is odd, or of another block. The step is
// entered again when what was posted has arrived; op.look says what that is.
void Engine::LookBetweenReadings(Operation& op, Step step, std::span<std::byte> to, fabric::RemoteAddress from) {
  const auto before = op.readings().first(sizeof(Reading));
  if (ReadsInOrder()) {
    op.look = Look::kAll;
    op.step = step;
    const fabric::WorkRequest works[] = {
        ReadWork(op, before, kCounter, false),
        ReadWork(op, to, from, false),
        ReadWork(op, op.readings().last(sizeof(Reading)), kCounter, true),
    };
    Post(*op.link, works);
    return;
  }
  op.before = op.link->reading();
  if (op.before.displacements % 2 == 0 && IsOfBlock(op, op.before)) {
    op.look = Look::kAt;
    return PostRead(op, step, to, from);
  }
  op.look = Look::kBefore;
  PostRead(op, step, before, kCounter);
}

// The look has arrived, so the client posts this Read after it.
void Engine::ReadBehind(Operation& op) {
  op.look = Look::kBehind;
  PostRead(op, op.step, op.readings().last(sizeof(Reading)), kCounter);
}

// The reading behind a look. It is known from here on, to the looks that follow.
Reading Engine::TakeReading(Operation& op) {
  const auto reading = LoadAs<Reading>(op.readings().last(sizeof(Reading)));
  op.link->Learn(reading);
  return reading;
}

// The operation's block was its key's, or of the place that it looks for.
bool Engine::IsOfBlock(const Operation& op, const Reading& reading) {
  return reading.blocks != 0 && reading.blocks <= op.link->geometry().blocks_max() &&
         format::IndexLayout::BlockOf(op.key_hash, reading.blocks) == op.block;
}

void Engine::OnMissConfirm(Operation& op) {
  if (op.look == Look::kBefore) {
    op.link->Learn(LoadAs<Reading>(op.readings()));
    return ConfirmMiss(op, op.link->layout().BlockOf(op.key_hash));
  }
  if (op.look == Look::kAll) {
    op.before = LoadAs<Reading>(op.readings());
    (void)TakeReading(op);
  }
  // (I14) An entry counts if the block was the key's before it was read; that there is none, if it was so after that.
  if (op.look != Look::kBehind && IsOfBlock(op, op.before) && FollowNextEntry(op)) return;
  if (op.look == Look::kAt) return GoFarther(op, format::Reaches(op.before.reaches));
  const Reading before = op.before;
  const Reading after = TakeReading(op);
  const bool moved = before.displacements != after.displacements || before.displacements % 2 != 0;
  const bool split = !IsOfBlock(op, before) || !IsOfBlock(op, after);
  if (split && !Planted(Flaw::kSplitNotSeen)) return ConfirmMiss(op, op.link->layout().BlockOf(op.key_hash));
  if (moved && !Planted(Flaw::kMissNotConfirmed)) return ConfirmMiss(op, op.block);
  op.before.reaches = after.reaches;  // only these may be more: all else is as it was before
  if (LookFarther(op, format::Reaches(after.reaches))) return;
  Finish(op, Status(Code::kNotFound));
}

// --- Telling the server

// Nobody waits for it, so it goes only if there is a slot to spare, and one at a time: its memory is not that of the
// operation, which may be over and used anew before the report is sent. False if the connection failed.
bool Engine::Report(Operation& op) {
  const Nanoseconds now = clock_.Now();
  if (now - reported_at_ < kReportEvery) return true;
  if (report_link_ != nullptr || !closed_.empty()) return true;
  if (op.link->hello().read_only != 0) return true;  // others tell
  const uint32_t slot = op.link->TakeSlot(Link::kReportOwner);
  if (slot == Link::kNoSlot) return true;
  reported_at_ = now;
  report_link_ = op.link;
  format::Request request{};
  request.op = static_cast<uint8_t>(format::RequestOp::kReport);
  request.key_size = op.key_size;
  request.id = 0;
  const auto message = std::span(op_memory_).last(kReportBytesMax);
  std::memcpy(message.data(), &request, sizeof(request));
  std::memcpy(message.data() + sizeof(request), op.key.data(), op.key_size);
  ++stats_.requests;
  return SendOwn(*op.link, slot, message.first(sizeof(request) + op.key_size));
}

}  // namespace erda::client
