// The numbers of a shard's versions. They do not repeat, not even after a crash. The shard's record holds a limit: all
// numbers are below it, and the next server begins there. A higher limit is persistent before the first number that
// needs it. On a pool with a journal the medium holds it later, so the limit is one stride further ahead.
//
// Owns the next number, and the word version_limit of the shard's record. The shard's thread calls it.
#pragma once

#include <cstdint>

#include "nvm/writer.h"

namespace erda::server {

class VersionNumbers {
 public:
  VersionNumbers(nvm::Writer& nvm, uint32_t shard);

  // Lets the numbers begin at this limit, which the shard's record has. Requires: the pool was taken up. On a pool with
  // a journal, the medium holds all that is flushed before the first Next.
  void Begin(uint64_t limit);
  [[nodiscard]] uint64_t Next() {
    if (next_ >= limit_) RaiseLimit();
    return next_++;
  }
  // Returns how many Next has given out.
  [[nodiscard]] uint64_t given() const { return next_ - first_; }

 private:
  [[gnu::noinline]] void RaiseLimit();
  void Record(uint64_t limit);

  nvm::Writer& nvm_;
  const uint64_t limit_at_;
  uint64_t first_ = 1;
  uint64_t next_ = 1;
  uint64_t limit_ = 0;  // The first number for which Next raises the limit of the record.
  uint64_t place_ = 0;  // The medium holds the record's limit if it holds the stream up to here.
};

}  // namespace erda::server
