// The keys and values of the works. They are the same in each run.
#pragma once

#include <fmt/core.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "erda/status.h"

namespace erda::micro {

inline constexpr std::array<size_t, 3> kSizes = {64, 1024, 16384};
inline constexpr std::string_view kWrong = "the work gave a wrong result";

// Returns the name of a work with values of this size, such as "shm_put_64".
inline std::string NameOf(std::string_view work, size_t bytes) { return fmt::format("{}_{}", work, bytes); }

inline std::string ValueOf(size_t bytes) {
  Random random(bytes);
  std::string value(bytes, '\0');
  for (char& byte : value) byte = static_cast<char>(random.Next());
  return value;
}

inline Status WrongUnless(bool right) { return right ? Status() : Status(Code::kInternal, std::string(kWrong)); }

// 64 keys of 16 bytes, in turn.
class Keys {
 public:
  static constexpr size_t kNumber = 64;

  Keys() {
    for (size_t i = 0; i < kNumber; ++i) keys_.push_back(fmt::format("micro-key-{:06}", i));
  }
  const std::string& Next() { return keys_[next_++ % kNumber]; }
  [[nodiscard]] const std::vector<std::string>& all() const { return keys_; }

 private:
  std::vector<std::string> keys_;
  size_t next_ = 0;
};

}  // namespace erda::micro
