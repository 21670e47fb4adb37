#include "bench/micro/checksum.h"

#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "bench/micro/inputs.h"

namespace erda::micro {

namespace {

class Checksum {
 public:
  static Result<std::unique_ptr<Checksum>> Make(size_t bytes) { return std::make_unique<Checksum>(bytes); }
  explicit Checksum(size_t bytes) : value_(ValueOf(bytes)) {}

  void Run() {
    crc_ = Crc32c(0, AsBytes(value_));
    benchmark::DoNotOptimize(crc_);
  }
  [[nodiscard]] Status Check() const { return WrongUnless(crc_ == Crc32cByTable(0, AsBytes(value_))); }

 private:
  const std::string value_;
  uint32_t crc_ = 0;
};

}  // namespace

void AddChecksums(Suite& suite) {
  for (const size_t bytes : kSizes) {
    suite.Add(NameOf("checksum", bytes), 0, [bytes] { return Checksum::Make(bytes); });
  }
}

}  // namespace erda::micro
