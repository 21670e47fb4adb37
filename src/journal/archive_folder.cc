#include "journal/archive_folder.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace erda::journal {

namespace {

constexpr std::string_view kPrefix = "shard-";
constexpr std::string_view kSuffix = ".erda-archive";
constexpr size_t kShardDigits = 3;
constexpr size_t kPlaceDigits = 20;

template <class Number>
std::optional<Number> NumberIn(std::string_view digits) {
  Number number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return {};
  return number;
}

struct Name {
  uint32_t shard;
  Place first;
};

std::optional<Name> ParseName(std::string_view name) {
  if (name.size() != kPrefix.size() + kShardDigits + 1 + kPlaceDigits + kSuffix.size()) return {};
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return {};
  const auto shard = NumberIn<uint32_t>(name.substr(kPrefix.size(), kShardDigits));
  const auto first = NumberIn<Place>(name.substr(kPrefix.size() + kShardDigits + 1, kPlaceDigits));
  if (!shard || !first) return {};
  return Name{*shard, *first};
}

std::string Padded(uint64_t number, size_t digits) {
  const std::string text = std::to_string(number);
  return std::string(digits - std::min(digits, text.size()), '0') + text;
}

}  // namespace

std::string ArchiveFolder::PathOf(const std::string& folder, uint32_t shard, Place first) {
  return folder + "/" + std::string(kPrefix) + Padded(shard, kShardDigits) + "-" + Padded(first, kPlaceDigits) +
         std::string(kSuffix);
}

std::string ArchiveFolder::TemporaryPathOf(const std::string& folder, uint32_t shard) {
  return folder + "/" + std::string(kPrefix) + Padded(shard, kShardDigits) + ".new";
}

Result<ArchiveFolder> ArchiveFolder::Open(const std::string& path) {
  ArchiveFolder folder(path);
  std::error_code error;
  std::filesystem::directory_iterator at(path, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const auto name = ParseName(at->path().filename().string());
    if (name) folder.files_[name->shard].push_back(name->first);
  }
  if (error) {
    return Status(Code::kInvalidArgument, "cannot read the archive's folder " + path + ": " + error.message());
  }
  for (auto& [shard, places] : folder.files_) std::ranges::sort(places);
  return folder;
}

const std::vector<Place>& ArchiveFolder::FirstPlaces(uint32_t shard) const {
  static const std::vector<Place> none;
  const auto found = files_.find(shard);
  return found == files_.end() ? none : found->second;
}

Result<ArchiveFileReader> ArchiveFolder::OpenFile(const RingIdentity& identity, Place first) const {
  const std::string path = PathOf(path_, identity.shard, first);
  auto reader = ArchiveFileReader::Open(path);
  if (!reader.ok()) return reader.status();
  const ArchiveHeader& header = reader->header();
  if (header.uuid != identity.uuid) {
    return Status(Code::kInvalidArgument, "archive file " + path + ": it belongs to another pool");
  }
  if (header.secret != identity.secret) {
    return Status(Code::kInvalidArgument, "archive file " + path + ": it belongs to another journal of the pool");
  }
  if (header.shard != identity.shard || header.first != first) {
    return Status(Code::kCorruption, "archive file " + path + ": its header is of another file");
  }
  return reader;
}

}  // namespace erda::journal
