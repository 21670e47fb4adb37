// The clock by which the values of one shard expire: the word `time` of its control block (docs/protocol.md, "Expiry").
// The shard judges by what the word says, and so does every reader: a version has expired when the word has reached its
// deadline.
//
// The word never falls, not even when the server dies and its machine's wall clock was set back. So the pool keeps a
// note, the `time` of the shard's record, that the word does not pass: before it would, the note goes ahead and is
// made persistent.
//
// One thread, the shard's, calls it.
#pragma once

#include <cstdint>
#include <span>

#include "base/server_time.h"
#include "nvm/writer.h"

namespace erda::server {

class ExpiryClock {
 public:
  // How far the note goes ahead, in milliseconds. A server that starts after a crash begins there, so values expire
  // earlier by up to as much. The price of a smaller step is a store and a fence more often.
  static constexpr uint64_t kNoteAhead = 1000;

  ExpiryClock(nvm::Writer& nvm, uint32_t shard, std::span<std::byte> control, const ServerTime& time,
              uint64_t note_ahead = kNoteAhead);

  // Before a client reads the word: it begins at the note, which no word of an earlier server has passed.
  void Begin();
  // Raises the word to the server's time, and returns it, in milliseconds.
  uint64_t Raise();
  // Of a version; 0: it has none. Readers that are told what follows from it find the word there, or later.
  [[nodiscard]] bool HasPassed(uint64_t deadline) { return deadline != 0 && Raise() >= deadline; }
  // The note says where the word ends. The caller makes it persistent. The word is raised no more.
  void Close();

 private:
  void Note(uint64_t millis);

  nvm::Writer& nvm_;
  const uint64_t note_at_;
  uint64_t* const published_;
  const ServerTime& time_;
  const uint64_t note_ahead_;
  uint64_t word_ = 0;
  uint64_t noted_ = 0;
};

}  // namespace erda::server
