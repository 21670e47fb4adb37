// libFuzzer's entry point. Any bytes are a conversation, so libFuzzer's mutations are enough.
#include <cstddef>
#include <cstdint>

#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  erda::fuzz::Link({data, size});
  return 0;
}
