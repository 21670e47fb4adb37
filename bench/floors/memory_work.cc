#include "bench/floors/memory_work.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/hash.h"
#include "bench/floors/raw.h"
#include "format/object.h"

namespace erda::floors {

void MemoryWork::Prepare(std::span<const Key> keys, std::string_view value) {
  keys_ = keys;
  value_bytes_ = value.size();
  stride_ = StrideFor(value_bytes_);
  objects_.resize(keys.size() * stride_);
  fetched_.resize(stride_);
  read_.resize(value_bytes_);
  for (uint64_t i = 0; i < keys.size(); ++i) {
    const std::string_view key = KeyAt(i);
    format::ObjectHeader header{};
    header.key_size = kKeyBytes;
    header.kind = static_cast<uint8_t>(format::ObjectKind::kValue);
    header.value_size = static_cast<uint32_t>(value_bytes_);
    header.version = i + 1;
    header.key_hash = HashKey(key, kRawHashSeed);
    header.header_crc = format::HeaderCrc(kRawPlace, header, key);
    const uint32_t checksum = format::ObjectChecksum(header, AsBytes(value));
    std::byte* at = objects_.data() + i * stride_;
    std::memcpy(at, &header, sizeof(header));
    std::memcpy(at + format::kLabelOffset, key.data(), key.size());
    std::memcpy(at + format::ChecksumOffset(kKeyBytes), &checksum, sizeof(checksum));
    std::copy(value.begin(), value.end(), reinterpret_cast<char*>(at + format::ValueOffset(kKeyBytes)));
  }
}

Status MemoryWork::Get(uint64_t i) {
  const uint64_t place = i % keys_.size();
  const uint64_t bytes = ObjectReadBytes(value_bytes_);
  std::memcpy(fetched_.data(), objects_.data() + place * stride_, bytes);
  const auto view = format::InspectObject(kRawPlace, std::span(fetched_).first(bytes));
  const std::string_view key = KeyAt(place);
  const bool whole = view.state == format::ObjectState::kWhole && view.header.key_hash == HashKey(key, kRawHashSeed);
  if (!whole || view.key != key) return Status(Code::kInternal, "an object in memory does not verify");
  std::copy(view.value.begin(), view.value.end(), read_.begin());
  return {};
}

}  // namespace erda::floors
