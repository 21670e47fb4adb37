#include "server/control/expiry_clock.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <utility>

#include "base/planted.h"
#include "format/control_block.h"
#include "format/superblock.h"

namespace erda::server {

ExpiryClock::ExpiryClock(nvm::Writer& nvm, uint32_t shard, std::span<std::byte> control, const ServerTime& time,
                         uint64_t note_ahead)
    : nvm_(nvm),
      note_at_(format::ShardRecordOffset(shard) + offsetof(format::ShardRecord, time)),
      published_(reinterpret_cast<uint64_t*>(control.data() + offsetof(format::ControlBlock, time))),
      time_(time),
      note_ahead_(note_ahead) {}

void ExpiryClock::Begin() {
  noted_ = format::CheckedWord(nvm_.Load64(note_at_)).number();
  word_ = noted_;
  std::atomic_ref(*published_).store(word_, std::memory_order_release);  // pairs with the readers' Reads, as in Raise
}

uint64_t ExpiryClock::Raise() {
  uint64_t now = time_.Micros() / 1000;
  if (now <= word_) return word_;
  stands_ = now >= next_judged();
  if (stands_) [[unlikely]] {
    now = next_judged() - 1;
    if (now <= word_) return word_;
  }
  if (nvm_.holds_later()) {
    NoteEarly(now);
    now = std::min(now, noted_);
    if (now <= word_) return word_;
  } else if (now > noted_) {
    Note(now + note_ahead_);
    nvm_.Persist(note_at_, sizeof(uint64_t));  // before a reader can see a word up to the note
  }
  word_ = now;
  // Release: the word is stored before everything that the shard stores or answers because of it. Pairs with the
  // readers' Reads. A reader that finds the entry freed, or gets such an answer, and then Reads the word, finds this
  // value or a later one.
  if (!Planted(Flaw::kTimeNotStored)) std::atomic_ref(*published_).store(word_, std::memory_order_release);
  return word_;
}

void ExpiryClock::NoteEarly(uint64_t now) {
  const uint64_t noted = noted_;
  // Pairs with the thread that writes to the medium: after that, no restart begins before the note.
  if (next_note_ != 0 && nvm_.held() >= next_place_) noted_ = std::exchange(next_note_, 0);
  if (next_note_ != 0 || now + note_ahead_ / 2 < noted_) return;
  const uint64_t held = std::max(noted, noted_);
  Note(now + note_ahead_);
  nvm_.Persist(note_at_, sizeof(uint64_t));
  next_note_ = std::exchange(noted_, held);
  next_place_ = nvm_.place();
}

void ExpiryClock::StandBefore(uint64_t deadline) {
  judged_.insert(std::ranges::upper_bound(judged_, deadline), deadline);
}

void ExpiryClock::LetGo(uint64_t deadline) {
  judged_.erase(std::ranges::lower_bound(judged_, deadline));
  stands_ = stands_ && !judged_.empty();
}

void ExpiryClock::Close() { Note(Raise()); }

void ExpiryClock::Note(uint64_t millis) {
  noted_ = millis;
  if (!Planted(Flaw::kTimeNotNoted)) nvm_.Store64(note_at_, format::CheckedWord::Of(millis).raw());
}

}  // namespace erda::server
