#include "erda/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace erda {
namespace {

Status Failed() { return {Code::kResourceExhausted, "the log of shard 0 is full"}; }

TEST(StatusTest, DefaultStatusIsOk) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), Code::kOk);
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(status.ToString(), "ok");
}

TEST(StatusTest, ToStringNamesTheCodeAndThenTheMessage) {
  EXPECT_EQ(Failed().ToString(), "resource exhausted: the log of shard 0 is full");
  EXPECT_EQ(Status(Code::kNotFound).ToString(), "not found");
  EXPECT_EQ(Status(Code::kTimeout, "").ToString(), "timeout");
  EXPECT_EQ(Status(Code::kInternal, "a: b").ToString(), "internal: a: b");
}

TEST(StatusTest, EveryCodeHasItsOwnNameAndNumber) {
  constexpr std::pair<Code, std::string_view> kCodes[] = {
      {Code::kOk, "ok"},
      {Code::kNotFound, "not found"},
      {Code::kInvalidArgument, "invalid argument"},
      {Code::kConflict, "conflict"},
      {Code::kResourceExhausted, "resource exhausted"},
      {Code::kUnavailable, "unavailable"},
      {Code::kTimeout, "timeout"},
      {Code::kPermissionDenied, "permission denied"},
      {Code::kCorruption, "corruption"},
      {Code::kInternal, "internal"},
  };
  int number = 0;
  for (const auto& [code, name] : kCodes) {
    EXPECT_EQ(static_cast<int>(code), number++);  // The numbers travel in messages.
    EXPECT_EQ(CodeName(code), name);
    EXPECT_EQ(Status(code).ok(), code == Code::kOk);
  }
}

TEST(StatusTest, ACodeOutOfRangeIsUnknown) {
  EXPECT_EQ(CodeName(static_cast<Code>(10)), "unknown");
  EXPECT_EQ(CodeName(static_cast<Code>(255)), "unknown");
}

TEST(StatusTest, CopyHasASeparateMessage) {
  Status original = Failed();
  const Status copy = original;
  EXPECT_EQ(copy.code(), original.code());
  EXPECT_EQ(copy.message(), original.message());
  EXPECT_NE(copy.message().data(), original.message().data());
  original = Status();
  EXPECT_TRUE(original.ok());
  EXPECT_EQ(original.message(), "");
  EXPECT_EQ(copy.message(), "the log of shard 0 is full");
}

TEST(StatusTest, AssignmentReplacesCodeAndMessage) {
  Status status(Code::kTimeout, "old");
  status = Failed();
  EXPECT_EQ(status.ToString(), Failed().ToString());
  const Status bare(Code::kConflict);
  status = bare;
  EXPECT_EQ(status.ToString(), "conflict");
}

TEST(StatusTest, AssigningAStatusToItselfChangesNothing) {
  Status status = Failed();
  const Status& same = status;
  status = same;
  EXPECT_EQ(status.ToString(), Failed().ToString());
}

TEST(StatusTest, AMoveTakesTheMessageAlong) {
  Status status = Failed();
  const char* text = status.message().data();
  const Status moved = std::move(status);
  EXPECT_EQ(moved.ToString(), Failed().ToString());
  EXPECT_EQ(moved.message().data(), text);  // Not copied.
  static_assert(std::is_nothrow_move_constructible_v<Status>);
  static_assert(std::is_nothrow_move_assignable_v<Status>);
}

TEST(StatusTest, ErrorNumberGoesWithTheMessage) {
  EXPECT_EQ(Failed().error_number(), 0);
  EXPECT_EQ(Status(Code::kInternal).error_number(), 0);
  Status status(Code::kInternal, "the disk is broken", EIO);
  EXPECT_EQ(status.error_number(), EIO);
  const Status copy = status;
  EXPECT_EQ(copy.error_number(), EIO);
  const Status moved = std::move(status);
  EXPECT_EQ(moved.error_number(), EIO);
  status = moved;
  EXPECT_EQ(status.error_number(), EIO);
  status = Failed();
  EXPECT_EQ(status.error_number(), 0);
}

TEST(StatusTest, AMessageMayHoldAnyBytes) {
  const std::string bytes("a\0b\xff", 4);
  EXPECT_EQ(Status(Code::kInternal, bytes).message(), bytes);
}

TEST(ResultTest, AResultOfAValueIsOk) {
  const Result<int> result = 7;
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result.status().ok());
  EXPECT_EQ(*result, 7);
  EXPECT_EQ(result.value(), 7);
}

TEST(ResultTest, AResultOfAFailureHasItsStatus) {
  const Result<std::string> result = Failed();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().ToString(), Failed().ToString());
}

TEST(ResultTest, OkStatusMakesAFailedResult) {
  const Result<int> result = Status();
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), Code::kInternal);
}

TEST(ResultTest, EmptyValueIsAValue) {
  const Result<std::unique_ptr<int>> result = std::unique_ptr<int>();
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(*result, nullptr);
}

TEST(ResultTest, MoveOnlyValueCanBeStoredAndTaken) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  ASSERT_TRUE(result.ok());
  int* at = result->get();
  Result<std::unique_ptr<int>> moved = std::move(result);
  const std::unique_ptr<int> taken = *std::move(moved);
  EXPECT_EQ(taken.get(), at);
  EXPECT_EQ(*taken, 5);
  static_assert(!std::is_copy_constructible_v<Result<std::unique_ptr<int>>>);
}

TEST(ResultTest, TheValueCanBeChangedInPlace) {
  Result<std::string> result = std::string("ab");
  result->push_back('c');
  *result += "d";
  result.value() += "e";
  EXPECT_EQ(*result, "abcde");
}

TEST(ResultTest, ACopyIsIndependent) {
  Result<std::string> result = std::string("ab");
  const Result<std::string> copy = result;
  result->clear();
  EXPECT_EQ(*copy, "ab");
}

TEST(ResultTest, AssignmentTurnsAFailureIntoAValueAndBack) {
  Result<int> result = Failed();
  result = 3;
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result.status().ok());
  result = Failed();
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), Code::kResourceExhausted);
}

TEST(ResultDeathTest, TheValueOfAFailureEndsTheProgramWithTheStatus) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Result<int> result = Failed();
  EXPECT_DEATH(static_cast<void>(result.value()), "resource exhausted: the log of shard 0 is full");
  EXPECT_DEATH(static_cast<void>(*result), "failed Result");
}

}  // namespace
}  // namespace erda
