#include "bench/ycsb/properties.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>

namespace erda::bench {
namespace {

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\f";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

Status Invalid(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

Status Unsupported(std::string_view name, std::string_view value, std::string_view why) {
  return Invalid(fmt::format("property {}={}: {}", name, value, why));
}

std::optional<double> ParseNumber(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || !(number >= 0) || std::isinf(number)) return std::nullopt;
  return number;
}

// Properties with an option of the same meaning.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kSame = {{{"recordcount", "--records"},
                                                                                 {"operationcount", "--operations"},
                                                                                 {"threadcount", "--threads"},
                                                                                 {"maxexecutiontime", "--seconds"}}};

// Properties that may have one of these values only, and why.
struct Fixed {
  std::string_view name;
  std::array<std::string_view, 3> values;  // Empty ones count for nothing.
  std::string_view why;
};
constexpr std::array<Fixed, 6> kFixed = {{
    {"workload",
     {"core", "site.ycsb.workloads.CoreWorkload", "com.yahoo.ycsb.workloads.CoreWorkload"},
     "erda-ycsb has the core workload only"},
    {"insertorder", {"hashed", "", ""}, "keys are made from hashes; only hashed is possible"},
    {"fieldlengthdistribution", {"constant", "", ""}, "all values have the same size; only constant is possible"},
    {"target", {"0", "", ""}, "erda-ycsb measures at full speed; remove it"},
    {"insertstart", {"0", "", ""}, "records are loaded from the first one; remove it"},
    {"insertcount", {"0", "", ""}, "all records are loaded; use recordcount"},
}};

// These change nothing here: a record has one value, which is read and written as a whole, and nothing is scanned.
constexpr std::array<std::string_view, 5> kWithoutEffect = {"readallfields", "writeallfields", "minscanlength",
                                                            "maxscanlength", "scanlengthdistribution"};
constexpr std::array<std::string_view, 4> kDescribed = {"fieldcount", "fieldlength", "dataintegrity",
                                                        "requestdistribution"};

struct Proportion {
  std::string_view name;
  std::string_view otherwise;
};
constexpr std::array<Proportion, 5> kProportions = {{{"readproportion", "0.95"},
                                                     {"updateproportion", "0.05"},
                                                     {"insertproportion", "0"},
                                                     {"readmodifywriteproportion", "0"},
                                                     {"scanproportion", "0"}}};

template <class Names>
bool Contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsKnown(std::string_view name) {
  const auto named = [name](const auto& each) { return each.name == name; };
  return Contains(kWithoutEffect, name) || Contains(kDescribed, name) ||
         std::any_of(kSame.begin(), kSame.end(), [name](const auto& same) { return same.first == name; }) ||
         std::any_of(kFixed.begin(), kFixed.end(), named) ||
         std::any_of(kProportions.begin(), kProportions.end(), named);
}

// As in YCSB, proportions are weights: their sum need not be 1.
Result<Workload> WorkloadFrom(const Properties& properties) {
  std::array<double, kProportions.size()> weights{};
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const std::string_view value = properties.Value(kProportions[i].name, kProportions[i].otherwise);
    const auto weight = ParseNumber(value);
    if (!weight) return Unsupported(kProportions[i].name, value, "it is not a proportion");
    sum += weights[i] = *weight;
  }
  if (weights.back() > 0)
    return Unsupported(kProportions.back().name, properties.Value("scanproportion", ""), kNoScans);
  if (sum <= 0) return Invalid("the proportions are all 0; give one of them another value, as readproportion=1");
  std::array<uint32_t, kProportions.size()> percents{};
  for (size_t i = 0; i < weights.size(); ++i) {
    constexpr double kRounding = 1e-6;
    const double percent = weights[i] / sum * 100;
    percents[i] = static_cast<uint32_t>(std::lround(percent));
    if (std::abs(percent - percents[i]) > kRounding) {
      return Invalid(fmt::format("{} is {:.4g} % of the operations; give proportions that are whole percents",
                                 kProportions[i].name, percent));
    }
  }
  Workload workload{"custom", percents[1], percents[2], percents[3], Distribution::kUniform};
  for (const Workload& known : kWorkloads) {
    if (known.update_percent == workload.update_percent && known.insert_percent == workload.insert_percent &&
        known.rmw_percent == workload.rmw_percent) {
      workload.name = known.name;
    }
  }
  return workload;
}

}  // namespace

Status Properties::AddFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Invalid(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string_view text = Trimmed(line);
    if (text.empty() || text.front() == '#' || text.front() == '!') continue;
    if (const Status status = Add(text); !status.ok()) {
      return Invalid(fmt::format("{}, line {}: {}", path, number, status.message()));
    }
  }
  if (file.bad()) return Invalid(fmt::format("cannot read {}", path));
  return {};
}

Status Properties::Add(std::string_view assignment) {
  const size_t equals = assignment.find('=');
  const std::string_view name = Trimmed(assignment.substr(0, equals));
  if (equals == std::string_view::npos || name.empty()) {
    return Invalid(fmt::format("'{}' is not a property; write name=value", assignment));
  }
  all_.insert_or_assign(std::string(name), Trimmed(assignment.substr(equals + 1)));
  return {};
}

std::string_view Properties::Value(std::string_view name, std::string_view otherwise) const {
  const auto found = all_.find(name);
  return found == all_.end() ? otherwise : std::string_view(found->second);
}

Result<TranslatedProperties> Translate(const Properties& properties) {
  TranslatedProperties translated;
  const auto& all = properties.all();
  for (const auto& [name, value] : all) {
    if (!IsKnown(name)) translated.unused.push_back(name);
  }
  for (const Fixed& fixed : kFixed) {
    const std::string_view value = properties.Value(fixed.name, fixed.values[0]);
    if (value.empty() || !Contains(fixed.values, value)) return Unsupported(fixed.name, value, fixed.why);
  }
  for (const auto& [name, option] : kSame) {
    const std::string_view value = properties.Value(name, "");
    if (all.contains(name) && !(name == "maxexecutiontime" && value == "0")) {
      translated.options.emplace_back(option, value);
    }
  }
  if (all.contains("fieldcount") || all.contains("fieldlength")) {
    const auto count = ParseNumber(properties.Value("fieldcount", "10"));
    const auto length = ParseNumber(properties.Value("fieldlength", "100"));
    if (!count || !length) return Invalid("properties fieldcount and fieldlength must be numbers");
    translated.options.emplace_back("--value-size", fmt::format("{:.0f}", *count * *length));
  }
  if (const std::string_view value = properties.Value("dataintegrity", "false"); value == "true") {
    translated.options.emplace_back("--verify", value);
  } else if (value != "false") {
    return Unsupported("dataintegrity", value, "give true or false");
  }
  if (all.contains("requestdistribution")) {
    const std::string_view value = properties.Value("requestdistribution", "");
    translated.distribution = FindDistribution(value);
    if (!translated.distribution) {
      return Unsupported("requestdistribution", value, "give zipfian, uniform or latest");
    }
  }
  if (std::any_of(kProportions.begin(), kProportions.end(),
                  [&all](const Proportion& proportion) { return all.contains(proportion.name); })) {
    auto workload = WorkloadFrom(properties);
    if (!workload.ok()) return workload.status();
    translated.workload = *workload;
    if (translated.distribution) translated.workload->distribution = *translated.distribution;
  }
  return translated;
}

}  // namespace erda::bench
