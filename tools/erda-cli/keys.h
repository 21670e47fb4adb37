// Keys on the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "erda/status.h"

namespace erda::cli {

// The options --key-hex and --key-file, which say how KEY stands for the key.
struct KeyForm {
  bool hex = false;
  bool file = false;

  void AddTo(CLI::App& sub);
  void Check(const std::string& word) const;  // For Bind: throws if the word is no hexadecimal number.
  [[nodiscard]] Result<std::string> KeyOf(const std::string& word) const;
};

// One key.
struct KeyOption {
  std::string word;
  KeyForm form;

  void AddTo(CLI::App& sub);
  void Check() const { form.Check(word); }
  [[nodiscard]] Result<std::string> Read() const { return form.KeyOf(word); }
};

// Several keys: KEY..., and those of --file.
struct KeyOptions {
  std::vector<std::string> words;
  std::string list;
  bool null = false;
  KeyForm form;

  void AddTo(CLI::App& sub);
  void Check() const;  // Also checks that there are keys.
  [[nodiscard]] Result<std::vector<std::string>> Read() const;
};

}  // namespace erda::cli
