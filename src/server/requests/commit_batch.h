// The commits that one step of a shard has begun.
//
// Owns: these commits, in the order in which they were begun. Each commit has begun to flush its value. The shard ends
// all commits together, so they share one fence with each other and with the puts of the step. Requires: the shard has
// published its puts before it ends the commits (AllPublished), and forgets a session before that session ends. The
// shard's thread calls it.
#pragma once

#include <cstdint>
#include <vector>

#include "format/messages.h"
#include "server/requests/reply_batch.h"
#include "server/sessions/session.h"
#include "server/sessions/sessions.h"
#include "server/versions/all_published.h"
#include "server/versions/versions.h"

namespace erda::server {

class CommitBatch {
 public:
  explicit CommitBatch(Versions& versions) : versions_(versions) {}

  // Begins the commit that the request asks for.
  void Begin(const Asked& asked, const format::Request& request);
  // Ends all commits, and adds a reply to each. Dooms a session that commits a version which it has not reserved.
  void End(AllPublished, Sessions& sessions, ReplyBatch& replies) {
    if (!commits_.empty()) EndAll(sessions, replies);
  }
  void Forget(const Session& session);
  [[nodiscard]] bool empty() const { return commits_.empty(); }

 private:
  struct Commit {
    Versions::Commit begun;
    ParkedRequest request;
    uint64_t id = 0;  // the id of the request
  };

  void EndAll(Sessions& sessions, ReplyBatch& replies);

  Versions& versions_;
  std::vector<Commit> commits_;
};

}  // namespace erda::server
