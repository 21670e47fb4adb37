#include "client/client_options.h"

#include <random>
#include <string>
#include <utility>

#include "base/option_bounds.h"
#include "base/token_file.h"

namespace erda::client {

namespace {

uint64_t RandomId() {
  std::random_device random;
  return (uint64_t{random()} << 32) | random();
}

}  // namespace

Status CheckOptions(const ClientOptions& options) {
  Bounds bounds;
  bounds.Check(kClientBounds.queue_depth, options.queue_depth);
  bounds.Check(kClientBounds.cache_entries, options.cache_entries);
  bounds.Check(kClientBounds.timeout, options.timeout.count());
  bounds.Check(kClientBounds.ack, static_cast<uint8_t>(options.ack));
  bounds.Check(kClientBounds.put_path, static_cast<uint8_t>(options.put_path));
  bounds.Check(kClientBounds.polling, static_cast<uint8_t>(options.polling));
  if (!bounds.status().ok()) return bounds.status();
  if (!options.token.empty() && !options.token_file.empty()) {
    return {Code::kInvalidArgument, "a token, or the name of a file with one, but not both"};
  }
  if (!options.token.empty()) {
    if (const std::string what = CheckToken(options.token); !what.empty()) return {Code::kInvalidArgument, what};
  }
  return {};
}

EngineOptions EngineOptionsOf(ClientOptions options) {
  EngineOptions engine_options;
  engine_options.ack = options.ack;
  engine_options.put_path = options.put_path;
  engine_options.queue_depth = options.queue_depth;
  engine_options.cache_entries = options.cache_entries;
  engine_options.timeout = options.timeout;
  engine_options.client_id = RandomId();
  if (!options.token.empty()) {
    engine_options.token = [token = std::move(options.token)]() -> Result<std::string> { return token; };
  } else if (!options.token_file.empty()) {
    engine_options.token = [path = std::move(options.token_file)]() -> Result<std::string> {
      auto tokens = ReadTokenFile(path);
      return tokens.ok() ? Result<std::string>(std::move(tokens->front().secret)) : tokens.status();
    };
  }
  return engine_options;
}

}  // namespace erda::client
