// libFuzzer's entry point: any bytes are a conversation, so its own mutations do.
#include <cstddef>
#include <cstdint>

#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  erda::fuzz::Speak({data, size});
  return 0;
}
