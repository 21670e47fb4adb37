// libFuzzer's entry points.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/random.h"
#include "fuzz/input.h"
#include "fuzz/targets.h"

// places: how many kinds of places a change may have. Uses a mutation of libFuzzer with a chance of 0.2: libFuzzer
// knows which values the program compared with which.
#define ERDA_FUZZ_TARGET(function, places)                                                                    \
  extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);                            \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);                                    \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {                                   \
    function({data, size});                                                                                   \
    return 0;                                                                                                 \
  }                                                                                                           \
  extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed);  \
  extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) { \
    erda::Random random(seed);                                                                                \
    if (random.Chance(0.2)) return LLVMFuzzerMutate(data, size, max_size);                                    \
    std::string input(reinterpret_cast<const char*>(data), size);                                             \
    for (uint64_t n = random.Between(1, 3); n > 0; --n) erda::fuzz::Mutate(&input, &random, places);          \
    input.resize(std::min(input.size(), max_size));                                                           \
    std::memcpy(data, input.data(), input.size());                                                            \
    return input.size();                                                                                      \
  }
