// Mends index entries of a shard that nobody asks for: undoes flipped bits, and settles versions that are whole and
// that nobody writes any more.
//
// Owns: nothing. Requires: no put waits to be published (AllPublished). The shard's thread calls it.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "index/index.h"
#include "log/shard_log.h"
#include "server/all_published.h"
#include "server/settling.h"
#include "server/taking_back.h"

namespace erda::server {

class Mending {
 public:
  Mending(index::Index& index, log::ShardLog& log, Settling& settling, TakingBack& taking_back)
      : index_(index), log_(log), settling_(settling), taking_back_(taking_back) {}

  // Mends the entries in these slots, as far as they are counted. Returns true if it has changed anything.
  bool Mend(AllPublished, index::Slot first, uint64_t slots);
  // Calls tell with the key of each entry that has changed by more than one bit, of those that anybody met since the
  // last call; with an empty key if the entry leads to none.
  void TellKept(const std::function<void(std::string_view key)>& tell);

 private:
  // Returns true if the entry's version is settled now, and was not before.
  bool Settle(index::Slot slot);

  index::Index& index_;
  log::ShardLog& log_;
  Settling& settling_;
  TakingBack& taking_back_;
};

}  // namespace erda::server
