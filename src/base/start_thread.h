// Starts a thread with a name that debuggers and top show.
#pragma once

#include <pthread.h>

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "erda/status.h"

namespace erda {

// name: at most 15 characters. Returns kResourceExhausted if the system gives no thread.
template <class Body>
Status StartThread(const std::string& name, Body&& body, std::thread* thread) {
  try {
    *thread = std::thread(std::forward<Body>(body));
  } catch (const std::system_error& error) {
    return {Code::kResourceExhausted, "cannot start thread " + name + ": " + error.what()};
  }
  pthread_setname_np(thread->native_handle(), name.c_str());
  return {};
}

}  // namespace erda
