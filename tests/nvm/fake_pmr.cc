#include "nvm/fake_pmr.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <fstream>
#include <iterator>

#include "base/unique_fd.h"

namespace erda::nvm {

FakePmr::FakePmr() {
  WriteFile("class", "0x010802\n");
  WriteFile("enable", "1\n");
  WriteFile("resource0", std::string(2 * pmr::kRegisterBytes, '\0'));
  WriteFile("resource4", std::string(kRegionBytes, '\0'));
  std::filesystem::create_hard_link(resource(), Path("resource4_wc"));
  const UniqueFd fd(::open(Path("resource0").c_str(), O_RDWR | O_CLOEXEC));
  void* const at = ::mmap(nullptr, pmr::kRegisterBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) {
    ADD_FAILURE() << "cannot map the registers";
    std::abort();
  }
  registers_ = static_cast<std::byte*>(at);
  Set(pmr::kCapHigh, pmr::kCapHighPmrs);
  Set(pmr::kPmrCap, kCapability);
}

FakePmr::~FakePmr() { ::munmap(registers_, pmr::kRegisterBytes); }

void FakePmr::WriteFile(const std::string& name, std::string_view content) const {
  std::ofstream file(folder_ / name, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  EXPECT_TRUE(file.flush());
}

std::string FakePmr::ReadFile(const std::string& name) const {
  std::ifstream file(folder_ / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace erda::nvm
