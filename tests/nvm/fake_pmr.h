// The folder of a PCI device in sysfs, made of ordinary files: an NVMe disk with a persistent memory region. The test
// plays the device: it sets registers, and sees what the code stores there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/temporary_folder.h"
#include "nvm/pmr_registers.h"

namespace erda::nvm {

class FakePmr {
 public:
  static constexpr uint64_t kRegionBytes = 1 << 20;
  static constexpr uint32_t kResource = 4;

  // A region that is ready, persists at a read of PMRSTS, and takes no time to become ready.
  FakePmr();
  FakePmr(const FakePmr&) = delete;
  FakePmr& operator=(const FakePmr&) = delete;
  ~FakePmr();

  [[nodiscard]] std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::string resource() const { return Path("resource4"); }
  void WriteFile(const std::string& name, std::string_view content) const;
  [[nodiscard]] std::string ReadFile(const std::string& name) const;

  // Any thread may call these.
  [[nodiscard]] uint32_t Get(uint64_t at) const { return Word(at).load(); }
  void Set(uint64_t at, uint32_t value) { Word(at).store(value); }

  static constexpr uint32_t kCapability = kResource << 5 | 2U << 10;  // PMRCAP: where it is, what persists.
  static constexpr uint32_t kNotReady = 1U << 8;                      // PMRSTS.
  static constexpr uint32_t kUnreliable = 3U << 9;                    // PMRSTS.

 private:
  [[nodiscard]] std::atomic_ref<uint32_t> Word(uint64_t at) const {
    return std::atomic_ref(*reinterpret_cast<uint32_t*>(registers_ + at));
  }
  const TemporaryFolder folder_;
  std::byte* registers_ = nullptr;
};

}  // namespace erda::nvm
