#include "client/buffer.h"

#include <cstring>
#include <new>
#include <string>
#include <utility>

namespace erda {

Result<std::string_view> Buffer::Memory::Take(std::string_view read) const {
  if (read.size() > value.size()) {
    return Status(Code::kInvalidArgument, "the value has " + std::to_string(read.size()) +
                                              " bytes, and the buffer only " + std::to_string(value.size()));
  }
  const auto to = value.first(read.size());
  if (!read.empty() && to.data() != AsBytes(read).data()) std::memmove(to.data(), read.data(), read.size());
  return AsString(to);
}

}  // namespace erda

namespace erda::client {

Result<RegisteredMemory> RegisteredMemory::Make(fabric::Fabric& fabric, size_t size) {
  RegisteredMemory made;
  made.memory.reset(new (std::nothrow) std::byte[size]);
  if (!made.memory) return Status(Code::kResourceExhausted, "no memory for " + std::to_string(size) + " bytes");
  made.bytes = {made.memory.get(), size};
  auto region = fabric.Register(MemoryView{made.bytes, -1, -1}, fabric::Access::kLocal);
  if (!region.ok()) return region.status();
  made.region = *std::move(region);
  return made;
}

Result<std::shared_ptr<Buffer::Memory>> MakeBuffer(std::shared_ptr<fabric::Fabric> fabric, size_t value_bytes) try {
  if (value_bytes > UINT32_MAX) return Status(Code::kInvalidArgument, "no value is as large as this buffer");
  constexpr size_t kAround = Buffer::Memory::kLead + Buffer::Memory::kTail + kCacheLine;
  auto made = RegisteredMemory::Make(*fabric, value_bytes + kAround);
  if (!made.ok()) return made.status();
  auto buffer = std::make_shared<Buffer::Memory>();
  buffer->fabric = std::move(fabric);
  buffer->registered = *std::move(made);
  const auto bytes = buffer->registered.bytes;
  std::memset(bytes.data(), 0, bytes.size());  // a message also sends the bytes before the value, even unused ones
  const uint64_t to_line =
      AlignUp(reinterpret_cast<uintptr_t>(bytes.data()), kCacheLine) - reinterpret_cast<uintptr_t>(bytes.data());
  buffer->value = bytes.subspan(to_line + Buffer::Memory::kLead, value_bytes);
  return buffer;
} catch (const std::bad_alloc&) {
  return Status(Code::kResourceExhausted, "no memory for a buffer");
}

Status CheckBuffer(const std::shared_ptr<Buffer::Memory>& buffer, const fabric::Fabric& fabric) {
  if (!buffer) return {Code::kInvalidArgument, "the buffer was moved away"};
  if (buffer->fabric.get() != &fabric) return {Code::kInvalidArgument, "the buffer is another client's"};
  if (buffer->in_use) return {Code::kInvalidArgument, "the buffer is in use by an operation in flight"};
  return {};
}

}  // namespace erda::client
