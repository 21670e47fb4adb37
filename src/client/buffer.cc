// Operations on values in the caller's registered memory.
#include "client/buffer.h"

#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "client/engine.h"

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

Result<std::shared_ptr<Buffer::Memory>> Engine::MakeBuffer(size_t value_bytes) try {
  if (value_bytes > UINT32_MAX) return Status(Code::kInvalidArgument, "no value is as large as this buffer");
  constexpr size_t kAround = Buffer::Memory::kLead + Buffer::Memory::kTail + kCacheLine;
  auto made = RegisteredMemory::Make(*fabric_, value_bytes + kAround);
  if (!made.ok()) return made.status();
  auto buffer = std::make_shared<Buffer::Memory>();
  buffer->fabric = fabric_;
  buffer->registered = *std::move(made);
  const auto bytes = buffer->registered.bytes;
  std::memset(bytes.data(), 0, bytes.size());  // what a message has before the value goes out with it, used or not
  const uint64_t to_line =
      AlignUp(reinterpret_cast<uintptr_t>(bytes.data()), kCacheLine) - reinterpret_cast<uintptr_t>(bytes.data());
  buffer->value = bytes.subspan(to_line + Buffer::Memory::kLead, value_bytes);
  return buffer;
} catch (const std::bad_alloc&) {
  return Status(Code::kResourceExhausted, "no memory for a buffer");
}

Status Engine::CheckBuffer(const std::shared_ptr<Buffer::Memory>& buffer) const {
  if (!buffer) return {Code::kInvalidArgument, "the buffer was moved away"};
  if (buffer->fabric != fabric_) return {Code::kInvalidArgument, "the buffer is another client's"};
  if (buffer->in_use) return {Code::kInvalidArgument, "the buffer is in use by an operation in flight"};
  return {};
}

void Engine::TakeBuffer(Operation& op, const std::shared_ptr<Buffer::Memory>& buffer, uint64_t before_value) {
  op.buffer = buffer;
  op.in_buffer = buffer->From(before_value);
  buffer->in_use = true;
}

Status Engine::Get(std::string_view key, const std::shared_ptr<Buffer::Memory>& into, Client::GetCallback&& done) {
  if (auto status = CheckBuffer(into); !status.ok()) return status;
  Operation* op = NewOperation(OpType::kGet, key);
  if (op == nullptr) return Refusal(key);
  op->get_done.swap(done);
  TakeBuffer(*op, into, format::ValueOffset(key.size()));
  Begin(*op);
  return {};
}

template <class Callback>
Status Engine::BeginPutFrom(const std::shared_ptr<Buffer::Memory>& from, std::string_view key, size_t size,
                            const PutOptions& options, Callback Operation::*member, Callback&& done) {
  if (auto status = CheckBuffer(from); !status.ok()) return status;
  if (size > from->value.size()) {
    return {Code::kInvalidArgument, "the buffer has " + std::to_string(from->value.size()) +
                                        " bytes, and the value is to have " + std::to_string(size)};
  }
  auto op = NewPut(OpType::kPut, key, size, options);
  if (!op.ok()) return op.status();
  ((*op)->*member).swap(done);
  TakeBuffer(**op, from, format::InlineValueOffset(key.size()));
  std::memcpy((*op)->message().data() + sizeof(format::Request), key.data(), key.size());
  Begin(**op);
  return {};
}

Status Engine::Put(std::string_view key, const std::shared_ptr<Buffer::Memory>& from, size_t size,
                   Client::DoneCallback&& done) {
  return BeginPutFrom(from, key, size, {}, &Operation::done, std::move(done));
}

Status Engine::Put(std::string_view key, const std::shared_ptr<Buffer::Memory>& from, size_t size,
                   const PutOptions& options, Client::PutCallback&& done) {
  return BeginPutFrom(from, key, size, options, &Operation::put_done, std::move(done));
}

// The value is there already, unless it was read elsewhere: what was said of its size was more than the buffer holds.
// Behind a deadline it is a few bytes farther.
Result<std::string_view> Engine::InBuffer(const Buffer::Memory& buffer, std::string_view value) {
  if (value.size() > buffer.value.size()) {
    return Status(Code::kInvalidArgument, "the value has " + std::to_string(value.size()) +
                                              " bytes, and the buffer only " + std::to_string(buffer.value.size()));
  }
  const auto to = buffer.value.first(value.size());
  if (!value.empty() && to.data() != AsBytes(value).data()) std::memmove(to.data(), value.data(), value.size());
  return AsString(to);
}

}  // namespace erda::client
