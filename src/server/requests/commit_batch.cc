#include "server/requests/commit_batch.h"

namespace erda::server {

using format::RequestOp;

void CommitBatch::Begin(const Asked& asked, const format::Request& request) {
  const format::LogAddress address(request.address);
  commits_.push_back(
      {{request.key_hash, request.head, address, request.version, asked.session.id}, ParkedRequest(asked), request.id});
  versions_.BeginCommit(&commits_.back().begun);
}

void CommitBatch::EndAll(Sessions& sessions, ReplyBatch& replies) {
  for (const Commit& commit : commits_) {
    const Asked asked = commit.request.asked();
    if (asked.session.doomed) continue;
    const auto outcome = versions_.EndCommit(commit.begun);
    if (!outcome) {
      sessions.Violate(asked.session, "a commit without a reservation");
      continue;
    }
    if (outcome->code != Code::kOk) sessions.CountRefused(asked.session.fabric);
    replies.AddReply(asked, static_cast<uint8_t>(RequestOp::kCommit), commit.id, *outcome);
  }
  commits_.clear();
}

void CommitBatch::Forget(const Session& session) {
  std::erase_if(commits_, [&](const Commit& commit) { return commit.request.session == &session; });
}

}  // namespace erda::server
