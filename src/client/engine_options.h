// The options of a client's engine, which are fixed when it is made. Only the client's thread calls `token`.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"
#include "erda/client.h"

namespace erda::client {

struct EngineOptions {
  Ack ack = Ack::kPersisted;
  PutPath put_path = PutPath::kAuto;
  uint32_t queue_depth = 64;
  uint32_t cache_entries = 65536;
  Nanoseconds timeout{std::chrono::seconds(5)};
  uint64_t client_id = 0;
  // Returns the server's token, each time that a server asks for a proof. Empty: the client has none.
  std::function<Result<std::string>()> token{};
};

}  // namespace erda::client
