#include "server/reference.h"

#include <algorithm>

#include "server/readers.h"

namespace erda::server {

Reference::Handle Reference::Newest(const Key& key) {
  for (auto it = key.versions.rbegin(); it != key.versions.rend(); ++it) {
    if ((*it)->whole || (*it)->live) return *it;
  }
  return nullptr;
}

void Reference::Settle(const Handle& version) {
  version->settled = true;
  if (!version->awaits_commit) version->open = false;
}

void Reference::Raise(Key& key, const Handle& version) {
  const auto at = [&](const Handle& v) { return std::find(key.versions.begin(), key.versions.end(), v); };
  if (version->superseded || version->ack != Ack::kPersisted) return;
  if (!key.floor || at(key.floor) < at(version)) key.floor = version;
}

void Reference::Inline(const std::string& key, const std::string& value, Ack ack) {
  Key& k = keys_[key];
  if (const Handle newest = Newest(k); newest && newest->whole) Settle(newest);
  const auto version = std::make_shared<Version>(Version{key, value, ack});
  version->whole = true;
  version->settled = true;
  k.versions.push_back(version);
  Raise(k, version);
}

Reference::Handle Reference::Reserve(const std::string& key, const std::string& value, Ack ack, SessionId session) {
  Key& k = keys_[key];
  if (const Handle newest = Newest(k); newest && newest->whole) Settle(newest);
  const auto version = std::make_shared<Version>(Version{key, value, ack, session});
  const auto of_session = flushes_.find(session);
  const format::FlushMethod flush = of_session == flushes_.end() ? flush_ : of_session->second;
  version->awaits_commit = ack == Ack::kPersisted && flush == format::FlushMethod::kServerFlush;
  version->flushed_by_read = ack == Ack::kPersisted && flush == format::FlushMethod::kReadAfterWrite;
  version->open = true;
  version->live = true;
  k.versions.push_back(version);
  reservations_.push_back(version);
  return version;
}

std::optional<Code> Reference::Commit(const Handle& version) {
  if (!version->open || !version->awaits_commit) return std::nullopt;
  if (!version->whole) return Code::kCorruption;
  version->settled = true;
  version->open = false;
  Raise(keys_[version->key], version);
  return Code::kOk;
}

Code Reference::Delete(const std::string& key) {
  Key& k = keys_[key];
  if (const Handle newest = Newest(k); newest && newest->whole) Settle(newest);
  if (const Handle newest = Newest(k); newest && !newest->whole) {
    for (const Handle& version : reservations_) {
      if (version->key == key && version->open && version->whole) Settle(version);
    }
    std::erase_if(reservations_, [](const Handle& version) { return !version->open; });
  }
  const bool visible = std::any_of(k.versions.begin(), k.versions.end(), [](const Handle& v) { return v->whole; });
  if (!visible) return Code::kNotFound;
  for (const Handle& version : k.versions) version->superseded = true;
  k = {};
  return Code::kOk;
}

void Reference::EndSession(SessionId session) {
  for (const Handle& version : reservations_) {
    if (version->session == session && version->open && version->whole) {
      version->settled = true;
      version->open = false;
    }
  }
  for (const Handle& version : reservations_) {
    if (version->session != session || !version->open) continue;
    const Handle before = version->superseded ? nullptr : Newest(keys_[version->key]);
    version->open = false;
    version->live = false;
    if (before != version) continue;
    const Handle after = Newest(keys_[version->key]);
    if (after && after->whole) Settle(after);
  }
  std::erase_if(reservations_, [](const Handle& version) { return !version->open; });
}

void Reference::Sweep() {
  for (const Handle& version : reservations_) {
    if (version->open && version->whole) Settle(version);
  }
  std::erase_if(reservations_, [](const Handle& version) { return !version->open; });
}

std::string Reference::Get(const std::string& key) const {
  const auto it = keys_.find(key);
  if (it == keys_.end()) return std::string(kAbsent);
  const auto& versions = it->second.versions;
  const auto found = std::find_if(versions.rbegin(), versions.rend(), [&](const Handle& v) { return Visible(*v); });
  return found == versions.rend() ? std::string(kAbsent) : (*found)->value;
}

Reference::Handle Reference::Seen(const std::string& key, const std::string& value) {
  Key& k = keys_[key];
  const auto it =
      std::find_if(k.versions.begin(), k.versions.end(), [&](const Handle& v) { return v->value == value; });
  if (it == k.versions.end()) return nullptr;
  Raise(k, *it);
  return *it;
}

std::string Reference::AfterCrash(const std::string& key) const {
  const auto it = keys_.find(key);
  if (it == keys_.end()) return std::string(kAbsent);
  const auto& versions = it->second.versions;
  const auto found = std::find_if(versions.rbegin(), versions.rend(), [](const Handle& v) { return v->whole; });
  return found == versions.rend() ? std::string(kAbsent) : (*found)->value;
}

std::set<std::string> Reference::AfterPowerCut(const std::string& key) const {
  std::set<std::string> values;
  const auto it = keys_.find(key);
  if (it == keys_.end()) return {std::string(kAbsent)};
  const Key& k = it->second;
  for (auto version = k.versions.rbegin(); version != k.versions.rend(); ++version) {
    if ((*version)->whole) values.insert((*version)->value);
    if (*version == k.floor) return values;
  }
  values.insert(std::string(kAbsent));
  return values;
}

size_t Reference::in_flight() const {
  return static_cast<size_t>(
      std::count_if(reservations_.begin(), reservations_.end(), [](const Handle& v) { return v->open; }));
}

size_t Reference::in_flight(SessionId session) const {
  return static_cast<size_t>(std::count_if(reservations_.begin(), reservations_.end(),
                                           [&](const Handle& v) { return v->open && v->session == session; }));
}

size_t Reference::keys() const {
  return static_cast<size_t>(
      std::count_if(keys_.begin(), keys_.end(), [](const auto& key) { return Newest(key.second) != nullptr; }));
}

}  // namespace erda::server
