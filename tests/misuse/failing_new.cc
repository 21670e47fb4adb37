#include "misuse/failing_new.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace erda {

thread_local int64_t left = -1;
thread_local bool fails_once = true;

}  // namespace erda

namespace {

using erda::fails_once;
using erda::left;

bool Fails() {
  if (left < 0) return false;
  if (left > 0) {
    --left;
    return false;
  }
  if (fails_once) left = -1;
  return true;
}

void* Allocate(size_t size, size_t alignment) {
  if (Fails()) return nullptr;
  return alignment <= alignof(std::max_align_t)
             ? std::malloc(size)
             : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void* AllocateOrThrow(size_t size, size_t alignment) {
  void* memory = Allocate(size == 0 ? 1 : size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t size) { return AllocateOrThrow(size, 1); }
void* operator new[](size_t size) { return AllocateOrThrow(size, 1); }
void* operator new(size_t size, std::align_val_t to) { return AllocateOrThrow(size, static_cast<size_t>(to)); }
void* operator new[](size_t size, std::align_val_t to) { return AllocateOrThrow(size, static_cast<size_t>(to)); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return Allocate(size == 0 ? 1 : size, 1); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return Allocate(size == 0 ? 1 : size, 1); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
