// Status and Result: every call returns one. No function of Erda throws or exits. A failed call returns a Status with a
// code for the caller to act on, and a message that names the thing that failed.
#pragma once

// GCC 10 says 201709 for -std=c++20.
#if __cplusplus < 201709L
#error "Erda needs C++20: compile with -std=c++20 or later, in CMake with CMAKE_CXX_STANDARD 20"
#endif
#if __cplusplus >= 201709L

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace erda {

// The code tells the caller what it can do.
enum class Code : uint8_t {
  kOk = 0,
  kNotFound = 1,           // The key has no value. This is no failure of the store.
  kInvalidArgument = 2,    // The call can never succeed in this form. Change the argument that the message names.
  kConflict = 3,           // A condition of the call did not hold. Read again and decide.
  kResourceExhausted = 4,  // There is no room now. Delete something, wait for others to finish, or use a larger pool.
  // The server cannot be reached, or went away. Try again. A put or delete that was in flight may or may not have taken
  // effect.
  kUnavailable = 5,
  kTimeout = 6,           // No answer came in time. Proceed as with kUnavailable.
  kPermissionDenied = 7,  // The peer, the token or the file's rights forbid the call.
  kCorruption = 8,        // Stored bytes are damaged. Erda returns no older value, since that would be wrong.
  kInternal = 9,          // A bug in Erda, or a failure of the machine for which no other code fits.
};

inline constexpr std::string_view CodeName(Code code) {
  constexpr std::string_view kNames[] = {
      "ok",          "not found", "invalid argument",  "conflict",   "resource exhausted",
      "unavailable", "timeout",   "permission denied", "corruption", "internal"};
  const auto index = static_cast<size_t>(code);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

// The outcome of a call. A Status that is ok or has no message does not allocate. If there is no memory for the
// message, the Status has neither message nor error number.
class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  explicit Status(Code code) noexcept : code_(code) {}
  // error_number: that of the system call that failed. 0: no such call failed, or its number is unknown.
  Status(Code code, std::string message, int error_number = 0) noexcept
      : code_(code), details_(Keep({std::move(message), error_number})) {}

  Status(const Status& other) noexcept : code_(other.code_), details_(Copy(other)) {}
  Status& operator=(const Status& other) noexcept {
    if (this != &other) {
      code_ = other.code_;
      details_ = Copy(other);
    }
    return *this;
  }
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  ~Status() = default;

  [[nodiscard]] bool ok() const noexcept { return code_ == Code::kOk; }
  [[nodiscard]] Code code() const noexcept { return code_; }
  // Returns the message. Its bytes are followed by a zero.
  [[nodiscard]] std::string_view message() const noexcept {
    if (details_) return details_->message;
    return code_ == Code::kResourceExhausted ? "no room, or no memory" : "";
  }
  // Returns the error number of the system call that failed, here or at the server, as errno has it: for instance EIO.
  // Returns 0 if no such call failed, or if its number is unknown. The message has the error in words.
  [[nodiscard]] int error_number() const noexcept { return details_ ? details_->error_number : 0; }

  // Returns code and message: "resource exhausted: the log of shard 0 is full".
  [[nodiscard]] std::string ToString() const {
    std::string text(CodeName(code_));
    if (!message().empty()) text.append(": ").append(message());
    return text;
  }

 private:
  struct Details {
    std::string message;
    int error_number;
  };

  static std::unique_ptr<const Details> Keep(Details&& details) noexcept {
    return std::unique_ptr<const Details>(new (std::nothrow) Details(std::move(details)));
  }
  static std::unique_ptr<const Details> Copy(const Status& other) noexcept try {
    return other.details_ ? Keep(Details(*other.details_)) : nullptr;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }

  Code code_ = Code::kOk;
  std::unique_ptr<const Details> details_;
};

// A value, or the Status of the failure. Asking for the value of a failed Result is a bug of the caller: it prints the
// status to stderr and aborts the process.
template <class T>
class [[nodiscard]] Result {
 public:
  // Implicit on purpose, so that a function can return either.
  Result(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    if (status_.ok()) status_ = Status(Code::kInternal, "a Result was made from an ok Status");
  }

  [[nodiscard]] bool ok() const noexcept { return value_.has_value(); }
  [[nodiscard]] const Status& status() const noexcept { return status_; }

  [[nodiscard]] T& value() & {
    RequireValue();
    return *value_;
  }
  [[nodiscard]] const T& value() const& {
    RequireValue();
    return *value_;
  }
  [[nodiscard]] T&& value() && {
    RequireValue();
    return *std::move(value_);
  }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  void RequireValue() const {
    if (value_.has_value()) return;
    std::fprintf(stderr, "erda: value() of a failed Result: %s\n", status_.ToString().c_str());
    std::abort();
  }

  std::optional<T> value_;
  Status status_;
};

}  // namespace erda

#endif  // C++20
