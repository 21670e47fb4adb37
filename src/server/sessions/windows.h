// The windows through which a client writes into its chunks (docs/protocol.md, "Put, through a window"). The session
// has the list of its open windows (Session::windows), which these functions alone change. The shard's thread calls
// them.
#pragma once

#include "server/sessions/session.h"
#include "server/sessions/sessions.h"
#include "server/versions/chunk_table.h"
#include "server/versions/versions.h"

namespace erda::server {

// Opens a window on the chunk that Delegate gave to the session with this outcome, except the chunk's header. Adds the
// window's key to the outcome. If the device gives no window, the session loses the chunk. Requires: the session is
// windowed.
void OpenWindow(Versions& versions, Session& session, Outcome* outcome);
// Closes the windows of the chunks that have ended. (I8) The space of such a chunk is held until OnWindowClosed says
// that its window is closed.
void CloseWindows(ChunkTable& chunks, Sessions& sessions);

}  // namespace erda::server
