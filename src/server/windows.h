// The windows through which a client writes into its chunks (docs/protocol.md, "Put, through a window"). The session
// has the list of its open windows (Session::windows), which these functions alone change. The shard's thread calls
// them.
#pragma once

#include "server/chunk_table.h"
#include "server/session.h"
#include "server/sessions.h"
#include "server/versions.h"

namespace erda::server {

// Opens a window on the chunk that Delegate gave to the session with this outcome, without the chunk's header. Adds its
// key to the outcome. If there is no window to be had, the session has no such chunk. Requires: the session is
// windowed.
void OpenWindow(Versions& versions, Session& session, Outcome* outcome);
// Closes the windows of the chunks that have ended. (I8) The space of such a chunk is held until its window is closed:
// OnWindowClosed says when.
void CloseWindows(ChunkTable& chunks, Sessions& sessions);

}  // namespace erda::server
