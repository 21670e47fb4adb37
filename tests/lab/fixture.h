// Servers and clients over Soft-RoCE, with the pool on an NVDIMM: for programs that run in the lab (tools/rdma-lab).
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "erda/client.h"
#include "programs/process.h"

namespace erda {

class LabTest : public testing::Test {
 protected:
  using Words = std::vector<std::string>;

  // Fails outside the lab.
  void SetUp() override;

  // What the lab says of itself: ERDA_LAB_<name>.
  [[nodiscard]] static std::string Lab(const std::string& name);
  [[nodiscard]] static std::string Address() { return "verbs://" + Lab("SERVER") + ":7700"; }
  [[nodiscard]] static std::string Address6() { return "verbs://[" + Lab("SERVER6") + "]:7700"; }
  [[nodiscard]] std::string SocketAddress() const { return "shm:" + folder_ + "/socket"; }

  // So that the next server makes a new pool there.
  static void WipeDevice();
  // The program's whole command line.
  [[nodiscard]] static Words Command(const std::string& program, const Words& arguments);
  // On the NVDIMM, at Address() unless `more` says where; when it is ready.
  [[nodiscard]] static std::unique_ptr<Process> StartServer(const Words& more = {});
  // By SIGTERM; it must stop cleanly.
  static void StopServer(Process& server);

  // The test fails, and ends, if it cannot.
  [[nodiscard]] static std::unique_ptr<Client> Connect(const ClientOptions& options = {}) {
    return Connect(Address(), options);
  }
  [[nodiscard]] static std::unique_ptr<Client> Connect(const std::string& address, const ClientOptions& options = {});
  // What the server says of itself, by name.
  [[nodiscard]] static std::map<std::string, std::string> InfoOf(Client& client);

  ~LabTest() override;

 private:
  std::string folder_;
};

// Puts whose value says which of a key's puts it was; what a reader may find of them.
class Ledger {
 public:
  explicit Ledger(uint64_t seed) : seed_(seed) {}
  // The next value for the key.
  [[nodiscard]] std::string Next(const std::string& key);
  // The last value that Next gave is known to be stored.
  void Acknowledge(const std::string& key) { keys_[key].acknowledged = keys_[key].tried; }
  [[nodiscard]] size_t acknowledged() const;
  // Whether the store holds, for each key, the newest put that was acknowledged, or a later one that was tried.
  [[nodiscard]] testing::AssertionResult Check(Client& client) const;

 private:
  struct Key {
    uint64_t tried = 0;
    uint64_t acknowledged = 0;
  };
  [[nodiscard]] std::string Value(const std::string& key, uint64_t number) const;

  uint64_t seed_;
  std::map<std::string, Key> keys_;
};

}  // namespace erda
