#include "bench/micro/object.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "bench/micro/inputs.h"
#include "format/object.h"

namespace erda::micro {

namespace {

constexpr format::Place kObjectPlace = {0x5eed, 3, format::LogAddress::At(5, 4096), 7};

// Makes an object of one key in memory.
class ObjectMake {
 public:
  static Result<std::unique_ptr<ObjectMake>> Make(size_t bytes) { return std::make_unique<ObjectMake>(bytes); }
  explicit ObjectMake(size_t bytes)
      : value_(ValueOf(bytes)), object_(format::ObjectSpace(key().size(), value_.size())) {}

  void Run() {
    format::ObjectHeader header{};
    header.key_size = static_cast<uint16_t>(key().size());
    header.kind = static_cast<uint8_t>(format::ObjectKind::kValue);
    header.value_size = static_cast<uint32_t>(value_.size());
    header.version = ++version_;
    header.key_hash = 0x0123456789abcdef;
    header.header_crc = format::HeaderCrc(kObjectPlace, header, key());
    const uint32_t checksum = format::ObjectChecksum(header, AsBytes(value_));
    std::memcpy(object_.data(), &header, sizeof(header));
    std::memcpy(object_.data() + format::kLabelOffset, key().data(), key().size());
    std::memcpy(object_.data() + format::ChecksumOffset(key().size()), &checksum, sizeof(checksum));
    std::memcpy(object_.data() + format::ValueOffset(key().size()), value_.data(), value_.size());
    benchmark::ClobberMemory();
  }
  [[nodiscard]] Status Check() const {
    const format::ObjectView view = format::InspectObject(kObjectPlace, object_);
    return WrongUnless(view.state == format::ObjectState::kWhole && view.header.version == version_ &&
                       view.key == key() && AsString(view.value) == value_);
  }
  [[nodiscard]] std::span<const std::byte> object() const { return object_; }

 private:
  [[nodiscard]] const std::string& key() const { return keys_.all().front(); }

  const Keys keys_;
  const std::string value_;
  std::vector<std::byte> object_;
  uint64_t version_ = 0;
};

class ObjectVerify {
 public:
  static Result<std::unique_ptr<ObjectVerify>> Make(size_t bytes) { return std::make_unique<ObjectVerify>(bytes); }
  explicit ObjectVerify(size_t bytes) : made_(bytes) { made_.Run(); }

  void Run() {
    const format::ObjectView view = format::InspectObject(kObjectPlace, made_.object());
    damaged_ += view.state == format::ObjectState::kWhole ? 0 : 1;
  }
  // The same bytes at another place must not verify.
  [[nodiscard]] Status Check() const {
    format::Place elsewhere = kObjectPlace;
    ++elsewhere.generation;
    return WrongUnless(damaged_ == 0 &&
                       format::InspectObject(elsewhere, made_.object()).state == format::ObjectState::kNothing);
  }

 private:
  ObjectMake made_;
  uint64_t damaged_ = 0;
};

}  // namespace

void AddObjects(Suite& suite) {
  for (const size_t bytes : kSizes)
    suite.Add(NameOf("object_make", bytes), 0, [bytes] { return ObjectMake::Make(bytes); });
  for (const size_t bytes : kSizes) {
    suite.Add(NameOf("object_verify", bytes), 0, [bytes] { return ObjectVerify::Make(bytes); });
  }
}

}  // namespace erda::micro
