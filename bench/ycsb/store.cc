#include "bench/ycsb/store.h"

#include <charconv>
#include <chrono>
#include <string>
#include <thread>

namespace erda::bench {

// The idle server settles a put on the reserve path without a commit a little later.
Result<uint64_t> ErdaStore::ServerNvmBytes() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for (;;) {
    const auto info = client_->ServerInfo();
    if (!info.ok()) return info.status();
    uint64_t bytes = 0;
    uint64_t in_flight = 0;
    for (const auto& [name, text] : *info) {
      uint64_t number = 0;
      std::from_chars(text.data(), text.data() + text.size(), number);
      if (name == "nvm_bytes_written" || name == "clean_nvm_bytes") bytes += number;
      if (name == "in_flight") in_flight = number;
    }
    if (in_flight == 0) return bytes;
    if (std::chrono::steady_clock::now() > deadline) {
      return Status(Code::kTimeout, "the server still has " + std::to_string(in_flight) + " puts in flight");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace erda::bench
