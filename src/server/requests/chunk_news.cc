#include "server/requests/chunk_news.h"

#include "format/messages.h"
#include "server/sessions/windows.h"

namespace erda::server {

void TellChunkNews(ChunkTable& chunks, Sessions& sessions, ReplyBatch& replies) {
  chunks.TellRevoked([&](SessionId id, format::LogAddress chunk) {
    Session& session = sessions.At(id);
    if (!session.doomed) replies.AddNotice(session, format::kRevokes | chunk.raw());
  });
  CloseWindows(chunks, sessions);
  // After this the client connects again.
  chunks.EndOverdue([&](SessionId id) {
    sessions.EndOverdue(sessions.At(id), "it kept a revoked piece of the log while other clients waited for room");
  });
}

}  // namespace erda::server
