// The proof that a shard has published all its puts. Functions that would tell of an unpublished put, or would end what
// protects it, take the proof as an argument. So a caller that forgets Versions::PublishPuts does not compile.
#pragma once

namespace erda::server {

// Versions::PublishPuts alone makes one. Valid until the next put: pass it on in the call that asked for it.
class AllPublished {
 private:
  friend class Versions;  // makes it, and nothing more: there is no state to reach
  AllPublished() = default;
};

}  // namespace erda::server
