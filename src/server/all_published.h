// The proof that a shard has published all its puts. Functions that would tell of an unpublished put, or would end what
// protects it, take the proof by value. Nothing can copy or move a proof, so a caller makes it in the call itself:
// EndSession(batch.Publish(), session). A caller that forgets to publish does not compile. Neither does one that keeps
// a proof across a later put.
#pragma once

namespace erda::server {

// PublishBatch::Publish alone makes one.
class AllPublished {
 public:
  AllPublished(const AllPublished&) = delete;
  AllPublished& operator=(const AllPublished&) = delete;

 private:
  friend class PublishBatch;  // makes it, and nothing more: there is no state to reach
  AllPublished() = default;
};

}  // namespace erda::server
