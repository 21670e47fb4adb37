// The parts of the C API that both libraries share. They let no exception out, keep a message for each thread, read
// structures that grow, and return results in one piece of memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>

#include "erda/erda.h"
#include "erda/status.h"

namespace erda::c_api {

// Text that ends with a zero and needs no allocation. Longer text is cut off.
using ShortText = std::array<char, 1024>;
inline void CopyShort(std::string_view from, ShortText* to) noexcept {
  const size_t size = std::min(from.size(), to->size() - 1);
  std::copy_n(from.begin(), size, to->begin());
  (*to)[size] = '\0';
}

// The message of this thread. It needs no allocation, since it must also say that there is no memory.
inline thread_local ShortText last_error{};

inline erda_code Failed(Code code, std::string_view message) noexcept {
  CopyShort(message, &last_error);
  return static_cast<erda_code>(code);
}

inline erda_code CodeOf(const Status& status) noexcept {
  return status.ok() ? ERDA_OK : Failed(status.code(), status.message());
}

// Runs `body`, which returns a Status. Turns an exception into a code.
template <class Body>
erda_code Guarded(Body&& body) noexcept {
  try {
    return CodeOf(body());
  } catch (const std::bad_alloc&) {
    return Failed(Code::kResourceExhausted, "there is no memory");
  } catch (const std::exception& thrown) {
    return Failed(Code::kInternal, thrown.what());
  } catch (...) {
    return Failed(Code::kInternal, "an unknown exception was thrown");
  }
}

// Copies the defaults into a structure of the caller that has `size` bytes. Sets fields that only the caller knows to
// 0. Does nothing if `size` is smaller than `least`, the structure's first size.
template <class Options>
void SetDefaults(Options* options, size_t size, size_t least, Options defaults) noexcept {
  if (options == nullptr || size < least) return;
  defaults.size = size;
  std::memset(static_cast<void*>(options), 0, size);
  std::memcpy(static_cast<void*>(options), &defaults, std::min(size, sizeof(Options)));
}

// Copies the caller's structure over *known, which holds the defaults. `least` is the structure's first size. Returns
// kInvalidArgument if the caller did not initialize the structure, or sets a field that this library does not know.
template <class Options>
Status ReadOptions(const Options* options, size_t least, Options* known) {
  if (options == nullptr) return {};
  if (options->size < least) {
    return {Code::kInvalidArgument,
            "options of " + std::to_string(options->size) +
                " bytes: they were not initialized; first call the function of their type that ends in _init"};
  }
  const auto* bytes = reinterpret_cast<const char*>(options);
  for (size_t i = sizeof(Options); i < options->size; ++i) {
    if (bytes[i] != 0)
      return {Code::kInvalidArgument, "an option is set that this version of the library does not know"};
  }
  std::memcpy(static_cast<void*>(known), options, std::min(options->size, sizeof(Options)));
  return {};
}

inline Status Missing(const char* what) { return {Code::kInvalidArgument, std::string(what) + " is NULL"}; }

// Converts a number to an enumeration of one byte. A number outside of that byte becomes 255, which no enumeration has.
template <class Enum>
Enum EnumOf(int number) {
  using Number = std::underlying_type_t<Enum>;
  const bool fits = number >= 0 && number <= std::numeric_limits<Number>::max();
  return static_cast<Enum>(fits ? static_cast<Number>(number) : std::numeric_limits<Number>::max());
}

// One piece of memory: a structure at its front, then the bytes to which it points. Call Ask for every part before
// Make.
class Piece {
 public:
  template <class T>
  size_t Ask(size_t count) {
    size_ = (size_ + alignof(T) - 1) / alignof(T) * alignof(T);
    const size_t at = size_;
    size_ += count * sizeof(T);  // NOLINT(bugprone-sizeof-expression): T may be a pointer
    return at;
  }
  void Make() {
    memory_.reset(static_cast<char*>(std::calloc(1, size_)));
    if (memory_ == nullptr) throw std::bad_alloc();
  }
  // Memory of calloc has the alignment of every type that is asked for here.
  template <class T>
  T* At(size_t at) {
    return reinterpret_cast<T*>(memory_.get() + at);
  }
  // Copies bytes to the offset *at, with a zero after them, and moves *at past the zero. The returned size does not
  // count the zero.
  erda_bytes Copy(size_t* at, std::string_view bytes) {
    char* copy = memory_.get() + *at;
    std::copy(bytes.begin(), bytes.end(), copy);
    *at += bytes.size() + 1;
    return {copy, bytes.size()};
  }
  const char* CopyText(size_t* at, std::string_view text) { return static_cast<const char*>(Copy(at, text).data); }
  template <class T>
  T* Release() {
    return reinterpret_cast<T*>(memory_.release());
  }

 private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  size_t size_ = 0;
  std::unique_ptr<char, Free> memory_;
};

}  // namespace erda::c_api
