// erda-server's metrics over HTTP: their content, and their clients.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cmath>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "programs/fixture.h"

namespace erda {
namespace {

class MetricsTest : public ProgramsTest {
 protected:
  // Starts a server with metrics on a free port.
  void Start() {
    server_ = StartServer({"--metrics", "0"});
    std::smatch match;
    const std::string out = server_->out();
    ASSERT_TRUE(std::regex_search(out, match, std::regex("metrics on port ([0-9]+)\n"))) << out;
    port_ = static_cast<uint16_t>(std::stoi(match[1]));
  }
  void Stop() { StopServer(*server_); }

  [[nodiscard]] UniqueFd Connect() const {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    return socket;
  }
  static void Send(const UniqueFd& socket, const std::string& text) {
    EXPECT_EQ(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  // Receives everything up to the end.
  static std::string Receive(const UniqueFd& socket) {
    std::string all;
    std::array<char, 4096> part{};
    ssize_t got = 0;
    while ((got = ::recv(socket.get(), part.data(), part.size(), 0)) > 0) {
      all.append(part.data(), static_cast<size_t>(got));
    }
    EXPECT_EQ(got, 0);
    return all;
  }
  [[nodiscard]] std::string Ask(const std::string& request) const {
    const UniqueFd socket = Connect();
    Send(socket, request);
    return Receive(socket);
  }

 private:
  std::unique_ptr<Process> server_;
  uint16_t port_ = 0;
};

// Each series has its buckets, whose bounds and counts grow, up to +Inf. Then come _sum and _count, which is the same
// as +Inf.
void ExpectHistograms(const std::vector<std::string>& lines) {
  const std::regex sample("(erda_[a-z_]+)_(bucket|sum|count)(\\{(.*)\\})? ([0-9.e+-]+)");
  const std::regex bound("(.*?),?le=\"([^\"]+)\"");
  std::string series;  // Name and labels of the present series; empty after its count.
  double last_bound = 0;
  double last_count = 0;
  bool summed = false;
  for (const std::string& line : lines) {
    std::smatch match;
    ASSERT_TRUE(std::regex_match(line, match, sample)) << line;
    const std::string what = match[2];
    const std::string labels = match[4];
    const double number = std::stod(match[5]);
    if (what == "bucket") {
      std::smatch parts;
      ASSERT_TRUE(std::regex_match(labels, parts, bound)) << line;
      const std::string of = match[1].str() + parts[1].str();
      if (series.empty()) {
        series = of;
        last_bound = last_count = 0;
        summed = false;
      }
      EXPECT_EQ(series, of) << line;
      const double upper = parts[2] == "+Inf" ? HUGE_VAL : std::stod(parts[2]);
      EXPECT_GT(upper, last_bound) << line;
      EXPECT_GE(number, last_count) << line;
      last_bound = upper;
      last_count = number;
      continue;
    }
    EXPECT_EQ(series, match[1].str() + labels) << line;
    EXPECT_EQ(last_bound, HUGE_VAL) << line;
    if (what == "sum") {
      EXPECT_EQ(number > 0, last_count > 0) << line;
      summed = true;
    } else {
      EXPECT_TRUE(summed) << line;
      EXPECT_EQ(number, last_count) << line;
      series.clear();
    }
  }
  EXPECT_EQ(series, "");
}

TEST_F(MetricsTest, EachSampleHasHelpAndTypeAndANumber) {
  Start();
  ExpectFine(Cli({"put", "key", "value"}));
  EXPECT_EQ(Cli({"put", "--if-absent", "key", "value"}).code, 6);
  EXPECT_EQ(Cli({"del", "none"}).code, 1);
  const std::string answer = Ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  const size_t head = answer.find("\r\n\r\n");
  ASSERT_NE(head, std::string::npos);
  const std::string body = answer.substr(head + 4);
  EXPECT_NE(answer.find("Content-Length: " + std::to_string(body.size()) + "\r\n"), std::string::npos);
  EXPECT_NE(body.find("\nerda_puts_total{path=\"inline\"} 1\n"), std::string::npos) << body;
  EXPECT_NE(body.find("\nerda_keys 1\n"), std::string::npos) << body;
  for (const char* line : {"erda_requests_total{kind=\"put_inline\",outcome=\"ok\"} 1",
                           "erda_requests_total{kind=\"put_inline\",outcome=\"conflict\"} 1",
                           "erda_requests_total{kind=\"delete\",outcome=\"not_found\"} 1",
                           "erda_fabric_requests_total{fabric=\"shm\",device=\"\"} 3"}) {
    EXPECT_NE(body.find(std::string("\n") + line + "\n"), std::string::npos) << line << "\n" << body;
  }
  const std::regex help("# HELP (erda_[a-z_]+) [^\n]+");
  const std::regex type("# TYPE (erda_[a-z_]+) (counter|gauge|histogram)");
  const std::regex sample("(erda_[a-z_]+)(\\{[a-z_]+=\"[^\"]*\"(,[a-z_]+=\"[^\"]*\")*\\})? [0-9.e+-]+");
  std::set<std::string> histograms;
  std::vector<std::string> histogram_lines;
  std::set<std::string> families;
  std::string family;
  std::istringstream lines(body);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, help)) {
      family = match[1];
      EXPECT_TRUE(families.insert(family).second) << line;
    } else if (std::regex_match(line, match, type)) {
      EXPECT_EQ(match[1], family);
      EXPECT_EQ(match[2] == "counter", family.ends_with("_total")) << line;
      if (match[2] == "histogram") histograms.insert(family);
    } else {
      ASSERT_TRUE(std::regex_match(line, match, sample)) << line;
      if (histograms.contains(family)) {
        histogram_lines.push_back(line);
      } else {
        EXPECT_EQ(match[1], family);
      }
    }
  }
  EXPECT_EQ(histograms.size(), 4U);
  ExpectHistograms(histogram_lines);
  EXPECT_GT(families.size(), 20U);
  Stop();
}

TEST_F(MetricsTest, OtherRequestsAreRefused) {
  Start();
  EXPECT_TRUE(Ask("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(Ask("GET /metricsx HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(Ask("GET /metrics?a=b HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(Ask("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
  EXPECT_TRUE(Ask("GET /metrics\r\n\r\n").starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(Ask(" \r\n\r\n").starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(Ask(std::string(5, '\0') + "\xff\r\n\r\n").starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(Ask(std::string(20'000, 'x')).starts_with("HTTP/1.1 400 "));  // Without an end.
  Stop();
}

TEST_F(MetricsTest, SilentClientsDoNotKeepOthersOut) {
  Start();
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(Connect());
  Send(silent.front(), "GET /met");
  EXPECT_TRUE(Ask("GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 "));
  for (const UniqueFd& socket : silent) EXPECT_EQ(Receive(socket), "");
  ExpectFine(Cli({"put", "key", "value"}));
  Stop();
}

TEST_F(MetricsTest, AddressesAreCheckedAndTaken) {
  for (const char* wrong : {"", "x", "65536", "1.2.3:1", "localhost:1", "[::1]", "127.0.0.1:", "-1"}) {
    EXPECT_EQ(ServerWith({"--pool", "dram:", "--listen", Address(), "--metrics", wrong, "--check"}).code, 2) << wrong;
  }
  for (const char* right : {"1", "127.0.0.1:9464", "0.0.0.0:1", "[::1]:9464"}) {
    ExpectFine(ServerWith({"--pool", "dram:", "--listen", Address(), "--metrics", right, "--check"}));
  }
}

}  // namespace
}  // namespace erda
