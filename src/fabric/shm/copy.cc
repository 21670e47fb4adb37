#include "fabric/shm/copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace erda::fabric::shm {

// The code accesses the shared side by volatile words or vectors, always aligned to their size. So each 8-byte word
// moves in one access, and the compiler neither tears nor repeats it. (An x86 processor moves an aligned vector in
// pieces that are at least whole words.) Wide vectors keep more cache misses under way. The checksum that follows can
// then take its bytes from the store buffer.

namespace {

struct Load {
  template <class Unit>
  static void Move(std::byte* to, const std::byte* shared) {
    const Unit unit = *reinterpret_cast<const volatile Unit*>(shared);
    std::memcpy(to, &unit, sizeof(Unit));
  }
  static const std::byte* SharedOf(const std::byte* /*to*/, const std::byte* from) { return from; }
};

struct Store {
  template <class Unit>
  static void Move(std::byte* shared, const std::byte* from) {
    Unit unit;
    std::memcpy(&unit, from, sizeof(Unit));
    *reinterpret_cast<volatile Unit*>(shared) = unit;
  }
  static const std::byte* SharedOf(const std::byte* to, const std::byte* /*from*/) { return to; }
};

// Returns the number of bytes up to the next multiple of `alignment` on the shared side, but at most `size`.
size_t UpTo(const std::byte* shared, size_t alignment, size_t size) {
  const size_t over = reinterpret_cast<uintptr_t>(shared) % alignment;
  return over == 0 ? 0 : std::min(alignment - over, size);
}

// Copies the last bytes, fewer than 32, without a loop. REQUIRES: the shared side is aligned to 32 bytes.
template <class Way>
inline void MoveTail(std::byte* to, const std::byte* from, size_t size) {
  size_t i = 0;
  const auto move = [&]<class Unit>(Unit) {
    Way::template Move<Unit>(to + i, from + i);
    i += sizeof(Unit);
  };
  if ((size & 2 * sizeof(uint64_t)) != 0) {
    move(uint64_t());
    move(uint64_t());
  }
  if ((size & sizeof(uint64_t)) != 0) move(uint64_t());
  if ((size & sizeof(uint32_t)) != 0) move(uint32_t());
  if ((size & sizeof(uint16_t)) != 0) move(uint16_t());
  if ((size & sizeof(uint8_t)) != 0) move(uint8_t());
}

// Copies by words, and the bytes of broken words at both ends one by one.
template <class Way>
void MoveWords(std::byte* to, const std::byte* from, size_t size) {
  const size_t head = UpTo(Way::SharedOf(to, from), sizeof(uint64_t), size);
  size_t i = 0;
  for (; i < head; ++i) Way::template Move<uint8_t>(to + i, from + i);
  for (; size - i >= sizeof(uint64_t); i += sizeof(uint64_t)) Way::template Move<uint64_t>(to + i, from + i);
  for (; i < size; ++i) Way::template Move<uint8_t>(to + i, from + i);
}

// Copies up to the first multiple of `alignment`, and then the rest.
template <class Way>
[[gnu::noinline]] void MoveUnaligned(std::byte* to, const std::byte* from, size_t size, size_t alignment,
                                     void (*rest)(std::byte*, const std::byte*, size_t)) {
  const size_t head = UpTo(Way::SharedOf(to, from), alignment, size);
  MoveWords<Way>(to, from, head);
  if (head < size) rest(to + head, from + head, size - head);
}

using Copy = void (*)(std::byte*, const std::byte*, size_t);

#if defined(__x86_64__)

bool IsAligned(const std::byte* shared, size_t alignment) {
  return reinterpret_cast<uintptr_t>(shared) % alignment == 0;
}

// (A frame would cost as much as a small copy. So these functions call others only in the end.)
__attribute__((target("avx2"))) void LoadVectors256(std::byte* to, const std::byte* shared, size_t size) {
  constexpr size_t kVector = sizeof(__m256i);
  if (!IsAligned(shared, kVector)) [[unlikely]] {
    return MoveUnaligned<Load>(to, shared, size, kVector, LoadVectors256);
  }
  const size_t end = size - size % kVector;
  for (size_t i = 0; i != end; i += kVector) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), *reinterpret_cast<const volatile __m256i*>(shared + i));
  }
  if (end != size) MoveTail<Load>(to + end, shared + end, size - end);
}

__attribute__((target("avx512f"))) void LoadVectors512(std::byte* to, const std::byte* shared, size_t size) {
  constexpr size_t kVector = sizeof(__m512i);
  if (!IsAligned(shared, kVector)) [[unlikely]] {
    return MoveUnaligned<Load>(to, shared, size, kVector, LoadVectors512);
  }
  const size_t end = size - size % kVector;
  for (size_t i = 0; i != end; i += kVector) {
    _mm512_storeu_si512(to + i, *reinterpret_cast<const volatile __m512i*>(shared + i));
  }
  if (end != size) LoadVectors256(to + end, shared + end, size - end);
}

__attribute__((target("avx2"))) void StoreVectors256(std::byte* shared, const std::byte* from, size_t size) {
  constexpr size_t kVector = sizeof(__m256i);
  if (!IsAligned(shared, kVector)) [[unlikely]] {
    return MoveUnaligned<Store>(shared, from, size, kVector, StoreVectors256);
  }
  const size_t end = size - size % kVector;
  for (size_t i = 0; i != end; i += kVector) {
    const __m256i vector = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    *reinterpret_cast<volatile __m256i*>(shared + i) = vector;
  }
  if (end != size) MoveTail<Store>(shared + end, from + end, size - end);
}

Copy ChooseLoad() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return LoadVectors512;
  return __builtin_cpu_supports("avx2") ? LoadVectors256 : MoveWords<Load>;
}
Copy ChooseStore() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") ? StoreVectors256 : MoveWords<Store>;
}

#else

Copy ChooseLoad() { return MoveWords<Load>; }
Copy ChooseStore() { return MoveWords<Store>; }

#endif

const Copy kLoad = ChooseLoad();
const Copy kStore = ChooseStore();

}  // namespace

void PrefetchShared(const std::byte* shared, size_t size) {
  constexpr size_t kLineBytes = 64;
  const std::byte* const end = shared + std::min(size, kPrefetchBytesMax);
  for (const std::byte* line = shared; line < end; line += kLineBytes) __builtin_prefetch(line);
}

void CopyFromShared(std::byte* to, const std::byte* shared, size_t size) { kLoad(to, shared, size); }

void CopyToShared(std::byte* shared, const std::byte* from, size_t size) { kStore(shared, from, size); }

}  // namespace erda::fabric::shm
