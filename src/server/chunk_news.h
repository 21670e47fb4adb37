// What the clients of a shard are told of their chunks. The shard's thread calls it.
#pragma once

#include "server/chunk_table.h"
#include "server/reply_batch.h"
#include "server/sessions.h"

namespace erda::server {

// Acts on the news of the table since the last call: asks clients to give chunks back, closes the windows of chunks
// that have ended, and ends the sessions of clients that keep a chunk which others wait for.
void TellChunkNews(ChunkTable& chunks, Sessions& sessions, ReplyBatch& replies);

}  // namespace erda::server
