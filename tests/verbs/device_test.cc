// A device: its abilities, and the memory registered there.
#include "fabric/verbs/device.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "verbs/fixture.h"

namespace erda::fabric::verbs {
namespace {

class VerbsDeviceTest : public DeviceTest {
 protected:
  Status OpenStatus() { return Device::Open({"127.0.0.1", 7700, {}, {}}, Role::kConnect).status(); }
  void ExpectMissing(std::string_view what) {
    const Status status = OpenStatus();
    EXPECT_EQ(status.code(), Code::kUnavailable);
    EXPECT_NE(status.message().find(what), std::string_view::npos) << status.ToString();
  }
  Status Register() { return device_->Register(memory_, IBV_ACCESS_LOCAL_WRITE).status(); }
};

TEST_F(VerbsDeviceTest, AbilitiesAreThoseOfTheDevice) {
  Open();
  EXPECT_EQ(device_->capabilities().device, "fake0");
  EXPECT_TRUE(device_->capabilities().memory_windows);
  EXPECT_FALSE(device_->capabilities().on_demand_paging);
  EXPECT_FALSE(device_->capabilities().native_flush);
  EXPECT_EQ(device_->capabilities().outstanding_reads, 16U);
  EXPECT_TRUE(device_->limits().windows_have_bounds);
  rdma_.pages_on_demand = true;
  rdma_.flushes_natively = true;
  rdma_.attributes.vendor_id = 0xffffff;  // Soft-RoCE.
  Open();
  EXPECT_TRUE(device_->capabilities().on_demand_paging);
  EXPECT_TRUE(device_->capabilities().native_flush);
  EXPECT_FALSE(device_->limits().windows_have_bounds);
}

TEST_F(VerbsDeviceTest, LibraryWithoutWindowsGivesNoWindows) {
  rdma_.has_windows = false;
  Open();
  EXPECT_FALSE(device_->capabilities().memory_windows);
}

TEST_F(VerbsDeviceTest, DeviceWithoutANecessaryAbilityIsRefused) {
  EXPECT_TRUE(OpenStatus().ok());
  rdma_.attributes.max_srq_wr = 0;
  ExpectMissing("no shared receive queue");
  rdma_.attributes.max_qp_rd_atom = 0;
  ExpectMissing("no RDMA read");
  rdma_.context()->device->transport_type = IBV_TRANSPORT_IWARP;
  ExpectMissing("no write with immediate");
}

TEST_F(VerbsDeviceTest, MemoryThatCannotBePinnedIsPagedOnDemand) {
  rdma_.pages_on_demand = true;
  rdma_.pin_error = EFAULT;
  Open();
  auto mr = device_->Register(memory_, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_TRUE(mr.ok()) << mr.status().ToString();
  EXPECT_EQ(rdma_.last_access, unsigned{IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND});
  ibv_dereg_mr(*mr);
}

TEST_F(VerbsDeviceTest, MemoryThatCanBePinnedIsPinned) {
  rdma_.pages_on_demand = true;
  Open();
  auto mr = device_->Register(memory_, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_TRUE(mr.ok());
  EXPECT_EQ(rdma_.last_access, unsigned{IBV_ACCESS_LOCAL_WRITE});
  ibv_dereg_mr(*mr);
}

TEST_F(VerbsDeviceTest, MemoryThatCannotBePinnedIsRefusedWithoutPaging) {
  rdma_.pin_error = EFAULT;
  Open();
  const Status status = Register();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("pins no pages of a file"), std::string_view::npos) << status.ToString();
}

TEST_F(VerbsDeviceTest, LackOfMemoryIsNoReasonForPaging) {
  rdma_.pages_on_demand = true;
  rdma_.pin_error = ENOMEM;
  Open();
  EXPECT_EQ(Register().code(), Code::kResourceExhausted);
}

TEST_F(VerbsDeviceTest, SecondDomainBelongsToTheSameDevice) {
  Open();
  auto other = Device::WithOtherDomain(device_);
  ASSERT_TRUE(other.ok()) << other.status().ToString();
  EXPECT_EQ((*other)->context(), device_->context());
  EXPECT_NE((*other)->domain(), device_->domain());
  EXPECT_EQ((*other)->capabilities().device, "fake0");
  const auto region = DeviceTest::Register(0, 8, Access::kRemoteRead);
  EXPECT_NE(device_->keys().version(), (*other)->keys().version()) << "each domain has separate keys";
}

TEST_F(VerbsDeviceTest, HostOfTheFabricIsRemembered) {
  Open();
  auto same = device_->Lookup({"127.0.0.1", 8800, {}, {}});
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(FormatAddress(*same, 8800), "verbs://127.0.0.1:8800");
  auto other = device_->Lookup({"127.0.0.2", 8800, {}, {}});
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(FormatAddress(*other, 8800), "verbs://127.0.0.2:8800");
}

TEST_F(VerbsDeviceTest, RegionIsKnownAsLongAsItLives) {
  Open();
  LocalKeyCopy keys(device_->keys());
  auto region = DeviceTest::Register(0, 100, Access::kRemoteReadWrite);
  const LocalKey* const key = keys.Find(region->bytes(), true);
  ASSERT_NE(key, nullptr);
  EXPECT_EQ(key->key, region->mr()->lkey);
  region.reset();
  EXPECT_EQ(keys.Find(std::span(memory_).first(100), true), nullptr);
}

}  // namespace
}  // namespace erda::fabric::verbs
