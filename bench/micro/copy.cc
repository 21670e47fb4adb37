#include "bench/micro/copy.h"

#include <memory>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/shared_memory.h"
#include "bench/micro/inputs.h"
#include "fabric/shm/copy.h"

namespace erda::micro {

namespace {

enum class Direction : uint8_t { kToShared, kFromShared };

class SharedCopy {
 public:
  static Result<std::unique_ptr<SharedCopy>> Make(Direction direction, size_t bytes) {
    auto shared = SharedMemory::Create("erda-micro", bytes);
    if (!shared.ok()) return shared.status();
    return std::make_unique<SharedCopy>(direction, bytes, *std::move(shared));
  }
  SharedCopy(Direction direction, size_t bytes, SharedMemory shared)
      : direction_(direction), value_(ValueOf(bytes)), private_(bytes, '\0'), shared_(std::move(shared)) {
    if (direction_ == Direction::kFromShared) {
      fabric::shm::CopyToShared(shared_.bytes().data(), AsBytes(value_).data(), value_.size());
    }
  }

  void Run() {
    if (direction_ == Direction::kToShared) {
      fabric::shm::CopyToShared(shared_.bytes().data(), AsBytes(value_).data(), value_.size());
    } else {
      fabric::shm::CopyFromShared(reinterpret_cast<std::byte*>(private_.data()), shared_.bytes().data(), value_.size());
    }
  }
  [[nodiscard]] Status Check() const {
    return WrongUnless((direction_ == Direction::kToShared ? AsString(shared_.bytes()) : private_) == value_);
  }

 private:
  const Direction direction_;
  const std::string value_;
  std::string private_;
  const SharedMemory shared_;
};

}  // namespace

void AddCopies(Suite& suite) {
  for (const size_t bytes : kSizes) {
    suite.Add(NameOf("copy_to_shared", bytes), 0, [bytes] { return SharedCopy::Make(Direction::kToShared, bytes); });
  }
  for (const size_t bytes : kSizes) {
    suite.Add(NameOf("copy_from_shared", bytes), 0,
              [bytes] { return SharedCopy::Make(Direction::kFromShared, bytes); });
  }
}

}  // namespace erda::micro
