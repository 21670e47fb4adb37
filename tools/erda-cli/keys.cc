#include "tools/erda-cli/keys.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "tools/erda-cli/text.h"
#include "tools/shared/files.h"

namespace erda::cli {

namespace {

// Appends each part of the text that ends with `end`, or with the text. Leaves out empty parts.
void Split(std::string_view text, char end, std::vector<std::string>& parts) {
  while (!text.empty()) {
    const size_t size = std::min(text.find(end), text.size());
    if (size > 0) parts.emplace_back(text.substr(0, size));
    text.remove_prefix(std::min(size + 1, text.size()));
  }
}

std::string NoHex(const std::string& word) {
  return "'" + word + "' is not hexadecimal: give two digits for each byte, as 00ff";
}

}  // namespace

void KeyForm::AddTo(CLI::App& sub) {
  CLI::Option* const as_hex = sub.add_flag("--key-hex", hex, "KEY is in hexadecimal, as in 00ff");
  sub.add_flag("--key-file", file, "KEY is a file, whose bytes are the key; - is stdin")->excludes(as_hex);
}

void KeyForm::Check(const std::string& word) const {
  if (hex && !FromHex(word)) throw CLI::ValidationError("KEY", NoHex(word));
}

Result<std::string> KeyForm::KeyOf(const std::string& word) const {
  if (file) return ReadAll(word);
  if (!hex) return word;
  auto bytes = FromHex(word);
  if (!bytes) return Status(Code::kInvalidArgument, NoHex(word));
  return *std::move(bytes);
}

void KeyOption::AddTo(CLI::App& sub) {
  sub.add_option("KEY", word, "The key")->required()->type_name("");
  form.AddTo(sub);
}

void KeyOptions::AddTo(CLI::App& sub) {
  // Any number of keys. With extra arguments, as CLI11 has them for vectors, the word [a,b] would be two.
  constexpr int kMax = CLI::detail::expected_max_vector_size;
  sub.add_option("KEY", words, "The keys")
      ->type_name("")
      ->expected(kMax, kMax)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  CLI::Option* const file =
      sub.add_option("--file", list, "Keys from a file, or from stdin if it is -: one on each line, without escapes")
          ->type_name("FILE");
  sub.add_flag("-0,--null", null, "The file has a NUL after each key, and not a newline")->needs(file);
  form.AddTo(sub);
}

void KeyOptions::Check() const {
  if (words.empty() && list.empty()) throw CLI::RequiredError("KEY or --file");
  for (const std::string& word : words) form.Check(word);
}

Result<std::vector<std::string>> KeyOptions::Read() const {
  std::vector<std::string> all = words;
  if (!list.empty()) {
    const auto text = ReadAll(list);
    if (!text.ok()) return text.status();
    Split(*text, null ? '\0' : '\n', all);
  }
  for (std::string& word : all) {
    auto key = form.KeyOf(word);
    if (!key.ok()) return key.status();
    word = *std::move(key);
  }
  return all;
}

}  // namespace erda::cli
