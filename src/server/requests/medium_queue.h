// Requests that wait until the medium holds a version of their key, or the tombstone in the place that a delete needs.
// Only a pool with a journal has such requests (docs/journal.md, "Requests that wait").
//
// Owns these requests in their order, and their part of each session's count (Session::awaiting_writer). Those of one
// key go on in their order: the caller parks a request that comes after a waiting one of its key (AheadOf). So puts of
// a key do not keep its deletes and conditions waiting. A session's requests of one key are in the order of their
// turns. Requires: each awaited version waits in the HoldQueue. A client sends nothing else in the slot of a waiting
// request. The shard forgets a session before that session ends. The shard's thread calls it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/requests/served.h"
#include "server/sessions/session.h"
#include "server/versions/versions.h"

namespace erda::server {

class MediumQueue {
 public:
  explicit MediumQueue(const Versions& versions) : versions_(versions) {}

  void Park(const Asked& asked, const AwaitsMedium& awaits);
  // Returns the version that a request of the key has to wait for, since it comes after a waiting one.
  [[nodiscard]] std::optional<Present> AheadOf(uint64_t key_hash) const {
    const auto key = keys_.find(key_hash);
    return key == keys_.end() ? std::nullopt : std::optional(key->second.present);
  }
  // For each request that can go on, in their order: calls serve(const Asked&). It serves the request again, and
  // returns what the request awaits now, if the medium does not hold that. Returns how many requests left the queue.
  // `all`: no request has to wait any more.
  template <class Serve>
  size_t Wake(bool all, Serve&& serve) {
    const std::vector<Waiting> woken = TakeAll();
    std::vector<TakenSlot> taken;
    for (const Waiting& each : woken) {
      if (each.request.session->doomed) continue;
      const Asked asked = each.request.asked();
      if (const auto present = all ? std::nullopt : StillAwaited(each, taken)) {
        Append({each.request, {*present, each.awaits.key_hash, each.awaits.for_slot}});
      } else if (const std::optional<AwaitsMedium> awaits = serve(asked)) {
        if (each.awaits.for_slot && awaits->for_slot) taken.push_back({each.awaits.present.version, awaits->present});
        Append({each.request, *awaits});
      }
    }
    return woken.size() - requests_.size();
  }
  void Forget(const Session& session);
  [[nodiscard]] bool Has(const Session& session, uint32_t slot) const;
  [[nodiscard]] bool empty() const { return requests_.empty(); }

 private:
  struct Waiting {
    QueuedRequest request;
    AwaitsMedium awaits;
  };
  // The waiting requests of one key.
  struct OfKey {
    size_t count = 0;
    Present present;  // The last of them waits for it.
  };
  // Another delete has got the slot for whose tombstone deletes waited.
  struct TakenSlot {
    uint64_t before = 0;  // The version of that tombstone.
    Present now;
  };

  void Append(const Waiting& waiting);
  // Takes all requests out, in their order.
  std::vector<Waiting> TakeAll();
  // Returns the version that the request has to wait for. Returns nullopt if the shard has to serve it to know that.
  // Requires: the requests before it are parked again, or do not wait any more.
  [[nodiscard]] std::optional<Present> StillAwaited(const Waiting& each, const std::vector<TakenSlot>& taken) const;

  const Versions& versions_;
  std::vector<Waiting> requests_;
  std::unordered_map<uint64_t, OfKey> keys_;  // by hash
};

}  // namespace erda::server
