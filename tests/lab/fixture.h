// Servers and clients over Soft-RoCE, with the pool on an NVDIMM. The tests run in the lab (tools/rdma-lab).
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

  // Returns the lab's variable ERDA_LAB_<name>, or an empty text.
  [[nodiscard]] static std::string Lab(const std::string& name);
  [[nodiscard]] static std::string Address() { return "verbs://" + Lab("SERVER") + ":7700"; }
  [[nodiscard]] static std::string Address6() { return "verbs://[" + Lab("SERVER6") + "]:7700"; }
  [[nodiscard]] std::string SocketAddress() const { return "shm:" + folder_ + "/socket"; }

  // Wipes the NVDIMM, so that the next server makes a new pool there.
  static void WipeDevice();
  // Returns the whole command line of the program.
  [[nodiscard]] static Words Command(const std::string& program, const Words& arguments);
  // Starts a server with its pool on the NVDIMM, and waits until it is ready. It listens at Address(), unless `more`
  // has another address.
  [[nodiscard]] static std::unique_ptr<Process> StartServer(const Words& more = {});
  // Stops the server by SIGTERM. The test fails if the server does not stop cleanly.
  static void StopServer(Process& server);

  // Returns null, and fails the test, if the client cannot connect.
  [[nodiscard]] static std::unique_ptr<Client> Connect(const ClientOptions& options = {}) {
    return Connect(Address(), options);
  }
  [[nodiscard]] static std::unique_ptr<Client> Connect(const std::string& address, const ClientOptions& options = {});
  // Returns the numbers and texts that the server tells its clients, by name.
  [[nodiscard]] static std::map<std::string, std::string> InfoOf(Client& client);

  ~LabTest() override;

 private:
  std::string folder_;
};

// A record of puts, which knows the values that a reader may find. A value names the number of its put.
class Ledger {
 public:
  explicit Ledger(uint64_t seed) : seed_(seed) {}
  // Returns the value of the key's next put.
  [[nodiscard]] std::string Next(const std::string& key);
  // The server has acknowledged the put of the last value from Next.
  void Acknowledge(const std::string& key) { keys_[key].acknowledged = keys_[key].tried; }
  [[nodiscard]] size_t acknowledged() const;
  // Checks that each key has the value of its newest acknowledged put, or of a later put that was tried.
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
