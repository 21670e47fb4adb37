#include "inspect/key_evidence.h"

#include <algorithm>

namespace erda::inspect {

using format::ObjectState;
using format::ObjectView;

namespace {

// Returns the number of the version at this hash, or 0.
uint64_t NumberAt(const std::unordered_map<uint64_t, uint64_t>& versions, uint64_t key_hash) {
  const auto at = versions.find(key_hash);
  return at == versions.end() ? 0 : at->second;
}

}  // namespace

KnownVersion* KeyEvidence::BestOf(uint64_t key_hash, std::string_view key) {
  for (uint64_t at = key_hash;; ++at) {
    KnownVersion& best = best_[at];
    if (best.none() || bytes_.KeyAt(best.offset()) == key) return &best;
  }
}

void KeyEvidence::AddNamed(const FoundObject& object, uint64_t flags) {
  const uint64_t version = object.view.header.version;
  KnownVersion* const best = BestOf(object.view.header.key_hash, object.view.key);
  if (!best->none() && best->number() >= version) return;
  *best = {version, object.offset, flags};
}

void KeyEvidence::AddValue(const ObjectView& view, uint64_t offset, bool proven) {
  const uint64_t version = view.header.version;
  const uint64_t key_hash = view.header.key_hash;
  if (bytes_.geometry().ShardOf(key_hash) != bytes_.shard()) return;
  if (view.state != ObjectState::kWhole) {
    KnownVersion& newest = unfinished_[key_hash];
    if (newest.none() || version > newest.number()) newest = {version, offset};
    return;
  }
  KnownVersion* const best = BestOf(key_hash, view.key);
  if (best->none()) {
    *best = {version, offset};
    return;
  }
  // The cleaner copied the damaged version, or the damaged version is the copy.
  const bool is_copy = version == best->number() && best->is(KnownVersion::kDamaged);
  const bool named = best->is(KnownVersion::kNamed);
  if (named && version > best->number() && !proven && !newest_) {
    uint64_t& newest = unproven_[key_hash];
    newest = std::max(newest, version);
  } else if (is_copy) {
    *best = {version, offset, KnownVersion::kNamed};
  } else if (version > best->number()) {
    // The key stays named. Nothing that is not proven takes the place of this version then.
    *best = {version, offset, named ? uint64_t{KnownVersion::kNamed} : 0};
  } else if (best->is(KnownVersion::kDamaged)) {
    KnownVersion& before = before_[best->offset()];
    if (before.none() || version > before.number()) before = {version, offset};
  }
}

void KeyEvidence::AddTombstone(uint64_t key_hash, uint64_t version) {
  uint64_t& newest = tombstones_[key_hash];
  newest = std::max(newest, version);
}

bool KeyEvidence::HasTombstoneAfter(uint64_t key_hash, uint64_t version) const {
  return NumberAt(tombstones_, key_hash) > version;
}

bool KeyEvidence::HasUnprovenAfter(uint64_t key_hash, uint64_t version) const {
  return NumberAt(unproven_, key_hash) > version;
}

KnownVersion KeyEvidence::Before(const KnownVersion& damaged) const {
  const auto at = before_.find(damaged.offset());
  return at == before_.end() ? KnownVersion() : at->second;
}

KnownVersion KeyEvidence::UnfinishedAfter(uint64_t key_hash, uint64_t version) const {
  const auto at = unfinished_.find(key_hash);
  return at == unfinished_.end() || at->second.number() <= version ? KnownVersion() : at->second;
}

}  // namespace erda::inspect
