// Serves the requests of clients: checks a private copy of each request, and executes it on the shard's versions.
//
// Owns nothing that lasts: a reply goes into the ReplyBatch, and a commit into the CommitBatch. Requires: no earlier
// request in the same request slot waits. The caller parks a request that has to wait, and ends a session that broke
// the protocol. The handler checks every length, number and address in a request before it does anything else. The
// shard's thread calls it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "format/messages.h"
#include "server/cleaning/cleaning_policy.h"
#include "server/control/counters.h"
#include "server/requests/commit_batch.h"
#include "server/requests/medium_queue.h"
#include "server/requests/reply_batch.h"
#include "server/requests/served.h"
#include "server/sessions/session.h"
#include "server/sessions/sessions.h"
#include "server/sessions/shard_options.h"
#include "server/versions/versions.h"

namespace erda::server {

// The reason for which a request has waited before the shard serves it.
enum class After : uint8_t { kNothing, kRoom, kWriter, kMedium };

class RequestHandler {
 public:
  // The part of the key space and of the log for which clients may send requests to this shard.
  struct Domain {
    const format::Geometry& geometry;
    uint32_t shard = 0;
    HashSeed hash_seed{};
  };

  RequestHandler(const Domain& domain, const ShardOptions& options, Counters counters, Versions& versions,
                 CleaningPolicy& cleaning, Sessions& sessions, ReplyBatch& replies, CommitBatch& commits,
                 const MediumQueue& for_medium)
      : domain_(domain),
        options_(options),
        counters_(counters),
        versions_(versions),
        cleaning_(cleaning),
        sessions_(sessions),
        replies_(replies),
        commits_(commits),
        for_medium_(for_medium) {}

  // Serves the request in the slot, for the first time or again. Its client can still write to the slot: a request that
  // waits may have changed since it was served first.
  Served Serve(const Asked& asked, After after);
  // Answers a question for the server's time.
  void TellTime(const Asked& asked);

 private:
  // Each function returns Replied if the reply is `outcome`.
  // (J5) Answers a request after the failure of the medium.
  Served Refuse(const Asked& asked, const format::Request& request);
  Served Delegate(Session& session, const format::Request& request, Outcome* outcome);
  Served ServeKeyed(Session& session, const format::Request& request, std::span<std::byte> slot, Outcome* outcome);
  // Judges the present state of the key, for a request whose effect depends on it. Returns the result of the request if
  // the judgement ends it. Otherwise the caller executes the request in the same step: `present` is right only until
  // the shard does anything else.
  std::optional<Served> Judge(const format::Request& request, std::string_view key, uint64_t key_hash, Present* present,
                              Outcome* outcome);
  // Returns the version for which a change of the key has to wait. A delete or another request of the key waits for it.
  // Requires: the pool has a journal.
  [[nodiscard]] std::optional<Present> Awaited(std::string_view key, uint64_t key_hash) const;

  const Domain domain_;
  const ShardOptions options_;
  Counters counters_;
  Versions& versions_;
  CleaningPolicy& cleaning_;
  Sessions& sessions_;
  ReplyBatch& replies_;
  CommitBatch& commits_;
  const MediumQueue& for_medium_;
};

}  // namespace erda::server
