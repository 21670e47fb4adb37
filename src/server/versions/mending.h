// Mends index entries that no request has looked at: undoes flipped bits, and settles whole versions that nobody writes
// any more.
//
// Owns nothing. Requires: no put waits to be published (AllPublished). The shard's
// thread calls it.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "index/index.h"
#include "log/shard_log.h"
#include "server/versions/all_published.h"
#include "server/versions/settling.h"
#include "server/versions/taking_back.h"

namespace erda::server {

class Mending {
 public:
  Mending(index::Index& index, log::ShardLog& log, Settling& settling, TakingBack& taking_back)
      : index_(index), log_(log), settling_(settling), taking_back_(taking_back) {}

  // Mends those entries in these slots that are counted. Returns true if it has changed anything.
  bool Mend(AllPublished, index::Slot first, uint64_t slots);
  // Undoes a bit that flipped while no server ran. Does nothing before all slots are counted, and nothing a second
  // time.
  void EndRest(AllPublished) {
    if (index_.mender().may_end_rest()) index_.mender().EndRest();
  }
  // Calls tell(key) for each entry that was met since the last call and has more than one flipped bit. The key is empty
  // if the entry leads to no key. Calls tell once with an empty key for an index that has changed while no server ran.
  void TellNews(const std::function<void(std::string_view key)>& tell);

 private:
  // Returns true if the entry's version was not settled, and is settled now or when the medium holds it.
  bool Settle(index::Slot slot);

  index::Index& index_;
  log::ShardLog& log_;
  Settling& settling_;
  TakingBack& taking_back_;
};

}  // namespace erda::server
