// Checks whether the protocol allows a request, by its bytes and the rights of its session. Pure functions: each gets a
// private copy of the request, which the client cannot change.
#pragma once

#include <cstddef>
#include <cstdint>

#include "erda/status.h"
#include "format/geometry.h"
#include "format/messages.h"
#include "nvm/writer.h"
#include "server/sessions/session.h"
#include "server/versions/outcome.h"

namespace erda::server {

// Returns true if the shard may keep the request until there is room in the log. A delegated put has its space already.
// If it waited, its client would keep its chunk, and that may prevent the room that the put waits for.
[[nodiscard]] bool MayWait(const format::Request& request);
// Returns the outcome of each request whose answer would have to wait for the pool's medium, which has failed.
[[nodiscard]] inline Outcome OfFailedMedium(const nvm::Writer& nvm) {
  const format::Reason reason = nvm.lacks_mirror() ? format::Reason::kNoMirror : format::Reason::kJournal;
  return {Code::kUnavailable, reason, {}, 0, {}, 0, static_cast<uint64_t>(nvm.error_number())};
}
// Whether a power cut may undo what a reply tells.
enum class Undone : uint8_t {
  kNever,   // It tells the state of a key.
  kPlaced,  // It ends a put with kPlaced, or gives space for one.
  kMayBe    // It gives other space, or refuses it. Or it tells the time.
};
[[nodiscard]] Undone UndoneOf(const format::Request& request, Code code);
// Returns the violation in the condition of the request, or in the place in the pool that it names.
Violation CheckRights(const format::Request& request, const Session& session);
// Returns the violation in the numbers of a request for a key. slot_bytes: the size of the request's slot.
Violation CheckNumbers(const format::Request& request, size_t slot_bytes, const Session& session,
                       const format::Geometry& geometry);

}  // namespace erda::server
