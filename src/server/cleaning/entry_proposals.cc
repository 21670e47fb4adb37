#include "server/cleaning/entry_proposals.h"

namespace erda::server {

using format::Counter;

void EntryProposals::Apply(const VersionCopied& copied) {
  if (versions_.moving().Move(versions_.PublishPuts(), copied.key_hash, copied.from, copied.to)) {
    counters_.Add(Counter::kCleanMoves);
  }
}

void EntryProposals::Apply(const ForgeryFound& forgery) {
  versions_.moving().SetAside(versions_.PublishPuts(), forgery.key_hash, forgery.head, forgery.from);
}

void EntryProposals::Apply(const VersionExpired& expired) {
  versions_.removing().Expire(versions_.PublishPuts(), expired.key_hash, expired.head, expired.from);
}

void EntryProposals::Apply(const DamageFound& damage, const TellDamage& tell) {
  const auto key = versions_.moving().DamagedKey(damage.index_slot, damage.head, damage.from);
  if (key) Tell(*key, tell);
}

void EntryProposals::Tell(std::string_view key, const TellDamage& tell) {
  counters_.Add(Counter::kDamagedKeys);
  if (tell) tell(key);
}

}  // namespace erda::server
