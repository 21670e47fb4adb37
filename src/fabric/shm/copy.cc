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

template <class Unit>
void LoadUnit(std::byte* to, const std::byte* shared) {
  const Unit unit = *reinterpret_cast<const volatile Unit*>(shared);
  std::memcpy(to, &unit, sizeof(Unit));
}

template <class Unit>
void StoreUnit(std::byte* shared, const std::byte* from) {
  Unit unit;
  std::memcpy(&unit, from, sizeof(Unit));
  *reinterpret_cast<volatile Unit*>(shared) = unit;
}

// Returns the number of bytes up to the next multiple of `alignment` on the shared side, but at most `size`.
size_t UpTo(const std::byte* shared, size_t alignment, size_t size) {
  const size_t over = reinterpret_cast<uintptr_t>(shared) % alignment;
  return over == 0 ? 0 : std::min(alignment - over, size);
}

// Copies by words, and by bytes at the ends without a whole word.
template <void (*MoveByte)(std::byte*, const std::byte*), void (*MoveWord)(std::byte*, const std::byte*),
          class ToShared>
void MoveWords(std::byte* to, const std::byte* from, size_t size, ToShared) {
  const std::byte* shared = ToShared::value ? to : from;
  size_t i = 0;
  for (const size_t head = UpTo(shared, sizeof(uint64_t), size); i < head; ++i) MoveByte(to + i, from + i);
  for (; size - i >= sizeof(uint64_t); i += sizeof(uint64_t)) MoveWord(to + i, from + i);
  for (; i < size; ++i) MoveByte(to + i, from + i);
}

void LoadWords(std::byte* to, const std::byte* shared, size_t size) {
  MoveWords<LoadUnit<uint8_t>, LoadUnit<uint64_t>>(to, shared, size, std::false_type());
}
void StoreWords(std::byte* shared, const std::byte* from, size_t size) {
  MoveWords<StoreUnit<uint8_t>, StoreUnit<uint64_t>>(shared, from, size, std::true_type());
}

using Copy = void (*)(std::byte*, const std::byte*, size_t);

#if defined(__x86_64__)

__attribute__((target("avx512f"))) void LoadVectors512(std::byte* to, const std::byte* shared, size_t size) {
  size_t i = UpTo(shared, sizeof(__m512i), size);
  LoadWords(to, shared, i);
  for (; size - i >= sizeof(__m512i); i += sizeof(__m512i)) {
    _mm512_storeu_si512(to + i, *reinterpret_cast<const volatile __m512i*>(shared + i));
  }
  LoadWords(to + i, shared + i, size - i);
}

__attribute__((target("avx2"))) void LoadVectors256(std::byte* to, const std::byte* shared, size_t size) {
  size_t i = UpTo(shared, sizeof(__m256i), size);
  LoadWords(to, shared, i);
  for (; size - i >= sizeof(__m256i); i += sizeof(__m256i)) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), *reinterpret_cast<const volatile __m256i*>(shared + i));
  }
  LoadWords(to + i, shared + i, size - i);
}

__attribute__((target("avx2"))) void StoreVectors256(std::byte* shared, const std::byte* from, size_t size) {
  size_t i = UpTo(shared, sizeof(__m256i), size);
  StoreWords(shared, from, i);
  for (; size - i >= sizeof(__m256i); i += sizeof(__m256i)) {
    const __m256i vector = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    *reinterpret_cast<volatile __m256i*>(shared + i) = vector;
  }
  StoreWords(shared + i, from + i, size - i);
}

Copy ChooseLoad() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return LoadVectors512;
  return __builtin_cpu_supports("avx2") ? LoadVectors256 : LoadWords;
}
Copy ChooseStore() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") ? StoreVectors256 : StoreWords;
}

#else

Copy ChooseLoad() { return LoadWords; }
Copy ChooseStore() { return StoreWords; }

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
