#include "fabric/verbs/own_memory.h"

#include <cstdlib>
#include <cstring>

#include "base/bytes.h"
#include "fabric/verbs/device.h"

namespace erda::fabric::verbs {

Result<OwnMemory> OwnMemory::Create(Device& device, size_t bytes, unsigned access) {
  constexpr size_t kPage = 4096;  // The memory takes whole pages, since a registration covers whole pages.
  bytes = AlignUp(bytes, kPage);
  OwnMemory memory;
  memory.data_ = static_cast<std::byte*>(std::aligned_alloc(kPage, bytes));
  if (memory.data_ == nullptr) return Status(Code::kResourceExhausted, "there is no memory for a channel");
  std::memset(memory.data_, 0, bytes);
  auto mr = device.Register({memory.data_, bytes}, access);
  if (!mr.ok()) return mr.status();
  memory.mr_ = *mr;
  return memory;
}

OwnMemory& OwnMemory::operator=(OwnMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(mr_, other.mr_);
  return *this;
}

OwnMemory::~OwnMemory() {
  if (mr_ != nullptr) ibv_dereg_mr(mr_);
  std::free(data_);  // NOLINT(clang-analyzer-unix.Malloc): it takes an optional's value to be destroyed twice.
}

}  // namespace erda::fabric::verbs
