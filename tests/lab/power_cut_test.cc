// In the client's guest of a pair: the server's guest loses its power in the middle of puts, and comes back on its
// NVDIMM.
//   tools/rdma-lab pair --server 'erda-server ...' --client 'lab_tests --gtest_filter=PowerCut.*' --restart
//     --cut server@1 --cut-after 'puts are acknowledged'
#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "lab/fixture.h"

namespace erda {
namespace {

class PowerCut : public LabTest {
 protected:
  // A client, as soon as the server is there.
  static std::unique_ptr<Client> ConnectAtLast(const ClientOptions& options) {
    Result<std::unique_ptr<Client>> client = Status(Code::kInternal);
    WaitUntil(
        [&] {
          client = Client::Connect(Address(), options);
          return client.ok();
        },
        std::chrono::seconds(120));
    EXPECT_TRUE(client.ok()) << client.status().ToString();
    return client.ok() ? *std::move(client) : nullptr;
  }
};

TEST_F(PowerCut, AcknowledgedPutsAreThereAfterIt) {
  ClientOptions options;
  options.timeout = std::chrono::seconds(30);  // a slow machine is no power cut; the cut is noticed sooner
  auto client = ConnectAtLast(options);
  ASSERT_TRUE(client);
  Ledger ledger(11);
  const std::string first = InfoOf(*client)["server_id"];
  constexpr int kPutsBeforeCut = 50;
  int puts = 0;
  bool cut = false;
  // Until the power is cut, and a while.
  for (; !cut && puts < 10'000'000; ++puts) {
    const std::string key = fmt::format("key{}", puts % 97);
    const Status status = client->Put(key, ledger.Next(key));
    if (status.ok()) {
      ledger.Acknowledge(key);
      if (puts + 1 == kPutsBeforeCut) {
        fmt::print("{} puts are acknowledged\n", kPutsBeforeCut);  // the lab waits for this line
        std::fflush(stdout);
      }
    } else {
      ASSERT_TRUE(status.code() == Code::kUnavailable || status.code() == Code::kTimeout) << status.ToString();
      cut = true;
    }
  }
  ASSERT_TRUE(cut) << "the power was to be cut";
  ASSERT_GT(puts, kPutsBeforeCut) << "it was cut too early";

  client = ConnectAtLast(options);
  ASSERT_TRUE(client);
  EXPECT_NE(InfoOf(*client)["server_id"], first) << "it is another life of the server";
  EXPECT_TRUE(ledger.Check(*client));
  for (int i = 0; i < 200; ++i) {
    const std::string key = fmt::format("key{}", i);
    ASSERT_TRUE(client->Put(key, ledger.Next(key)).ok());
    ledger.Acknowledge(key);
  }
  EXPECT_TRUE(ledger.Check(*client));
  fmt::print("{} puts before the cut\n", puts);
}

}  // namespace
}  // namespace erda
