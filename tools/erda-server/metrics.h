// A server's statistics for Prometheus: as text, and over HTTP.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "erda/server.h"

namespace erda::tools {

// Returns the text in Prometheus' format 0.0.4.
[[nodiscard]] std::string MetricsText(const Server& server);

// Parses "127.0.0.1:9464" or "[::1]:9464"; a port alone means 127.0.0.1. Takes numbers only.
[[nodiscard]] std::optional<sockaddr_storage> ParseMetricsAddress(std::string_view text);

// Answers GET /metrics on a separate thread, one request for each connection. It serves a few connections at once, and
// the others wait. A connection has a few seconds, and its request a bounded size.
class MetricsServer {
 public:
  // text: makes the answer. The separate thread calls it.
  explicit MetricsServer(std::function<std::string()> text) : text_(std::move(text)) {}
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;
  ~MetricsServer();  // Ends the thread, and all connections.

  // Returns false if it cannot listen at the address; errno says why.
  [[nodiscard]] bool Start(const sockaddr_storage& address);
  [[nodiscard]] uint16_t port() const;  // Returns the real port, also if port 0 was asked for.

 private:
  struct Connection;

  void Run();
  // Returns false when the connection is finished.
  [[nodiscard]] bool Go(Connection& connection) const;

  const std::function<std::string()> text_;
  UniqueFd listener_;
  UniqueFd stop_;
  std::thread thread_;
};

}  // namespace erda::tools
