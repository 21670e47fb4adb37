// Serves the requests of clients: checks a private copy of each, and does on the shard's versions what it asks for.
//
// Owns nothing that lasts: the reply goes into the ReplyBatch, a commit into the CommitBatch. Requires: no earlier
// request in the same slot waits; the caller parks a request that has to wait, and ends a session that broke the
// protocol. Every length, number and address in a request is checked before anything is done. The shard's thread calls
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "format/messages.h"
#include "server/cleaning_policy.h"
#include "server/commit_batch.h"
#include "server/counters.h"
#include "server/reply_batch.h"
#include "server/served.h"
#include "server/session.h"
#include "server/sessions.h"
#include "server/shard_options.h"
#include "server/versions.h"

namespace erda::server {

// What a request has waited for before it is served.
enum class After : uint8_t { kNothing, kRoom, kWriter };

class RequestHandler {
 public:
  // The part of the key space and of the log that the shard's clients may ask for.
  struct Domain {
    const format::Geometry& geometry;
    uint32_t shard = 0;
    HashSeed hash_seed{};
  };

  RequestHandler(const Domain& domain, const ShardOptions& options, Counters counters, Versions& versions,
                 CleaningPolicy& cleaning, Sessions& sessions, ReplyBatch& replies, CommitBatch& commits)
      : domain_(domain),
        options_(options),
        counters_(counters),
        versions_(versions),
        cleaning_(cleaning),
        sessions_(sessions),
        replies_(replies),
        commits_(commits) {}

  // Serves the request in the slot, for the first time or again. Its client can still write to the slot: a request that
  // waits may have changed since it was served first.
  Served Serve(const Asked& asked, After after);
  // Answers a question for the server's time.
  void TellTime(const Asked& asked);

 private:
  // Each returns Replied if `outcome` is what to reply.
  Served Delegate(Session& session, const format::Request& request, Outcome* outcome);
  Served ServeKeyed(Session& session, const format::Request& request, std::span<std::byte> slot, Outcome* outcome);
  // Finds what the key has now, for a request whose effect depends on it. Returns what came of the request if that ends
  // it. Else the request must be executed in the same step: `present` is only true until something else is done.
  std::optional<Served> Judge(const format::Request& request, std::string_view key, uint64_t key_hash, Present* present,
                              Outcome* outcome);

  const Domain domain_;
  const ShardOptions options_;
  Counters counters_;
  Versions& versions_;
  CleaningPolicy& cleaning_;
  Sessions& sessions_;
  ReplyBatch& replies_;
  CommitBatch& commits_;
};

}  // namespace erda::server
