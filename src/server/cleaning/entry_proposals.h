// Applies the cleaner's proposals about single entries. Owns nothing. The shard's thread calls it.
//   (C3) The cleaner may miss that an entry changes. So the shard checks each proposal against the entry as it is now.
#pragma once

#include <functional>
#include <string_view>

#include "server/cleaner/clean_queues.h"
#include "server/control/counters.h"
#include "server/versions/versions.h"

namespace erda::server {

class EntryProposals {
 public:
  // Called with each key whose value is damaged; with an empty one if nobody can know the key any more.
  using TellDamage = std::function<void(std::string_view key)>;

  EntryProposals(Versions& versions, Counters counters) : versions_(versions), counters_(counters) {}

  void Apply(const VersionCopied& copied);
  void Apply(const ForgeryFound& forgery);
  void Apply(const VersionExpired& expired);
  void Apply(const DamageFound& damage, const TellDamage& tell);
  // Counts a damaged value, and calls `tell` with its key.
  void Tell(std::string_view key, const TellDamage& tell);

 private:
  Versions& versions_;
  Counters counters_;
};

}  // namespace erda::server
