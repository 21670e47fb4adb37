#include "bench/others/embedded_store.h"

#include <fmt/format.h>

#include <algorithm>

namespace erda::bench {

EmbeddedStore::EmbeddedStore(const ClientOptions& options) : queue_depth_(std::max<size_t>(options.queue_depth, 1)) {}

Result<size_t> EmbeddedStore::Get(std::string_view key, std::span<std::byte> out) {
  Result<size_t> size = Read(key, out);
  if (size.ok() && *size > out.size()) {
    return Status(Code::kInvalidArgument, fmt::format("the value has {} bytes", *size));
  }
  return size;
}

Status EmbeddedStore::Put(std::string_view key, std::string_view value) {
  const Record record{key, value};
  return Write({&record, 1});
}

Status EmbeddedStore::Start(std::string_view key, std::string_view value, Operation operation) {
  if (in_flight_ == queue_depth_) {
    return {Code::kResourceExhausted, "the most operations are outstanding; wait for some of them"};
  }
  started_.bytes.append(key).append(value);
  started_.operations.push_back(std::move(operation));
  ++in_flight_;
  return {};
}

Status EmbeddedStore::GetAsync(std::string_view key, GetCallback done) {
  return Start(key, {}, {.key_bytes = key.size(), .value_bytes = 0, .get = std::move(done), .put = nullptr});
}

Status EmbeddedStore::PutAsync(std::string_view key, std::string_view value, DoneCallback done) {
  return Start(key, value,
               {.key_bytes = key.size(), .value_bytes = value.size(), .get = nullptr, .put = std::move(done)});
}

Result<std::string_view> EmbeddedStore::ReadWhole(std::string_view key) {
  for (;;) {
    const Result<size_t> size = Read(key, value_);
    if (!size.ok()) return size.status();
    if (*size <= value_.size()) return std::string_view(reinterpret_cast<const char*>(value_.data()), *size);
    value_.resize(*size);
  }
}

size_t EmbeddedStore::Poll() {
  std::swap(started_, polled_);
  const auto each = [this](const auto& use) {
    std::string_view rest = polled_.bytes;
    for (const Operation& operation : polled_.operations) {
      const Record record{rest.substr(0, operation.key_bytes), rest.substr(operation.key_bytes, operation.value_bytes)};
      rest.remove_prefix(operation.key_bytes + operation.value_bytes);
      use(operation, record);
    }
  };
  records_.clear();
  each([this](const Operation& operation, const Record& record) {
    if (operation.put) records_.push_back(record);
  });
  const Status written = records_.empty() ? Status() : Write(records_);
  each([this, &written](const Operation& operation, const Record& record) {
    --in_flight_;
    operation.put ? operation.put(written) : operation.get(ReadWhole(record.key));
  });
  const size_t finished = polled_.operations.size();
  polled_.bytes.clear();
  polled_.operations.clear();
  return finished;
}

}  // namespace erda::bench
