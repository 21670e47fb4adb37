#include "client/c_results.h"

#include "base/c_api.h"

namespace erda::c_api {

namespace {

size_t ValueSizeIn(const Versioned& got) { return got.value.size(); }
size_t ValueSizeIn(uint64_t /*version*/) { return 0; }

void FillFrom(erda_result* result, const Versioned& got, Piece* piece, size_t* at) {
  result->value = piece->Copy(at, got.value);
  result->version = got.version;
  result->expires_ms = ExpiresMs(got.expires);
}
void FillFrom(erda_result* result, uint64_t version, Piece* /*piece*/, size_t* /*at*/) { result->version = version; }

template <class T>
erda_result* CopyAll(const std::vector<Result<T>>& all) {
  Piece piece;
  size_t bytes = 0;
  for (const auto& one : all) bytes += (one.ok() ? ValueSizeIn(*one) : one.status().message().size()) + 1;
  const size_t results_at = piece.Ask<erda_result>(all.size());
  size_t at = piece.Ask<char>(bytes);
  piece.Make();
  for (size_t i = 0; i < all.size(); ++i) {
    erda_result& result = piece.At<erda_result>(results_at)[i];
    result.message = "";
    if (all[i].ok()) {
      FillFrom(&result, *all[i], &piece, &at);
    } else {
      result.code = static_cast<erda_code>(all[i].status().code());
      result.message = piece.CopyText(&at, all[i].status().message());
    }
  }
  return piece.Release<erda_result>();
}

}  // namespace

erda_result* CopyResults(const std::vector<Result<Versioned>>& all) { return CopyAll(all); }
erda_result* CopyResults(const std::vector<Result<uint64_t>>& versions) { return CopyAll(versions); }

erda_scan_page* CopyPage(const ScanPage& from) {
  Piece piece;
  size_t bytes = 0;
  for (const auto& key : from.keys) bytes += key.key.size() + key.value.size() + 2;
  piece.Ask<erda_scan_page>(1);
  const size_t keys_at = piece.Ask<erda_scanned_key>(from.keys.size());
  size_t at = piece.Ask<char>(bytes);
  piece.Make();
  auto* keys = piece.At<erda_scanned_key>(keys_at);
  for (size_t i = 0; i < from.keys.size(); ++i) {
    const ScannedKey& key = from.keys[i];
    keys[i].key = piece.Copy(&at, key.key);
    keys[i].value = piece.Copy(&at, key.value);
    keys[i].version = key.version;
    keys[i].expires_ms = ExpiresMs(key.expires);
  }
  auto* page = piece.At<erda_scan_page>(0);
  page->keys = keys;
  page->count = from.keys.size();
  page->more = from.next ? 1 : 0;
  page->next = from.next.value_or(0);
  page->part = from.part;
  page->damaged = from.damaged;
  return piece.Release<erda_scan_page>();
}

erda_server_info* CopyInfo(const std::vector<std::pair<std::string, std::string>>& pairs) {
  Piece piece;
  size_t bytes = 0;
  for (const auto& [name, value] : pairs) bytes += name.size() + value.size() + 2;
  piece.Ask<erda_server_info>(1);
  const size_t names_at = piece.Ask<const char*>(pairs.size());
  const size_t values_at = piece.Ask<const char*>(pairs.size());
  size_t at = piece.Ask<char>(bytes);
  piece.Make();
  auto* names = piece.At<const char*>(names_at);
  auto* values = piece.At<const char*>(values_at);
  for (size_t i = 0; i < pairs.size(); ++i) {
    names[i] = piece.CopyText(&at, pairs[i].first);
    values[i] = piece.CopyText(&at, pairs[i].second);
  }
  auto* info = piece.At<erda_server_info>(0);
  info->names = names;
  info->values = values;
  info->count = pairs.size();
  return piece.Release<erda_server_info>();
}

}  // namespace erda::c_api
