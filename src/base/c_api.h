// What the C API of both libraries needs: no exception leaves it, messages for each thread, structures that grow.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "erda/erda.h"
#include "erda/status.h"

namespace erda::c_api {

// Of this thread, ended by a zero. Not a string: it must hold the news that there is no memory.
inline thread_local std::array<char, 1024> last_error{};

inline erda_code Failed(Code code, std::string_view message) noexcept {
  const size_t size = std::min(message.size(), last_error.size() - 1);
  std::copy_n(message.begin(), size, last_error.begin());
  last_error[size] = '\0';
  return static_cast<erda_code>(code);
}

inline erda_code CodeOf(const Status& status) noexcept {
  return status.ok() ? ERDA_OK : Failed(status.code(), status.message());
}

// Runs `body`, which returns a Status.
template <class Body>
erda_code Guarded(Body&& body) noexcept {
  try {
    return CodeOf(body());
  } catch (const std::bad_alloc&) {
    return Failed(Code::kResourceExhausted, "no memory");
  } catch (const std::exception& thrown) {
    return Failed(Code::kInternal, thrown.what());
  } catch (...) {
    return Failed(Code::kInternal, "an exception of no known kind");
  }
}

// Copies the defaults into a structure of the caller's of this size. What he knows more is 0.
template <class Options>
void SetDefaults(Options* options, size_t size, size_t least, Options defaults) noexcept {
  if (options == nullptr || size < least) return;
  defaults.size = size;
  std::memset(static_cast<void*>(options), 0, size);
  std::memcpy(static_cast<void*>(options), &defaults, std::min(size, sizeof(Options)));
}

// The caller's structure over *known, which has the defaults. least: the size it had at first.
template <class Options>
Status ReadOptions(const Options* options, size_t least, Options* known) {
  if (options == nullptr) return {};
  if (options->size < least) {
    return {Code::kInvalidArgument,
            "options of " + std::to_string(options->size) + " bytes: they were not initialized"};
  }
  const auto* bytes = reinterpret_cast<const char*>(options);
  for (size_t i = sizeof(Options); i < options->size; ++i) {
    if (bytes[i] != 0)
      return {Code::kInvalidArgument, "an option is set that this version of the library does not know"};
  }
  std::memcpy(static_cast<void*>(known), options, std::min(options->size, sizeof(Options)));
  return {};
}

}  // namespace erda::c_api
