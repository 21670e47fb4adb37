#include "client/get_op.h"

#include "base/bytes.h"

namespace erda::client {

using format::ObjectHeader;
using format::ObjectState;
using format::ObjectView;

uint64_t GetOp::OldVersion() const {
  const auto old = LoadAs<ObjectHeader>(old_header());
  const format::Place place = link->known.PlaceOf(head(), old_slot, entry.entry_word().old_address());
  const auto deadline_read = LoadAs<uint64_t>(old_header().subspan(format::kLabelOffset));
  const bool verifies =
      old.key_size == key_size && format::HeaderCrc(place, old, key_view(), deadline_read) == old.header_crc;
  return verifies ? old.version : 0;
}

bool GetOp::TakeKey(const ObjectView& view) {
  const bool of_tag = format::EntryMeta::TagOf(view.header.key_hash) == entry.entry_meta().tag();
  if (view.state == ObjectState::kNothing || view.key.empty() || !of_tag) return false;
  nameless = false;
  label_only = false;
  SetKey(view.key, view.header.key_hash);
  return true;
}

void GetOp::Tell(const VersionedView& value) {
  if (auto* get = std::get_if<Client::GetCallback>(&done)) {
    (*get)(Result<std::string_view>(value.value));
  } else if (auto* versioned = std::get_if<Client::GetVersionedCallback>(&done)) {
    (*versioned)(Result<VersionedView>(value));
  } else {
    std::get<EntryCallback>(done)(key_view(), Result<VersionedView>(value));
  }
}

void GetOp::Tell(const Status& status) {
  if (auto* get = std::get_if<Client::GetCallback>(&done)) {
    (*get)(Result<std::string_view>(status));
  } else if (auto* versioned = std::get_if<Client::GetVersionedCallback>(&done)) {
    (*versioned)(Result<VersionedView>(status));
  } else {
    std::get<EntryCallback>(done)(key_view(), Result<VersionedView>(status));
  }
}

}  // namespace erda::client
