// What a client of RDMA can write with the keys that it was told, and with others.
#include <string>
#include <string_view>

#include "e2e/raw_peer.h"
#include "lab/fixture.h"

namespace erda {
namespace {

class RightsLab : public LabTest {
 protected:
  void SetUp() override {
    LabTest::SetUp();
    if (!HasFatalFailure()) WipeDevice();
  }
  // Where these bytes are in the pool, by a client's own Reads.
  static uint64_t OffsetOf(std::string_view bytes) {
    RawPeer reader(Address());
    constexpr size_t kPiece = 512 << 10;
    const uint64_t size = reader.offered()[format::kPoolRegion].size;
    for (uint64_t at = 0; at + kPiece <= size; at += kPiece - bytes.size()) {
      const auto piece = reader.Read(format::kPoolRegion, at, kPiece);
      if (!piece) break;
      const size_t found = piece->find(bytes);
      if (found != std::string::npos) return at + found;
    }
    ADD_FAILURE() << "it is not in the pool";
    return 0;
  }
};

// By every region that it was offered.
TEST_F(RightsLab, AClientWritesNowhereIntoThePool) {
  for (const std::string who : {"same-user", "nobody"}) {
    SCOPED_TRACE(who);
    WipeDevice();
    const auto server = StartServer({"--pool-writes", who});
    const auto honest = Connect();
    ASSERT_TRUE(honest);
    const std::string settled(3000, 's');
    ASSERT_TRUE(honest->Put("settled", settled).ok());
    const uint64_t at = OffsetOf(settled);
    {
      RawPeer peer(Address());
      ASSERT_EQ(peer.offered().size(), 4U);
      EXPECT_EQ(peer.offered()[format::kPoolRegion].access, fabric::Access::kRemoteRead);
      EXPECT_EQ(peer.offered()[format::kControlRegion].access, fabric::Access::kRemoteRead);
      EXPECT_LT(peer.offered()[format::kStagingRegion].size, peer.offered()[format::kPoolRegion].size);
    }
    struct Place {
      uint32_t region;
      uint64_t offset;
    };
    for (const auto& [region, offset] : {Place{format::kPoolRegion, at},
                                         {format::kPoolRegion, 0},
                                         {format::kControlRegion, 0},
                                         {format::kStagingRegion, uint64_t{1} << 30}}) {
      SCOPED_TRACE(std::to_string(region) + " at " + std::to_string(offset));
      RawPeer peer(Address());
      peer.Write(region, offset, "overwritten");
      EXPECT_TRUE(peer.IsClosed());
      EXPECT_EQ(peer.error().code(), Code::kPermissionDenied) << peer.error().ToString();
      const auto found = honest->Get("settled");
      ASSERT_TRUE(found.ok()) << found.status().ToString();
      EXPECT_TRUE(*found == settled);
    }
    EXPECT_TRUE(honest->Put("afterwards", std::string(50'000, 'a')).ok());
    EXPECT_EQ(honest->stats().reconnects, 0U);
    StopServer(*server);
  }
}

// Where the operator allows it, the reserve path is there.
TEST_F(RightsLab, OnlyWhoIsAllowedToReserves) {
  ClientOptions reserves;
  reserves.put_path = PutPath::kReserve;
  for (const std::string who : {"same-user", "everybody"}) {
    WipeDevice();
    const auto server = StartServer({"--pool-writes", who});
    const auto client = Connect(reserves);
    ASSERT_TRUE(client);
    EXPECT_EQ(client->Put("key", "value").code(), who == "everybody" ? Code::kOk : Code::kPermissionDenied);
    StopServer(*server);
  }
}

}  // namespace
}  // namespace erda
