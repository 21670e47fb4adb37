// The address of a store that lives in files: "PATH,option,option=SIZE".
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "erda/status.h"

namespace erda::bench {

// Immutable. A path has no comma.
class FileAddress {
 public:
  // An option of the store. If it has a size, the text after its equals sign is one, as 4G.
  struct Option {
    std::string_view name;
    bool has_size;
  };

  // Returns kInvalidArgument, with the fault and the possible options, for another text. `store` is the scheme.
  [[nodiscard]] static Result<FileAddress> Parse(std::string_view store, std::string_view text,
                                                 std::span<const Option> options);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool has(std::string_view option) const { return options_.contains(option); }
  // Returns the option's size, or `otherwise` if the address does not have the option.
  [[nodiscard]] uint64_t size(std::string_view option, uint64_t otherwise) const;

 private:
  std::string path_;
  std::map<std::string, uint64_t, std::less<>> options_;  // 0 if the option has no size.
};

}  // namespace erda::bench
