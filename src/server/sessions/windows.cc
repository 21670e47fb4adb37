#include "server/sessions/windows.h"

#include <algorithm>

namespace erda::server {

// The shard posts the reply after the window is open, so a client that has the reply finds it open.
void OpenWindow(Versions& versions, Session& session, Outcome* outcome) {
  const uint64_t chunk = versions.log().OffsetOf(outcome->head, outcome->address);
  const uint64_t bytes = format::SpaceOf(outcome->header) - format::kChunkObjectsAt;
  const auto key = session.channel->OpenWindow(*session.windowed_pool, chunk + format::kChunkObjectsAt, bytes);
  if (key.ok()) {
    session.windows.push_back({outcome->header.version, *key});
    outcome->number = *key;
    return;
  }
  versions.delegating().GiveBack(outcome->head, outcome->address, outcome->header.version, session.id);
  *outcome = {Code::kResourceExhausted, format::Reason::kNoChunk, {}, 0, {}};
}

// The channel reports a closed window by a completion. If a chunk's window could not be opened, there is no window to
// wait for. A channel that takes no request has failed, and its end closes all its windows.
void CloseWindows(ChunkTable& chunks, Sessions& sessions) {
  chunks.CloseWindows([&](SessionId id, uint64_t chunk) {
    Session& session = sessions.At(id);
    const auto window = std::ranges::find(session.windows, chunk, &Session::Window::chunk);
    if (window == session.windows.end()) return chunks.OnWindowClosed(id, chunk);
    (void)session.channel->CloseWindow(window->key, chunk);
    session.windows.erase(window);
  });
}

}  // namespace erda::server
