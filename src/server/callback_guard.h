// Notices calls of a server that must not be: in a forked child, and in a callback of the same server. A callback that
// stops its server would wait for its own end.
//
// Any thread may ask it. REQUIRES: the guard outlives the callbacks that it wraps.
#pragma once

#include <functional>
#include <string_view>

#include "base/birthplace.h"

namespace erda::server {

class CallbackGuard {
 public:
  using Callback = std::function<void(std::string_view)>;

  CallbackGuard() = default;
  CallbackGuard(const CallbackGuard&) = delete;
  CallbackGuard& operator=(const CallbackGuard&) = delete;

  // Returns a callback that calls `callback`. Meanwhile the guard knows the thread. An empty callback stays empty.
  [[nodiscard]] Callback Wrap(Callback callback) const;
  // Returns the reason why this thread must neither start nor reload nor stop nor destroy the server, or null if it
  // may.
  [[nodiscard]] const char* Misuse() const;
  // Returns whether this process is a forked child of the server's process.
  [[nodiscard]] bool forked() const { return birthplace_.forked(); }

 private:
  const Birthplace birthplace_;
};

}  // namespace erda::server
