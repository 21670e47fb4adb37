// The clock by which the values of one shard expire: the word `time` of its control block (docs/protocol.md, "Expiry").
// The shard and every reader judge by this word: a version has expired when the word has reached its deadline.
//
// The word never falls, not even when the server dies and its machine's wall clock was set back. So the pool keeps a
// note, the `time` of the shard's record, and the word never passes the note. Before the word would pass it, the shard
// raises the note and makes it persistent. On a pool with a journal the medium gets the note later, so the shard raises
// it early. If the medium does not hold it in time, the word stands still.
//
// A put by condition, or an increment, may have been judged by a version with a deadline. Until it is settled, readers
// go past it to that version. If the version expired meanwhile, they would find the key absent before a put that needed
// it there. So the word stands before that deadline until the put is settled. A put that comes when the server's time
// has reached its own deadline waits until the word goes on. Otherwise many puts could keep the word for ever.
//
// One thread, the shard's, calls it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/server_time.h"
#include "nvm/writer.h"

namespace erda::server {

class ExpiryClock {
 public:
  // How far the note goes ahead, in milliseconds. A server that starts after a crash begins at the note, so values may
  // expire earlier by up to this time. A smaller step would cost a store and a fence more often.
  static constexpr uint64_t kNoteAhead = 1000;

  ExpiryClock(nvm::Writer& nvm, uint32_t shard, std::span<std::byte> control, const ServerTime& time,
              uint64_t note_ahead = kNoteAhead);

  // Sets the word to the note, which no word of an earlier server has passed. Requires: no client reads the word yet.
  void Begin();
  // Raises the word to the server's time, and returns it, in milliseconds.
  uint64_t Raise();
  // Returns true if the deadline of a version has passed. deadline: 0 if the version has no deadline. A reader that
  // hears of an effect of the expiry then finds the word at the deadline, or later.
  [[nodiscard]] bool HasPassed(uint64_t deadline) { return deadline != 0 && Raise() >= deadline; }
  // A put was judged by a version with this deadline: the word does not reach it before LetGo is called with the same
  // deadline. Requires: the word has not reached it.
  void StandBefore(uint64_t deadline);
  void LetGo(uint64_t deadline);
  // Returns true if the word could not follow the server's time at the last Raise, because it stands before a deadline.
  [[nodiscard]] bool stands() const { return stands_; }
  // Returns true if the deadline has not passed only because the word stands before an earlier one, or before the same
  // one. Requires: HasPassed has just returned false for it.
  [[nodiscard]] bool IsOverdue(uint64_t deadline) const {
    return stands_ && next_judged() <= deadline && time_.Passed(deadline);
  }
  // Returns the deadline before which the word stands, or would stand.
  [[nodiscard]] uint64_t next_judged() const { return judged_.empty() ? UINT64_MAX : judged_.front(); }
  // Sets the note to the word, which nobody raises any more. The caller makes the note persistent.
  void Close();

 private:
  void Note(uint64_t millis);
  // On a pool with a journal: raises the note if `now` comes near to it.
  [[gnu::noinline]] void NoteEarly(uint64_t now);

  nvm::Writer& nvm_;
  const uint64_t note_at_;
  uint64_t* const published_;
  const ServerTime& time_;
  const uint64_t note_ahead_;
  uint64_t word_ = 0;
  uint64_t noted_ = 0;
  uint64_t next_note_ = 0;        // A note that the medium does not hold yet; or 0.
  uint64_t next_place_ = 0;       // It holds the note when it holds the stream up to here.
  std::vector<uint64_t> judged_;  // The deadlines of StandBefore, in order.
  bool stands_ = false;
};

}  // namespace erda::server
