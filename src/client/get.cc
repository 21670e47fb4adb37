#include "client/get.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/planted.h"
#include "client/expiry.h"
#include "client/link.h"

namespace erda::client {

using format::EntryWord;
using format::IndexEntry;
using format::LogAddress;
using format::ObjectState;
using format::ObjectView;

namespace {

// The client reads this number of bytes of a version whose size it does not know.
constexpr uint64_t kVersionBytesMin = 64;
constexpr uint64_t kSizeHintBytesMax = format::EntryMeta::kSizeHintMax * format::kGranuleBytes;
// The client reads one version again at most this often because it did not know the size: after the header, the key,
// and the value.
constexpr uint32_t kRereadsMax = 4;
// A get that has to report damage begins again at most this often, if it may have gone past newer versions. This takes
// longer than a put, unless the client of the put stalls.
constexpr uint32_t kBeginsAgainMax = 1000;

}  // namespace

// --- Beginning

GetOp* Gets::Take(std::string_view key) {
  if (!operations_.CanTake(key)) return nullptr;
  GetOp& op = operations_.Take(ops_);
  op.SetKey(key, HashKey(key, connections_.pool().hash_seed));
  return &op;
}

GetOp& Gets::TakeEntry(const FoundEntry& found, bool with_value) {
  const bool settled = found.entry.entry_word().settled();
  GetOp& op = operations_.Take(ops_);
  op.shard = found.shard;
  op.nameless = true;
  op.label_only = !with_value && settled;
  op.times_up = found.times_up;
  op.slot_changes = found.slot_changes;
  op.time_before = found.time_before;
  // A version that is settled in the block was published when the block was read, and so before this reading.
  op.time_behind = settled ? found.time_behind : kNoTime;
  op.block = found.block;
  op.entry = found.entry;
  op.entry_slot = found.slot;
  op.key_hash = found.entry.entry_meta().tag();  // The tag has the bits that choose the head.
  op.foreign_count = 0;
  return op;
}

void Gets::Start(GetOp& op) {
  if (op.nameless) return StartEntry(op);
  // A get that is gathered with others begins in the next Flush. Until then the processor fetches the known location of
  // its version into the cache.
  if (posting_.Gathers()) {
    locations_.Prefetch(op.key_hash);
    op.step = Step::kStarting;
    to_start_.push_back(op.index);
    posting_.SetPending();
  } else if (!StartLocated(op)) {
    StartSearch(op);
  }
}

void Gets::StartEntry(GetOp& op) {
  const bool same_server = op.times_up == op.link->times_up;
  same_server ? ReadNewest(op) : StartSearch(op);
}

void Gets::StartTogether() {
  const bool gathers = posting_.SetGathers(true);
  for (const OpIndex index : to_start_) {
    GetOp& op = ops_[index];
    // (A get at another step has ended with its connection.)
    if (op.step == Step::kStarting && !StartLocated(op)) StartSearch(op);
  }
  to_start_.clear();
  posting_.SetGathers(gathers);
}

void Gets::OnRead(GetOp& op) {
  // (Nearly all gets take these two steps. A jump table for all steps costs more.)
  if (op.step == Step::kObject) return OnVersionRead(op);
  if (op.step == Step::kEntry) return OnEntryRead(op);
  switch (op.step) {
    case Step::kLocated:
      return OnLocatedRead(op);
    case Step::kMissConfirm:
      return OnMissConfirm(op);
    case Step::kSecondLook:
      return OnSecondLook(op);
    case Step::kTime:
      // The client posted this Read after the version had arrived, so the version was published before.
      op.time_behind = op.time_read();
      return EndWith(op, op.found);
    default:
      return;
  }
}

void Gets::OnHeads(GetOp& op) {
  if (Search::WaitsForBlock(op)) return StartSearch(op);
  // Without a slot there was no version to read, and no look at the entry after it.
  Decide(op, op.Inspect(), op.read_bytes == 0 ? EntryLook::kNotYet : EntryLook::kUnchanged);
}

// --- At a known location

bool Gets::StartLocated(GetOp& op) {
  const auto located = locations_.Find(*op.link, op.key_hash);
  if (!located) return false;
  uint64_t offset = 0;
  uint64_t in_segment = 0;
  op.at = located->at;
  op.slot_read = located->slot;
  op.read_bytes = located->bytes;
  op.time_before = op.link->known.time();
  op.time_behind = kNoTime;
  op.reads_time = located->expires;
  const bool can_be = op.link->known.Resolve(op.slot_read, op.at, &offset, &in_segment) && op.read_bytes <= in_segment;
  if (!can_be || !operations_.memory().Provide(op, op.read_bytes).ok()) return false;
  const fabric::RemoteAddress version{format::kPoolRegion, offset};
  if (!op.reads_time) {
    posting_.PostRead(op, Step::kLocated, op.message().first(op.read_bytes), version);
    return true;
  }
  // The two Reads may come in any order. The version was published before the get began, since the client knew of it.
  op.step = Step::kLocated;
  const fabric::WorkRequest works[] = {posting_.ReadWork(op, op.message().first(op.read_bytes), version, false),
                                       posting_.ReadWork(op, op.time_copy(), kTimeWord, true)};
  posting_.Post(*op.link, works);
  return true;
}

void Gets::OnLocatedRead(GetOp& op) {
  const Located located{op.head(), op.slot_read, op.at, op.read_bytes, op.reads_time};
  const ObjectView view = InspectLocated(*op.link, located, op.message().first(op.read_bytes));
  if (!IsNewest(view, op.key_view())) {
    ++stats_.cache_misled;
    locations_.Refute(op.key_hash);
    return StartSearch(op);
  }
  ++stats_.cache_hits;
  locations_.Confirm(op.key_hash);
  if (op.reads_time) op.time_behind = op.time_read();
  EndWith(op, view);
}

// --- The version

// Looks for the entry from the start. For an entry that a scan found, ends: the scan looks again itself.
void Gets::StartSearch(GetOp& op) {
  if (op.nameless) return ending_.FailWith(op, Code::kConflict);
  op.time_behind = kNoTime;
  search_.Begin(op);
}

void Gets::OnEntryRead(GetOp& op) { GoOn(op, search_.OnEntryRead(op)); }
void Gets::OnMissConfirm(GetOp& op) { GoOn(op, search_.OnMissConfirm(op)); }

void Gets::GoOn(GetOp& op, SearchStep step) {
  switch (step) {
    case SearchStep::kWaits:
      return;
    case SearchStep::kFound:
      return ReadNewest(op);
    case SearchStep::kAbsent:
      return ending_.FailWith(op, Code::kNotFound);
  }
}

// Reads the version that the entry names as new. The largest hint says only that the version is large, and the header
// has the size.
void Gets::ReadNewest(GetOp& op) {
  op.at = op.entry.entry_word().new_address();
  op.newer_version = 0;
  op.skips = false;
  op.rereads = 0;
  const uint64_t hint = op.entry.entry_meta().size_hint_bytes();
  if (op.label_only) return ReadVersion(op, std::min(hint, kLabelBytesRead));
  ReadVersion(op, hint == kSizeHintBytesMax ? 0 : hint);
}

void Gets::ReadVersion(GetOp& op, uint64_t bytes) {
  uint64_t offset = 0;
  uint64_t in_segment = 0;
  op.read_bytes = bytes;
  // (I10) An address counts in the use of its region in which the entry named it. If slots have changed since, it may
  // be another use, so the client reads the entry once more.
  if (op.slot_changes != op.link->known.slot_changes()) return StartSearch(op);
  op.next_control_read = op.link->control().NextRead();
  op.slot_read = op.link->known.SlotOf(op.head(), op.at);
  if (!op.link->known.Resolve(op.slot_read, op.at, &offset, &in_segment)) {
    op.read_bytes = 0;
    return connections_.WaitForHeads(op);
  }
  op.read_bytes = std::min(std::max(bytes, kVersionBytesMin), in_segment);
  if (auto status = operations_.memory().Provide(op, op.read_bytes); !status.ok())
    return ending_.Fail(op, std::move(status));
  const fabric::RemoteAddress version{format::kPoolRegion, offset};
  if (op.IsComparedWithOld()) {
    const LogAddress old_address = op.entry.entry_word().old_address();
    op.old_slot = op.link->known.SlotOf(op.head(), old_address);
    const bool can_be = op.link->known.Resolve(op.old_slot, old_address, &offset, &in_segment);
    if (!can_be || in_segment < kOldHeaderBytes) return SkipToOld(op);
    op.step = Step::kObject;
    const fabric::RemoteAddress old_version{format::kPoolRegion, offset};
    const fabric::WorkRequest works[] = {posting_.ReadWork(op, op.message().first(op.read_bytes), version, false),
                                         posting_.ReadWork(op, op.old_header(), old_version, true)};
    posting_.Post(*op.link, works);
    return;
  }
  if (op.newer_version != 0 || op.link->geometry().heads_per_shard == 1) {
    return posting_.PostRead(op, Step::kObject, op.message().first(op.read_bytes), version);
  }
  // The entry is two words. The client may have read it while its slot passed from one key to another. Then it looks
  // for the address in the wrong head, and an old version of the key may stand just there. So the client reads the
  // entry once more. This Read comes after the first one, which has arrived. It may come before the Read of the
  // version.
  op.step = Step::kObject;
  const fabric::WorkRequest works[] = {posting_.ReadWork(op, op.message().first(op.read_bytes), version, false),
                                       posting_.ReadWork(op, op.entry_copy(), op.entry_address(), true)};
  posting_.Post(*op.link, works);
}

void Gets::OnVersionRead(GetOp& op) {
  op.next_control_read = op.link->control().NextRead();
  if (op.newer_version == 0 && op.read_bytes != 0 && op.link->geometry().heads_per_shard > 1) {
    const auto now = LoadAs<IndexEntry>(op.entry_copy());
    if (now.word != op.entry.word || now.entry_meta().tag() != op.entry.entry_meta().tag()) {
      // A get of the key decides. Without a key the scan looks for the entry again.
      if (op.nameless) (void)op.TakeKey(op.Inspect());
      return StartSearch(op);
    }
  }
  const ObjectView view = op.Inspect();
  if (view.bytes_wanted > op.read_bytes && op.rereads < kRereadsMax) {
    uint64_t offset = 0;
    uint64_t in_segment = 0;
    const bool fits =
        op.link->known.Resolve(op.slot_read, op.at, &offset, &in_segment) && view.bytes_wanted <= in_segment;
    ++op.rereads;
    if (fits) return ReadVersion(op, view.bytes_wanted);
  }
  if (op.nameless) return LearnKey(op, view);
  const bool compared = op.read_bytes != 0 && op.IsComparedWithOld();
  if (compared && view.state != ObjectState::kNothing && view.header.version <= op.OldVersion()) {
    return GoTo(op, op.entry.entry_word().old_address());
  }
  const bool first = op.newer_version == 0;
  const bool of_tag = view.state != ObjectState::kNothing &&
                      format::EntryMeta::TagOf(view.header.key_hash) == op.entry.entry_meta().tag();
  // (The entry may be another key's, with the same tag.)
  if (first && of_tag && view.key != op.key_view()) return GoOn(op, search_.GoOn(op));
  Decide(op, view, EntryLook::kNotYet);
}

// A version has told the key. If it is the one that the entry names as new, a get of the key would look at it now, too.
// If it is another one, the get begins from the start.
void Gets::LearnKey(GetOp& op, const ObjectView& view) {
  const bool label_only = op.label_only;
  if (!op.TakeKey(view)) return DecideNameless(op, EntryLook::kNotYet);
  if (op.at != op.entry.entry_word().new_address()) return StartSearch(op);
  if (!label_only) return Decide(op, view, EntryLook::kNotYet);
  // The version is settled, so it was whole.
  view.header.is_value() ? EndWith(op, view) : ending_.FailWith(op, Code::kNotFound);
}

// --- What the version says

void Gets::Decide(GetOp& op, ObjectView view, EntryLook look) {
  if (op.nameless) return DecideNameless(op, look);
  // An object counts only if it is a version of the key. Otherwise the entry is damaged, or it has changed since the
  // client read it. Its slot may be another key's now, or the tombstone of its delete may have made way for the next
  // one. After the newest version only an older one counts, since another object may have its place now.
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
  facts.tombstone = !view.header.is_value();
  facts.flushed_by_read = view.header.flushed_by_read();
  facts.flush = op.link->flush_method();
  facts.look = look;
  switch (DecideRead(facts)) {
    case ReadStep::kReturn:
      return Return(op, view);
    case ReadStep::kOlderAndReport:
      if (view.state == ObjectState::kNothing && !SlotHolds(op)) return;
      if (!own_requests_.Report(*op.link, op.key_view())) return;
      return GoOlder(op, view);
    case ReadStep::kOlder:
      return GoOlder(op, view);
    case ReadStep::kLookAgain:
      return LookAgain(op);
    case ReadStep::kRestart:
      return StartSearch(op);
    case ReadStep::kDamaged:
      if (!SlotHolds(op)) return;
      // A version that it skipped may be acknowledged. The entry names that, or a newer one, when the newest is
      // settled.
      if (op.skips && ++op.begun_again <= kBeginsAgainMax) return StartSearch(op);
      return ending_.Fail(op, {Code::kCorruption, connections_.address() + ": the stored value of a key is damaged"});
  }
}

void Gets::Return(GetOp& op, const ObjectView& view) {
  if (op.newer_version != 0) ++stats_.older_versions;
  if (!view.header.is_value()) return ending_.FailWith(op, Code::kNotFound);
  const EntryWord word = op.entry.entry_word();
  if (view.header.left() && op.in_order) {
    locations_.Erase(op.key_hash);  // Its entry has left it before, by its flag: a get would look there in vain.
  } else if (op.at == word.new_address() && word.settled() && op.in_order) {
    const uint64_t bytes = format::ObjectBytes(view.header.label_size(), view.value.size());
    locations_.Store(*op.link, op.key_hash, {op.at, op.slot_read.generation(), bytes, view.deadline != 0});
  }
  EndWith(op, view);
}

// No version has told the key. If the entry has not changed, then the key has no value yet, or the stored key is
// damaged.
void Gets::DecideNameless(GetOp& op, EntryLook look) {
  const EntryWord word = op.entry.entry_word();
  const LogAddress old_address = word.old_address();
  switch (look) {
    case EntryLook::kNotYet:
      if (Planted(Flaw::kScanSkipsUnverified)) return ending_.FailWith(op, Code::kNotFound);
      // (I1) Beside a settled version the old address means nothing: its place may be another key's now.
      if (!word.settled() && !old_address.none() && op.at != old_address) return GoTo(op, old_address);
      return LookAgain(op);
    case EntryLook::kChanged:
      return StartSearch(op);
    case EntryLook::kUnchanged:
      break;
  }
  if (!SlotHolds(op)) return;
  // (The slot of the other version may have changed.)
  if (op.slot_changes != op.link->known.slot_changes()) return StartSearch(op);
  if (!word.settled() && old_address.none()) return ending_.FailWith(op, Code::kNotFound);
  ending_.Fail(op, {Code::kCorruption, connections_.address() + ": a stored key is damaged"});
}

// Returns true if the version's head slot still names the same use of the same region. Otherwise starts the operation's
// next step, and returns false.
//
// (I10) A version that does not verify is damaged only if its head slot has held. So it must have been the same before
// the Read of the entry and after the Read of the version. Otherwise the client may have looked at another use of the
// region. Or zeroes may have torn the version, and the entry may have come back to the address meanwhile. A reading of
// the slots counts as later than that Read if the client posted it after the Read had arrived.
bool Gets::SlotHolds(GetOp& op) {
  const bool holds = op.link->known.SlotOf(op.head(), op.at) == op.slot_read;
  const bool known = op.link->control().reads() >= op.next_control_read || Planted(Flaw::kSlotNotConfirmed);
  if (holds && known) return true;
  holds ? connections_.WaitForHeads(op) : StartSearch(op);
  return false;
}

void Gets::LookAgain(GetOp& op) {
  ++stats_.second_looks;
  posting_.PostRead(op, Step::kSecondLook, op.entry_copy(), op.entry_address());
}

void Gets::OnSecondLook(GetOp& op) {
  const auto entry = LoadAs<IndexEntry>(op.entry_copy());
  // Word and meta are two words. One Read may see the word of a key beside the meta of the key that had the slot
  // before. Then the client looks for the version in the wrong head. The size hint may differ.
  const bool same = entry.word == op.entry.word && entry.entry_meta().tag() == op.entry.entry_meta().tag();
  Decide(op, op.Inspect(), same ? EntryLook::kUnchanged : EntryLook::kChanged);
}

// Goes to the next older version, along `previous`. The chain ends at the entry's old address. If the client cannot
// follow the chain, it goes to the old address at once.
void Gets::GoOlder(GetOp& op, const ObjectView& view) {
  const LogAddress old_address = op.entry.entry_word().old_address();
  if (op.at == old_address) return ending_.FailWith(op, Code::kNotFound);
  const bool known = view.state != ObjectState::kNothing;
  // This version may be the original of an old version that does not verify any more. Then each older version is too
  // old.
  if (known && op.IsComparedWithOld() && op.OldVersion() == 0) return SkipToOld(op);
  const LogAddress previous = known ? LogAddress(view.header.previous) : format::kNoAddress;
  op.newer_version = known ? view.header.version : (op.newer_version == 0 ? UINT64_MAX : op.newer_version);
  if (previous.none() || Planted(Flaw::kSkipsChain)) return SkipToOld(op);
  GoTo(op, previous);
}

void Gets::SkipToOld(GetOp& op) {
  const LogAddress old_address = op.entry.entry_word().old_address();
  if (old_address.none()) return ending_.FailWith(op, Code::kNotFound);
  op.skips = true;
  GoTo(op, old_address);
}

void Gets::GoTo(GetOp& op, LogAddress address) {
  op.at = address;
  op.rereads = 0;
  ReadVersion(op, op.entry.entry_meta().size_hint_bytes());
}

}  // namespace erda::client
