// Tells the clients of a shard the news about their chunks. The shard's thread calls it.
#pragma once

#include "server/requests/reply_batch.h"
#include "server/sessions/sessions.h"
#include "server/versions/chunk_table.h"

namespace erda::server {

// Acts on the news that the table has had since the last call. Asks clients to give revoked chunks back. Closes the
// windows of chunks that have ended. Ends the session of a client that keeps a chunk for too long while others wait.
void TellChunkNews(ChunkTable& chunks, Sessions& sessions, ReplyBatch& replies);

}  // namespace erda::server
