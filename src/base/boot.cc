#include "base/boot.h"

#include <fcntl.h>
#include <unistd.h>

#include <string_view>

#include "base/unique_fd.h"

namespace erda {

std::array<uint8_t, 16> BootOfMachine() {
  std::array<uint8_t, 16> boot{};
  const UniqueFd fd(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  std::array<char, 37> text{};  // 36 characters: 32 hexadecimal digits in five groups.
  if (!fd || ::read(fd.get(), text.data(), text.size()) < 36) return boot;
  size_t digits = 0;
  for (const char c : std::string_view(text.data(), 36)) {
    if (c == '-') continue;
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0 || digits == 2 * boot.size()) return {};
    boot[digits / 2] = static_cast<uint8_t>(boot[digits / 2] << 4 | digit);
    ++digits;
  }
  return digits == 2 * boot.size() ? boot : std::array<uint8_t, 16>{};
}

}  // namespace erda
