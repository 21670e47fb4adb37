// The key-value stores that the paper on PMRAccess measures. Neither makes a put durable by itself here: a log does.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "erda/status.h"

namespace erda::kv {

// Any thread may call it.
class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;
  virtual bool Put(std::string_view key, std::string_view value) = 0;
  // Returns false if the store does not have the key.
  virtual bool Get(std::string_view key, std::string& value) = 0;
};

// Each program defines it: its name, and an empty store with files in this folder, if it has files.
extern const char* const kStoreName;
Result<std::unique_ptr<Store>> MakeStore(const std::string& folder);

}  // namespace erda::kv
