#include "server/requests/writer_queue.h"

namespace erda::server {

namespace {

// How long others may wait for a writer.
constexpr Nanoseconds kWriterAwaitedMax = std::chrono::seconds(3);

}  // namespace

void WriterQueue::Add(const Awaiting& awaiting) {
  requests_.push_back(awaiting);
  ++awaiting.request.session->awaiting_writer;
}

WriterQueue::Awaiting WriterQueue::Take() {
  const Awaiting each = requests_.front();
  requests_.pop_front();
  --each.request.session->awaiting_writer;
  return each;
}

bool WriterQueue::CountWake(Awaiting& each, bool looks) {
  const bool due = ++each.wakes >= each.next_look || looks;
  if (due) {
    each.next_look = 2 * each.wakes;
    each.looked = each.overdue;
  }
  return due;
}

// The value of a late writer may be there, though the shard has not looked. So the next Wake looks first.
bool WriterQueue::IsWriterLate(Awaiting& each, Nanoseconds since) const {
  if (!std::exchange(each.told, true)) return false;
  each.waited += since;
  if (each.waited < kWriterAwaitedMax || !versions_.judging().AwaitsWriter(each.present)) return false;
  if (!std::exchange(each.overdue, true)) each.next_look = 0;
  return each.looked;
}

void WriterQueue::Forget(const Session& session) {
  std::erase_if(requests_, [&](const Awaiting& each) { return each.request.session == &session; });
}

bool WriterQueue::Has(const Session& session, uint32_t slot) const {
  return std::ranges::any_of(requests_, [&](const Awaiting& each) { return each.request.IsOf(session, slot); });
}

}  // namespace erda::server
