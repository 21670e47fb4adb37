#include "lab/fixture.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "base/random.h"
#include "lab/device.h"
#include "paths.h"

namespace erda {

std::string LabTest::Lab(const std::string& name) {
  const char* value = std::getenv(("ERDA_LAB_" + name).c_str());
  return value == nullptr ? "" : value;
}

void LabTest::SetUp() {
  ASSERT_FALSE(Lab("SERVER").empty()) << "this runs in the lab: tools/rdma-lab run -- build/tests/lab_tests";
  std::string folder = "/tmp/erda-lab-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  folder_ = folder;
}

LabTest::~LabTest() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

void LabTest::WipeDevice() { ASSERT_TRUE(erda::WipeDevice(Lab("DAX"))) << Lab("DAX"); }

LabTest::Words LabTest::Command(const std::string& program, const Words& arguments) {
  Words words = {BinDir() + "/" + program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

std::unique_ptr<Process> LabTest::StartServer(const Words& more) {
  Words arguments = {"--pool", Lab("DAX"), "--size", Lab("DAX_SIZE")};
  if (std::find(more.begin(), more.end(), "--listen") == more.end()) {
    arguments.insert(arguments.end(), {"--listen", Address()});
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  auto server = std::make_unique<Process>(Command("erda-server", arguments));
  const bool ready = WaitUntil([&] { return !server->Running() || server->out().find("ready") != std::string::npos; });
  EXPECT_TRUE(ready && server->Running()) << server->out() << server->err();
  return server;
}

void LabTest::StopServer(Process& server) {
  server.Signal(SIGTERM);
  const Ended ended = server.Wait();
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
}

std::unique_ptr<Client> LabTest::Connect(const std::string& address, const ClientOptions& options) {
  auto client = Client::Connect(address, options);
  EXPECT_TRUE(client.ok()) << client.status().ToString();
  return client.ok() ? *std::move(client) : nullptr;
}

std::map<std::string, std::string> LabTest::InfoOf(Client& client) {
  auto info = client.ServerInfo();
  EXPECT_TRUE(info.ok()) << info.status().ToString();
  if (!info.ok()) return {};
  return {info->begin(), info->end()};
}

// --- Ledger

std::string Ledger::Value(const std::string& key, uint64_t number) const {
  std::string value = key + "#" + std::to_string(number) + ":";
  Random random(seed_ + number * 1000003 + std::hash<std::string>()(key));
  // Small values travel in the request. The client writes large values one-sidedly.
  const size_t size = random.Chance(0.5) ? random.Uniform(500) : random.Uniform(60'000);
  while (value.size() < size) value.push_back(static_cast<char>('a' + random.Uniform(26)));
  return value;
}

std::string Ledger::Next(const std::string& key) { return Value(key, ++keys_[key].tried); }

size_t Ledger::acknowledged() const {
  size_t count = 0;
  for (const auto& [name, key] : keys_) count += key.acknowledged > 0 ? 1 : 0;
  return count;
}

testing::AssertionResult Ledger::Check(Client& client) const {
  for (const auto& [name, key] : keys_) {
    auto found = client.Get(name);
    if (found.status().code() == Code::kNotFound && key.acknowledged == 0) continue;
    if (!found.ok()) return testing::AssertionFailure() << name << ": " << found.status().ToString();
    bool allowed = false;
    for (uint64_t number = std::max<uint64_t>(key.acknowledged, 1); number <= key.tried && !allowed; ++number) {
      allowed = *found == Value(name, number);
    }
    if (!allowed) {
      return testing::AssertionFailure() << name << " is " << found->substr(0, 40) << "..., of puts "
                                         << key.acknowledged << " (acknowledged) to " << key.tried;
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace erda
