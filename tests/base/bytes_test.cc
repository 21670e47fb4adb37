#include "base/bytes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace erda {
namespace {

static_assert(AlignUp(0, 16) == 0 && AlignUp(1, 16) == 16 && AlignUp(16, 16) == 16 && AlignUp(17, 16) == 32);
static_assert(AlignDown(0, 16) == 0 && AlignDown(15, 16) == 0 && AlignDown(16, 16) == 16 && AlignDown(31, 16) == 16);
static_assert(AlignUp((uint64_t{1} << 63) + 1, uint64_t{1} << 62) == (uint64_t{3} << 62));

bool IsOpen(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(BytesTest, AStructureIsReadAtAnyAlignment) {
  alignas(8) std::array<std::byte, 16> bytes{};
  for (size_t at = 0; at <= 8; ++at) {
    bytes = {};
    const uint64_t value = 0x0102030405060708 * (at + 1);
    std::memcpy(bytes.data() + at, &value, sizeof(value));
    EXPECT_EQ(LoadAs<uint64_t>(std::span(bytes).subspan(at)), value);
  }
}

TEST(BytesTest, BytesOfAreLittleEndianAndInPlace) {
  const uint32_t word = 0x04030201;
  const auto bytes = BytesOf(word);
  ASSERT_EQ(bytes.size(), 4U);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(bytes[i], std::byte(i + 1));
  EXPECT_EQ(static_cast<const void*>(bytes.data()), &word);
}

TEST(BytesTest, StringsAndBytesAreTheSameMemory) {
  const std::string_view text("a\0b", 3);
  EXPECT_EQ(AsString(AsBytes(text)), text);
  EXPECT_EQ(AsBytes(text).size(), 3U);
  EXPECT_TRUE(AsBytes("").empty());
}

TEST(ErrnoStatusTest, TheMessageNamesTheThingAndTheReason) {
  EXPECT_EQ(ErrnoStatus("cannot open /x", EACCES).ToString(), "permission denied: cannot open /x: Permission denied");
}

TEST(ErrnoStatusTest, StatusHasTheErrorNumber) { EXPECT_EQ(ErrnoStatus("x", EIO).error_number(), EIO); }

TEST(ErrnoStatusTest, CodeFitsTheErrorNumber) {
  for (const int error : {EACCES, EPERM}) EXPECT_EQ(ErrnoStatus("x", error).code(), Code::kPermissionDenied);
  for (const int error : {ENOENT, ENOTDIR, ENAMETOOLONG, EISDIR, EFBIG})
    EXPECT_EQ(ErrnoStatus("x", error).code(), Code::kInvalidArgument);
  for (const int error : {ECONNREFUSED, ECONNRESET, EPIPE})
    EXPECT_EQ(ErrnoStatus("x", error).code(), Code::kUnavailable);
  for (const int error : {ENOMEM, ENOSPC, EMFILE, ENFILE, EDQUOT})
    EXPECT_EQ(ErrnoStatus("x", error).code(), Code::kResourceExhausted);
  EXPECT_EQ(ErrnoStatus("x", EBADF).code(), Code::kInternal);
}

TEST(ErrnoStatusTest, TheErrorNumberOfTheLastCallIsTheDefault) {
  errno = ENOSPC;
  const Status status = ErrnoStatus("x");
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_EQ(status.error_number(), ENOSPC);
}

TEST(UniqueFdTest, TheLastOwnerClosesTheDescriptor) {
  const int raw = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(raw, 0);
  {
    UniqueFd first(raw);
    UniqueFd second = std::move(first);
    EXPECT_EQ(second.get(), raw);
    EXPECT_EQ(first.get(), -1);  // NOLINT(bugprone-use-after-move): that is the promise
    EXPECT_FALSE(first);
    EXPECT_TRUE(IsOpen(raw));
  }
  EXPECT_FALSE(IsOpen(raw));
}

TEST(UniqueFdTest, AssignmentClosesTheEarlierDescriptor) {
  const int first = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int second = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  UniqueFd owner(first);
  owner = UniqueFd(second);
  EXPECT_FALSE(IsOpen(first));
  EXPECT_TRUE(IsOpen(second));
  auto& same = owner;
  owner = std::move(same);
  EXPECT_EQ(owner.get(), second);
  EXPECT_TRUE(IsOpen(second));
  owner.reset();
  EXPECT_FALSE(owner);
  EXPECT_FALSE(IsOpen(second));
}

TEST(ClockTest, TheSteadyClockNeverGoesBack) {
  const Clock& clock = SteadyClock::Instance();
  Nanoseconds last = clock.Now();
  for (int i = 0; i < 1000; ++i) {
    const Nanoseconds now = clock.Now();
    ASSERT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace erda
