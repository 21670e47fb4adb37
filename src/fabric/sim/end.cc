#include "fabric/sim/end.h"

#include <utility>

namespace erda::fabric {

void SimEnd::Complete(OpKind kind, const WorkRequest& request, Code code) {
  const auto bytes = code == Code::kOk ? static_cast<uint32_t>(request.local.size()) : 0;
  queue->Push({.channel = channel, .kind = kind, .code = code, .id = request.id, .bytes = bytes, .data = {}});
}

void SimEnd::Receive(OpKind kind, uint32_t imm, uint32_t bytes, std::vector<std::byte> message) {
  queue->Push({.channel = channel, .kind = kind, .imm = imm, .bytes = bytes, .data = {}}, std::move(message));
}

void SimEnd::Hold(Channel* held, const ChannelOptions& options) {
  channel = held;
  queue = static_cast<SimQueue*>(options.queue);
  ++queue->channels;
  for (Region* region : options.offer) offer.push_back(static_cast<SimRegion*>(region));
  for (SimRegion* region : offer) ++region->channels;
}

void SimEnd::Release() {
  queue->Forget(channel);
  --queue->channels;
  for (SimRegion* region : offer) --region->channels;
  channel = nullptr;
  queue = nullptr;
  offer.clear();
  windows.clear();
  closing.clear();
}

bool SimEnd::Permits(const WorkRequest& request) const {
  const size_t size = request.local.size();
  if (request.kind == OpKind::kSend || size == 0) return true;
  const auto [number, at, key] = request.remote;
  if (number >= offer.size()) return false;
  const SimRegion* const region = offer[number];
  const auto within = [size, offset = at](uint64_t begin, uint64_t bytes) {
    return offset >= begin && size <= bytes && offset - begin <= bytes - size;
  };
  if (key != 0) {
    const auto window = windows.find(key);
    return request.kind != OpKind::kRead && window != windows.end() && window->second.region == region &&
           within(window->second.offset, window->second.size);
  }
  if (!within(0, region->bytes().size())) return false;
  return request.kind == OpKind::kRead || region->access() == Access::kRemoteReadWrite;
}

std::byte* SimEnd::BytesOf(const WorkRequest& request) const {
  return offer[request.remote.region]->bytes().data() + request.remote.offset;
}

}  // namespace erda::fabric
