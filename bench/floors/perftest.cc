#include "bench/floors/perftest.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>
#include <vector>

#include "bench/floors/child.h"
#include "bench/floors/settings.h"

namespace erda::floors {

namespace {

constexpr const char* kProgram = "ib_read_lat";
constexpr int kPort = 18539;
constexpr int kTries = 10;
constexpr std::chrono::milliseconds kBetweenTries{300};

// Returns a GID in the form of sysfs: eight groups of four digits. An IPv4 address is in the last two groups, after
// ffff.
std::string GidOf(const std::string& host) {
  std::array<uint8_t, 16> bytes{};
  if (inet_pton(AF_INET, host.c_str(), bytes.data() + 12) == 1) {
    bytes[10] = bytes[11] = 0xff;
  } else if (inet_pton(AF_INET6, host.c_str(), bytes.data()) != 1) {
    return "";
  }
  std::string gid;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i > 0 && i % 2 == 0) gid += ':';
    gid += fmt::format("{:02x}", bytes[i]);
  }
  return gid;
}

std::string FirstLine(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<int> FindGid(const std::filesystem::path& port, const std::string& gid) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(port / "gids", ignored)) {
    const std::string number = entry.path().filename();
    if (FirstLine(entry.path()) != gid) continue;
    if (FirstLine(port / "gid_attrs" / "types" / number) == "RoCE v2") return std::stoi(number);
  }
  return std::nullopt;
}

std::vector<std::string> Words(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), std::istream_iterator<std::string>()};
}

}  // namespace

std::optional<RdmaDevice> FindDevice(const std::filesystem::path& sysfs, const std::string& host) {
  const std::string gid = GidOf(host);
  if (gid.empty()) return std::nullopt;
  std::error_code ignored;
  for (const auto& device : std::filesystem::directory_iterator(sysfs, ignored)) {
    if (const auto index = FindGid(device.path() / "ports" / "1", gid)) {
      return RdmaDevice{device.path().filename(), *index};
    }
  }
  return std::nullopt;
}

std::optional<double> TypicalIn(const std::string& output) {
  std::istringstream lines(output);
  std::string line;
  std::optional<size_t> column;
  while (std::getline(lines, line)) {
    const auto words = Words(line);
    if (column && *column < words.size()) {
      char* end = nullptr;
      const double typical = std::strtod(words[*column].c_str(), &end);
      if (*end == '\0' && typical > 0) return typical;
      return std::nullopt;
    }
    const auto heading = std::find(words.begin(), words.end(), "t_typical[usec]");
    if (heading != words.end()) column = static_cast<size_t>(heading - words.begin());
  }
  return std::nullopt;
}

Result<double> RunIbReadLat(const RdmaDevice& device, const std::string& host) {
  const std::vector<std::string> server_command = {kProgram,
                                                   "-d",
                                                   device.name,
                                                   "-x",
                                                   std::to_string(device.gid_index),
                                                   "-s",
                                                   std::to_string(kSmallReadBytes),
                                                   "-n",
                                                   "1000",
                                                   "-F",
                                                   "-p",
                                                   std::to_string(kPort)};
  auto client_command = server_command;
  client_command.push_back(host);
  // Killed at the end, if the client never came.
  auto server = Child::Start(server_command);
  if (!server.ok()) {
    if (server.status().code() != Code::kInvalidArgument) return server.status();
    return Status(Code::kInvalidArgument, "not installed (package perftest)");
  }
  // The server takes some time until it listens.
  for (int i = 0; i < kTries; ++i) {
    std::this_thread::sleep_for(kBetweenTries);
    auto client = Child::Start(client_command);
    if (!client.ok()) return client.status();
    const Child::Ended ended = (*client)->Wait();
    if (ended.code != 0) continue;
    (*server)->Wait();
    if (const auto typical = TypicalIn(ended.out)) return *typical;
    return Status(Code::kInternal, "its output has an unknown form");
  }
  return Status(Code::kUnavailable,
                fmt::format("failed on device {} with GID index {}", device.name, device.gid_index));
}

}  // namespace erda::floors
