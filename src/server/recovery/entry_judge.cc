#include "server/recovery/entry_judge.h"

#include "format/log_layout.h"

namespace erda::server {

using format::EntryWord;
using format::IndexEntry;
using format::LogAddress;
using format::ObjectState;
using format::ObjectView;

JudgedEntry EntryJudge::Judge(const IndexEntry& entry) const {
  JudgedEntry judged = JudgeVersions(entry);
  if (judged.has_key() && Fits(entry, judged.version)) judged.key_hash = judged.version.header.key_hash;
  return judged;
}

JudgedEntry EntryJudge::JudgeVersions(const IndexEntry& entry) const {
  const EntryWord word = entry.entry_word();
  const uint32_t tag = entry.entry_meta().tag();
  JudgedEntry judged;
  judged.word = word.Settled();
  if (geometry_.ShardOf(tag) != shard_) return judged;
  const uint32_t head = geometry_.HeadOf(tag);
  const ObjectView newest = regions_.Inspect(head, word.new_address());
  const bool fits = newest.state != ObjectState::kNothing && Fits(entry, newest);
  const bool in_its_slot = geometry_.OffsetInRegion(word.new_address()) == format::kTombstoneSlotOffset;
  const ObjectView old = word.settled() ? ObjectView() : regions_.Inspect(head, word.old_address());
  const bool old_is_whole = old.state == ObjectState::kWhole && old.header.is_value() && Fits(entry, old);
  if (!fits) {
    if (old_is_whole) {  // the old version tells the key
      judged.version = old;
      judged.version.header.version = 0;  // the number of the newest version is unknown
    }
    return judged;
  }
  judged.version = newest;
  if (!newest.header.is_value()) {
    const bool deleted = !word.settled() && newest.state == ObjectState::kWhole && in_its_slot;
    if (deleted) judged.verdict = JudgedEntry::Verdict::kGone;
    return judged;
  }
  if (in_its_slot) return judged;
  if (newest.state == ObjectState::kWhole) {
    judged.verdict = JudgedEntry::Verdict::kSound;
    return judged;
  }
  return word.settled() ? judged : GoBack(head, word, newest, old, old_is_whole);
}

// The newest version may never have been whole.
JudgedEntry EntryJudge::GoBack(uint32_t head, EntryWord word, const ObjectView& newest, const ObjectView& old,
                               bool old_is_whole) const {
  ObjectView older = newest;
  for (LogAddress at(newest.header.previous); !at.none() && at != word.old_address();) {
    const ObjectView view = regions_.Inspect(head, at);
    const bool is_older =
        view.state != ObjectState::kNothing && view.key == newest.key && view.header.version < older.header.version;
    if (!is_older || (old_is_whole && view.header.version <= old.header.version)) break;
    if (view.state == ObjectState::kWhole)
      return {JudgedEntry::Verdict::kSound, word.TakenBackTo(at, true), view, true, {}};
    older = view;
    at = LogAddress(view.header.previous);
  }
  if (old_is_whole && old.key == newest.key)
    return {JudgedEntry::Verdict::kSound, word.TakenBackToOld(), old, true, {}};
  const JudgedEntry::Verdict verdict =
      word.old_address().none() ? JudgedEntry::Verdict::kGone : JudgedEntry::Verdict::kDamaged;
  return {verdict, word.Settled(), newest, false, {}};
}

bool EntryJudge::Fits(const IndexEntry& entry, const ObjectView& view) const {
  return !view.header.is_chunk() && format::EntryMeta::TagOf(view.header.key_hash) == entry.entry_meta().tag() &&
         geometry_.ShardOf(view.header.key_hash) == shard_;
}

}  // namespace erda::server
