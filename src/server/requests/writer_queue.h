// Requests that are undecided: the shard cannot judge them before another client's unfinished version of the key is
// whole, is superseded, or is taken back. On a pool with a journal, a version that is whole then has to be held, too.
//
// Owns these requests in their order, how long each has waited, and their part of each session's count
// (Session::awaiting_writer). Requires: a client sends nothing else in the slot of a waiting request. The shard forgets
// a session before that session ends. The shard's thread calls it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "server/sessions/session.h"
#include "server/versions/versions.h"

namespace erda::server {

class WriterQueue {
 public:
  explicit WriterQueue(const Versions& versions) : versions_(versions) {}

  void Park(const Asked& asked, const Present& present) { Add({.request = ParkedRequest(asked), .present = present}); }
  // Goes through up to `limit` requests, in turn. Serves those that need not wait any more, and those for which a look
  // at the value is due. `looks` makes a look due for all. serve(const Asked&) serves a request again, and returns the
  // version that the request awaits now, if any. Returns how many requests left the queue.
  //
  // A value may arrive without a message. A look at it computes the checksum of all its bytes. So looks get rarer with
  // each Wake, and one look serves all requests that wait for the same version.
  template <class Serve>
  size_t Wake(size_t limit, bool looks, Serve&& serve) {
    const size_t before = requests_.size();
    std::vector<uint64_t> in_vain;  // versions whose value was not there at this Wake's look
    for (size_t left = std::min(limit, before); left > 0; --left) {
      Awaiting each = Take();
      const bool due = CountWake(each, looks);
      const bool look = due && std::ranges::find(in_vain, each.present.version) == in_vain.end();
      if (!look && versions_.judging().IsUndecided(each.present)) {
        Add(each);
        continue;
      }
      if (each.request.session->doomed) continue;
      const std::optional<Present> awaited = serve(each.request.asked());
      if (!awaited) continue;
      if (awaited->version == each.present.version) {
        Add(each);  // keeps the time that it has waited
        in_vain.push_back(awaited->version);
      } else {
        Park(each.request.asked(), *awaited);
      }
    }
    return before - requests_.size();
  }
  // Adds the time to the wait of the requests. Calls end(SessionId) for each writer that others have awaited for too
  // long, if a Wake has looked at its value in vain since then.
  template <class End>
  void PassTime(Nanoseconds since, End&& end) {
    for (Awaiting& each : requests_) {
      if (IsWriterLate(each, since)) end(each.present.writer);
    }
  }
  void Forget(const Session& session);
  [[nodiscard]] bool Has(const Session& session, uint32_t slot) const;
  [[nodiscard]] bool empty() const { return requests_.empty(); }
  [[nodiscard]] size_t size() const { return requests_.size(); }

 private:
  struct Awaiting {
    static constexpr uint64_t kFirstLook = 64;

    ParkedRequest request;
    Present present;
    bool told = false;  // PassTime was called. Its first interval may have begun before the request.
    Nanoseconds waited{0};
    bool overdue = false;  // It has waited for too long.
    bool looked = false;   // A Wake has looked since then, in vain.
    uint64_t wakes = 0;
    uint64_t next_look = kFirstLook;  // The Wake that looks at the value.
  };

  void Add(const Awaiting& awaiting);
  Awaiting Take();
  // Returns true if the value is due to be looked at.
  static bool CountWake(Awaiting& each, bool looks);
  // Adds the time to the wait of the request. Returns true if its writer is late.
  [[nodiscard]] bool IsWriterLate(Awaiting& each, Nanoseconds since) const;

  const Versions& versions_;
  std::deque<Awaiting> requests_;
};

}  // namespace erda::server
