#include "tools/erda-server/metrics.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <utility>

#include "tools/erda-server/statistics.h"

namespace erda::tools {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kConnections = 8;
constexpr size_t kRequestBytes = 4096;
constexpr std::chrono::seconds kTimeLimit{5};

class Text {
 public:
  void Family(std::string_view name, std::string_view type, std::string_view help) {
    text_ += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
  }
  template <class Number>
  void Sample(std::string_view name, Number value) {
    text_ += fmt::format("{} {}\n", name, value);
  }
  void Counter(std::string_view name, uint64_t value, std::string_view help) {
    Family(name, "counter", help);
    Sample(name, value);
  }
  void Gauge(std::string_view name, uint64_t value, std::string_view help) {
    Family(name, "gauge", help);
    Sample(name, value);
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string Label(std::string_view value) {
  std::string escaped;
  for (const char byte : value) {
    if (byte == '\\' || byte == '"') escaped += '\\';
    if (byte == '\n') {
      escaped += "\\n";
    } else {
      escaped += byte;
    }
  }
  return escaped;
}

void AddStatistics(Text& text, const ServerStats& stats) {
  for (const StatisticMetric& metric : kStatisticMetrics) {
    if (metric.help != nullptr) text.Family(metric.family, metric.type, metric.help);
    text.Sample(fmt::format("{}{}", metric.family, metric.labels), metric.value(stats));
  }
}

// labels: of all samples, and a comma after them; or empty.
void AddHistogram(Text& text, std::string_view name, std::string_view labels, const LatencyHistogram& times) {
  const auto seconds = [](uint64_t nanos) { return static_cast<double>(nanos) / 1e9; };
  uint64_t below = 0;
  for (size_t i = 0; i + 1 < LatencyHistogram::kBuckets; ++i) {
    below += times.counts[i];
    const auto bound = static_cast<uint64_t>(LatencyHistogram::UpperBound(i).count());
    text.Sample(fmt::format("{}_bucket{{{}le=\"{}\"}}", name, labels, seconds(bound)), below);
  }
  below += times.counts.back();
  text.Sample(fmt::format("{}_bucket{{{}le=\"+Inf\"}}", name, labels), below);
  const std::string_view alone = labels.substr(0, labels.size() - (labels.empty() ? 0 : 1));
  const std::string braced = alone.empty() ? "" : fmt::format("{{{}}}", alone);
  text.Sample(fmt::format("{}_sum{}", name, braced), seconds(times.sum_nanos));
  text.Sample(fmt::format("{}_count{}", name, braced), below);
}

void AddActivity(Text& text, const Activity& activity) {
  text.Family("erda_requests_total", "counter", "Requests answered, by kind and by the code of the answer.");
  for (const OperationStats& operation : activity.operations) {
    for (size_t i = 0; i < OperationStats::kOutcomes; ++i) {
      text.Sample(fmt::format("erda_requests_total{{kind=\"{}\",outcome=\"{}\"}}", operation.kind,
                              OperationStats::OutcomeName(i)),
                  operation.outcomes[i]);
    }
  }
  text.Family("erda_request_seconds", "histogram",
              "From when a shard saw a request until it handed the answer to the fabric, waits included.");
  for (const OperationStats& operation : activity.operations) {
    AddHistogram(text, "erda_request_seconds", fmt::format("kind=\"{}\",", operation.kind), operation.time);
  }
  text.Family("erda_persist_seconds", "histogram",
              "The time until the puts of a shard's step were persistent and published; one step in 64 is timed.");
  AddHistogram(text, "erda_persist_seconds", "", activity.persist);
  text.Family("erda_journal_hold_seconds", "histogram",
              "From when a shard asked the disk of the journal to hold what it had stored, until the disk held it.");
  AddHistogram(text, "erda_journal_hold_seconds", "", activity.hold);
  text.Family("erda_cleaner_region_seconds", "histogram", "The time to clean a region.");
  AddHistogram(text, "erda_cleaner_region_seconds", "", activity.clean_region);

  const auto by_fabric = [&](std::string_view name, std::string_view type, uint64_t FabricStats::*number,
                             std::string_view help) {
    text.Family(name, type, help);
    for (const FabricStats& fabric : activity.fabrics) {
      text.Sample(fmt::format("{}{{fabric=\"{}\",device=\"{}\"}}", name, Label(fabric.scheme), Label(fabric.device)),
                  fabric.*number);
    }
  };
  by_fabric("erda_fabric_connections", "gauge", &FabricStats::connections,
            "Connections by fabric, one for each client and shard.");
  by_fabric("erda_fabric_requests_total", "counter", &FabricStats::requests, "Requests answered, by fabric.");
  by_fabric("erda_fabric_refused_total", "counter", &FabricStats::refused,
            "Requests answered with an error, and clients that shards did not let in, by fabric.");
  by_fabric("erda_fabric_violations_total", "counter", &FabricStats::violations,
            "Channels closed because the peer broke the protocol, by fabric.");
}

void AddRecovery(Text& text, const RecoveryReport& report) {
  text.Family("erda_recovery_seconds", "gauge", "The time of the recovery at the start.");
  text.Sample("erda_recovery_seconds", std::chrono::duration<double>(report.time).count());
  text.Gauge("erda_recovery_objects", report.objects, "Objects that the recovery looked at.");
  text.Gauge("erda_recovery_verified_shards", report.shards_verified,
             "Shards verified in full after a power cut or a crash of the kernel: acknowledged puts may be missing.");
  text.Family("erda_recovery_entries", "gauge", "Entries whose newest version the recovery verified, by its finding.");
  for (const auto& [outcome, count] : {std::pair("settled", report.settled),
                                       {"taken_back", report.taken_back},
                                       {"dropped", report.dropped},
                                       {"deletes_finished", report.deletes_finished},
                                       {"damaged", report.damaged}}) {
    text.Sample(fmt::format("erda_recovery_entries{{outcome=\"{}\"}}", outcome), count);
  }
}

// Answers a whole request.
std::string Answer(std::string_view request, const std::function<std::string()>& text) {
  const auto answer = [](std::string_view status, std::string_view type, std::string_view body) {
    return fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", status,
                       type, body.size(), body);
  };
  const auto refuse = [&](std::string_view status) {
    return answer(status, "text/plain", fmt::format("{}\n", status));
  };
  const std::string_view line = request.substr(0, request.find("\r\n"));
  const size_t method_end = line.find(' ');
  const size_t target_end = line.rfind(' ');
  if (method_end == std::string_view::npos || target_end <= method_end ||
      !line.substr(target_end + 1).starts_with("HTTP/1.")) {
    return refuse("400 Bad Request");
  }
  if (line.substr(0, method_end) != "GET") return refuse("405 Method Not Allowed");
  const std::string_view target = line.substr(method_end + 1, target_end - method_end - 1);
  if (target.substr(0, target.find('?')) != "/metrics") return refuse("404 Not Found");
  return answer("200 OK", "text/plain; version=0.0.4; charset=utf-8", text());
}

}  // namespace

std::string MetricsText(const Server& server) {
  Text text;
  const ServerStats stats = server.stats();
  const std::vector<ServerFabric> fabrics = server.fabrics();
  AddStatistics(text, stats);
  AddActivity(text, server.activity());
  text.Family("erda_fabric_registration_seconds", "gauge", "The time to register the pool on a fabric.");
  for (const ServerFabric& fabric : fabrics) {
    text.Sample(fmt::format("erda_fabric_registration_seconds{{fabric=\"{}\",device=\"{}\",flush_method=\"{}\"}}",
                            Label(fabric.scheme), Label(fabric.device), Label(fabric.flush_method)),
                std::chrono::duration<double>(fabric.registered_in).count());
  }
  if (const Status health = server.health(); !health.ok()) {
    text.Family("erda_journal_failure", "gauge", "1, if the disk of the journal has failed, with its error.");
    text.Sample(fmt::format("erda_journal_failure{{error=\"{}\"}}", Label(health.message())), 1);
  }
  if (const auto recovery = server.recovery()) AddRecovery(text, *recovery);
  return text.Take();
}

std::optional<sockaddr_storage> ParseMetricsAddress(std::string_view text) {
  const size_t colon = text.rfind(':');
  std::string host = colon == std::string_view::npos ? "127.0.0.1" : std::string(text.substr(0, colon));
  const std::string_view digits = colon == std::string_view::npos ? text : text.substr(colon + 1);
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  sockaddr_storage address{};
  if (host.starts_with('[') && host.ends_with(']')) {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    if (::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &six.sin6_addr) != 1) return std::nullopt;
    std::memcpy(&address, &six, sizeof(six));
  } else {
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    if (::inet_pton(AF_INET, host.c_str(), &four.sin_addr) != 1) return std::nullopt;
    std::memcpy(&address, &four, sizeof(four));
  }
  return address;
}

struct MetricsServer::Connection {
  UniqueFd socket;
  Clock::time_point limit;
  std::string in;
  std::string out;
  size_t sent = 0;

  [[nodiscard]] bool answered() const { return !out.empty() && sent == out.size(); }
  [[nodiscard]] decltype(pollfd::events) waits_for() const { return !out.empty() && !answered() ? POLLOUT : POLLIN; }
};

MetricsServer::~MetricsServer() {
  if (!thread_.joinable()) return;
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
}

bool MetricsServer::Start(const sockaddr_storage& address) {
  listener_ = UniqueFd(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  stop_ = UniqueFd(::eventfd(0, EFD_CLOEXEC));
  const int yes = 1;
  const socklen_t size = address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (!listener_ || !stop_ || ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
      ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(listener_.get(), kConnections) != 0) {
    return false;
  }
  thread_ = std::thread([this] { Run(); });
  return true;
}

uint16_t MetricsServer::port() const {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
  sockaddr_in with_port{};  // IPv6 has the port at the same place.
  std::memcpy(&with_port, &address, sizeof(with_port));
  return ntohs(with_port.sin_port);
}

void MetricsServer::Run() {
  std::vector<Connection> connections;
  while (true) {
    std::vector<pollfd> waits = {{stop_.get(), POLLIN, 0},
                                 {connections.size() < kConnections ? listener_.get() : -1, POLLIN, 0}};
    auto first = Clock::time_point::max();
    for (const Connection& one : connections) {
      waits.push_back({one.socket.get(), one.waits_for(), 0});
      first = std::min(first, one.limit);
    }
    int timeout = -1;
    if (!connections.empty()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(first - Clock::now()).count();
      timeout = static_cast<int>(std::max<int64_t>(left, 0));
    }
    ::poll(waits.data(), waits.size(), timeout);
    if (waits[0].revents != 0) return;
    const auto now = Clock::now();
    for (size_t i = connections.size(); i-- > 0;) {
      const bool over = waits[i + 2].revents != 0 && !Go(connections[i]);
      if (over || now >= connections[i].limit) connections.erase(connections.begin() + static_cast<ptrdiff_t>(i));
    }
    if (waits[1].revents == 0) continue;
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      connections.push_back({std::move(socket), now + kTimeLimit, {}, {}, 0});
    } else if (errno != EAGAIN) {
      // There are no descriptors. The client is still waiting, and poll would report it at once.
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
}

bool MetricsServer::Go(Connection& connection) const {
  const int socket = connection.socket.get();
  if (connection.waits_for() == POLLIN) {
    std::array<char, kRequestBytes> part{};
    const ssize_t got = ::recv(socket, part.data(), part.size(), 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    // Reads and drops all bytes after the answer. If the server closed the connection with unread bytes, the kernel
    // would reset it, and the answer would be lost.
    if (connection.answered()) return true;
    connection.in.append(part.data(), static_cast<size_t>(got));
    if (connection.in.find("\r\n\r\n") != std::string::npos) {
      connection.out = Answer(connection.in, text_);
    } else if (connection.in.size() > kRequestBytes) {
      connection.out = Answer("", text_);
    } else {
      return true;
    }
  }
  const ssize_t sent =
      ::send(socket, connection.out.data() + connection.sent, connection.out.size() - connection.sent, MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN || errno == EINTR;
  connection.sent += static_cast<size_t>(sent);
  return !connection.answered() || ::shutdown(socket, SHUT_WR) == 0;
}

}  // namespace erda::tools
