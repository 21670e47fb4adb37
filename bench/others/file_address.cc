#include "bench/others/file_address.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tools/shared/command_line.h"

namespace erda::bench {
namespace {

std::string Describe(std::span<const FileAddress::Option> options) {
  std::string names;
  for (const auto& option : options) {
    if (!names.empty()) names += ", ";
    names += fmt::format("{}{}", option.name, option.has_size ? "=SIZE" : "");
  }
  return names.empty() ? "it is only a path, without commas" : "after commas it may have: " + names;
}

// Cuts the text up to the next comma from the rest, and returns it.
std::string_view TakePart(std::string_view& rest) {
  const size_t comma = std::min(rest.find(','), rest.size());
  const std::string_view part = rest.substr(0, comma);
  rest.remove_prefix(std::min(comma + 1, rest.size()));
  return part;
}

}  // namespace

Result<FileAddress> FileAddress::Parse(std::string_view store, std::string_view text, std::span<const Option> options) {
  FileAddress address;
  std::string_view rest = text;
  address.path_ = TakePart(rest);
  if (address.path_.empty()) {
    return Status(Code::kInvalidArgument, fmt::format("a {}: address needs a path: {}:/path/to/data", store, store));
  }
  while (!rest.empty()) {
    const std::string_view part = TakePart(rest);
    const std::string_view name = part.substr(0, part.find('='));
    const auto option = std::find_if(options.begin(), options.end(), [&](const Option& o) { return o.name == name; });
    std::optional<uint64_t> size = 0;
    if (option != options.end() && option->has_size) {
      size = name.size() < part.size() ? tools::ParseSize(part.substr(name.size() + 1)) : std::nullopt;
      if (size == 0) size.reset();
    }
    if (option == options.end() || !size || (!option->has_size && name.size() < part.size())) {
      return Status(Code::kInvalidArgument,
                    fmt::format("a {}: address has no option '{}'; {}", store, part, Describe(options)));
    }
    address.options_.insert_or_assign(std::string(name), *size);
  }
  return address;
}

uint64_t FileAddress::size(std::string_view option, uint64_t otherwise) const {
  const auto found = options_.find(option);
  return found == options_.end() ? otherwise : found->second;
}

}  // namespace erda::bench
