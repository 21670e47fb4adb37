#include "bench/micro/key_hash.h"

#include <memory>
#include <string>

#include "base/hash.h"
#include "bench/micro/inputs.h"

namespace erda::micro {

namespace {

constexpr HashSeed kSeed = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
constexpr size_t kKeyBytes = 16;
// SipHash-1-3 of the key, computed by another program.
constexpr uint64_t kHash = 0xf231a216f146769d;

class KeyHash {
 public:
  static Result<std::unique_ptr<KeyHash>> Make() { return std::make_unique<KeyHash>(); }

  void Run() {
    benchmark::DoNotOptimize(key_.data());
    hash_ = HashKey(key_, kSeed);
    benchmark::DoNotOptimize(hash_);
  }
  [[nodiscard]] Status Check() const { return WrongUnless(hash_ == kHash); }

 private:
  const std::string key_ = ValueOf(kKeyBytes);
  uint64_t hash_ = 0;
};

}  // namespace

void AddKeyHashes(Suite& suite) { suite.Add(NameOf("key_hash", kKeyBytes), 0, KeyHash::Make); }

}  // namespace erda::micro
