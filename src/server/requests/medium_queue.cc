#include "server/requests/medium_queue.h"

namespace erda::server {

void MediumQueue::Park(const Asked& asked, const AwaitsMedium& awaits) {
  const Waiting waiting{QueuedRequest(asked), awaits};
  const auto later = asked.turn == 0 ? requests_.end() : std::ranges::find_if(requests_, [&](const Waiting& each) {
    return each.awaits.key_hash == awaits.key_hash && waiting.request.IsBefore(each.request);
  });
  if (later == requests_.end()) return Append(waiting);
  // It waited for room before. Those after it wait for the same version, or for a later one.
  requests_.insert(later, waiting);
  ++asked.session.awaiting_writer;
  ++keys_[awaits.key_hash].count;
}

void MediumQueue::Append(const Waiting& waiting) {
  requests_.push_back(waiting);
  ++waiting.request.session->awaiting_writer;
  OfKey& key = keys_[waiting.awaits.key_hash];
  ++key.count;
  key.present = waiting.awaits.present;
}

std::vector<MediumQueue::Waiting> MediumQueue::TakeAll() {
  for (const Waiting& each : requests_) --each.request.session->awaiting_writer;
  keys_.clear();
  return std::exchange(requests_, {});
}

std::optional<Present> MediumQueue::StillAwaited(const Waiting& each, const std::vector<TakenSlot>& taken) const {
  if (versions_.judging().IsUndecided(each.awaits.present)) return each.awaits.present;
  if (auto ahead = AheadOf(each.awaits.key_hash)) return ahead;
  if (!each.awaits.for_slot) return std::nullopt;
  const auto slot = std::ranges::find(taken, each.awaits.present.version, &TakenSlot::before);
  return slot == taken.end() ? std::nullopt : std::optional(slot->now);
}

void MediumQueue::Forget(const Session& session) {
  std::erase_if(requests_, [&](const Waiting& each) {
    if (each.request.session != &session) return false;
    const auto key = keys_.find(each.awaits.key_hash);
    if (--key->second.count == 0) keys_.erase(key);
    return true;
  });
}

bool MediumQueue::Has(const Session& session, uint32_t slot) const {
  return std::ranges::any_of(requests_, [&](const Waiting& each) { return each.request.IsOf(session, slot); });
}

}  // namespace erda::server
