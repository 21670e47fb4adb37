// Checks at compile time for every structure of the format. docs/format.md has the byte diagrams.
#pragma once

#include <cstddef>
#include <type_traits>

namespace erda::format {

// Standard layout makes offsetof valid. A trivially copyable type has its value in its bytes. Without padding, the
// value determines every byte.
template <class T>
inline constexpr bool kPlainBytes =
    std::is_standard_layout_v<T>&& std::is_trivially_copyable_v<T>&& std::has_unique_object_representations_v<T>;

}  // namespace erda::format

#define ERDA_FORMAT_SIZE(type, size)                                                              \
  static_assert(::erda::format::kPlainBytes<type>, #type " must be plain bytes without padding"); \
  static_assert(sizeof(type) == (size), #type " has changed its size")
#define ERDA_FORMAT_FIELD(type, field, offset) \
  static_assert(offsetof(type, field) == (offset), #type "::" #field " has moved")
