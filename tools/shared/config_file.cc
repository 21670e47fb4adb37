#include "tools/shared/config_file.h"

#define TOML_EXCEPTIONS 0
#include <fmt/core.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "base/printable.h"

namespace erda::tools {

namespace {

// A value, and the number of its line.
struct Value {
  uint32_t line;
  std::string text;
};

std::string Wrong(const std::string& path, uint32_t line, std::string_view what) {
  return fmt::format("{}:{}: {}", path, line, what);
}

std::optional<std::string> Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 4096> part{};
  while (file.read(part.data(), part.size()) || file.gcount() > 0) {
    text.append(part.data(), static_cast<size_t>(file.gcount()));
  }
  if (!file.eof()) return std::nullopt;
  return text;
}

bool TakesMany(const CLI::Option& option) { return option.get_items_expected_max() > 1; }
bool IsFlag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }
bool TakesNumber(const CLI::Option& option) { return option.get_type_name() == "N"; }
bool TakesSize(const CLI::Option& option) { return option.get_type_name() == "BYTES"; }

std::string_view Wanted(const CLI::Option& option) {
  if (IsFlag(option)) return "true or false";
  if (TakesMany(option)) return "a string or an array of strings";
  if (TakesNumber(option)) return "an integer";
  return TakesSize(option) ? "an integer or a string" : "a string";
}

// Returns the value as a flag would have it. Returns nothing if the option does not take its type.
std::optional<std::string> TextOf(const CLI::Option& option, const toml::node& node) {
  if (IsFlag(option)) {
    const auto* set = node.as_boolean();
    return set == nullptr ? std::nullopt : std::optional<std::string>(set->get() ? "true" : "false");
  }
  if (const auto* number = node.as_integer(); number != nullptr && (TakesNumber(option) || TakesSize(option))) {
    return std::to_string(number->get());
  }
  if (const auto* text = node.as_string(); text != nullptr && !TakesNumber(option)) return text->get();
  return std::nullopt;
}

// Returns the values of one key, or the line of a value with a wrong type.
std::pair<std::vector<Value>, std::optional<uint32_t>> Values(const CLI::Option& option, const toml::node& node) {
  std::vector<Value> values;
  const auto take = [&](const toml::node& one) {
    auto text = TextOf(option, one);
    if (!text) return false;
    values.push_back({one.source().begin.line, *std::move(text)});
    return true;
  };
  const auto* array = TakesMany(option) ? node.as_array() : nullptr;
  if (array == nullptr) {
    if (!take(node)) return {{}, node.source().begin.line};
  } else {
    if (array->empty()) return {{}, node.source().begin.line};
    for (const toml::node& one : *array) {
      if (!take(one)) return {{}, one.source().begin.line};
    }
  }
  return {std::move(values), std::nullopt};
}

std::optional<std::string> TakeKey(CLI::App& app, const std::string& path, const toml::key& key,
                                   const toml::node& node) {
  const std::string name(key.str());
  CLI::Option* const option = app.get_option_no_throw("--" + name);
  if (option == nullptr || !option->get_configurable()) {
    return Wrong(path, key.source().begin.line,
                 fmt::format("there is no key {}; the keys are the names of the options", Printable(name)));
  }
  const auto [values, wrong_line] = Values(*option, node);
  if (wrong_line) return Wrong(path, *wrong_line, fmt::format("{} must be {}", name, Wanted(*option)));
  // A value must be right even if a flag replaces it.
  const std::vector<std::string> flags = option->results();
  for (const Value& value : values) {
    try {
      option->clear();
      option->add_result(value.text);
      option->run_callback();
    } catch (const CLI::Error& error) {
      std::string_view what = error.what();
      if (what.starts_with("--")) what.remove_prefix(2);
      return Wrong(path, value.line, Printable(what));
    }
  }
  option->clear();
  for (const Value& value : values) option->add_result(value.text);
  if (!flags.empty()) {
    option->clear();
    option->add_result(flags);
  }
  option->run_callback();
  return std::nullopt;
}

}  // namespace

std::optional<std::string> TakeConfigFile(CLI::App& app, const std::string& path) {
  errno = 0;
  const auto text = Read(path);
  if (!text) return fmt::format("cannot read configuration file {}: {}", path, std::strerror(errno));
  const toml::parse_result parsed = toml::parse(*text, path);
  if (!parsed) return Wrong(path, parsed.error().source().begin.line, Printable(parsed.error().description()));
  // Takes keys in the order of the file, so that it reports the first mistake.
  std::vector<std::pair<const toml::key*, const toml::node*>> keys;
  for (const auto& [key, node] : parsed.table()) keys.emplace_back(&key, &node);
  std::sort(keys.begin(), keys.end(), [](const auto& one, const auto& other) {
    return one.first->source().begin.line < other.first->source().begin.line;
  });
  for (const auto& [key, node] : keys) {
    if (auto wrong = TakeKey(app, path, *key, *node)) return wrong;
  }
  return std::nullopt;
}

std::string AsConfigFile(const CLI::App& app) {
  toml::table table;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_configurable()) continue;
    std::vector<std::string> values = option->results();
    if (values.empty() && !option->get_default_str().empty()) values.push_back(option->get_default_str());
    if (values.empty()) continue;
    const std::string& name = option->get_lnames().front();
    const std::string& text = values.front();
    int64_t number = 0;
    if (IsFlag(*option)) {
      table.insert(name, text == "true");
    } else if (TakesMany(*option)) {
      toml::array array;
      for (const std::string& value : values) array.push_back(value);
      table.insert(name, std::move(array));
    } else if ((TakesNumber(*option) || TakesSize(*option)) &&
               std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc()) {
      table.insert(name, number);
    } else {
      table.insert(name, text);
    }
  }
  std::ostringstream out;
  out << table << '\n';
  return out.str();
}

}  // namespace erda::tools
