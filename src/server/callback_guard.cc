#include "server/callback_guard.h"

#include <utility>

namespace erda::server {

namespace {

constexpr const char* kForked =
    "this server was opened before a fork, and belongs to the parent process: end the child by exec or _exit";
constexpr const char* kInCallback =
    "a callback of this server must not start, reload, stop or destroy it, which would wait for the callback's end: "
    "leave that to another thread";

// The guard of the server in whose callback this thread is, or null.
thread_local const CallbackGuard* calling = nullptr;

// Names the guard while a callback runs. An exception of the callback ends that, too.
class Calling {
 public:
  explicit Calling(const CallbackGuard* guard) : before_(std::exchange(calling, guard)) {}
  Calling(const Calling&) = delete;
  Calling& operator=(const Calling&) = delete;
  ~Calling() { calling = before_; }

 private:
  const CallbackGuard* const before_;
};

}  // namespace

CallbackGuard::Callback CallbackGuard::Wrap(Callback callback) const {
  if (!callback) return callback;
  return [this, wrapped = std::move(callback)](std::string_view what) {
    const Calling marked(this);
    wrapped(what);
  };
}

const char* CallbackGuard::Misuse() const {
  if (birthplace_.forked()) return kForked;
  return calling == this ? kInCallback : nullptr;
}

}  // namespace erda::server
