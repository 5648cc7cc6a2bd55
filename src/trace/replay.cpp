#include "trace/replay.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weft::trace {
namespace {

template <class Use>
void for_each_group(const recording& r, Use use) {
  for (const chunk* c = r.first; c != nullptr; c = c->next) {
    for_each_group(*c, [&](group g) { use(*c, g); });
  }
}

bool is_about_goroutine(kind k) {
  return k == kind::started || k == kind::stopped || k == kind::born || k == kind::found || k == kind::readied;
}

// What is known of a goroutine.
struct life {
  group introduction;          // names it
  std::optional<event> last;   // before the beginning
  std::optional<event> first;  // since then
  std::int32_t first_on = outside;
  std::uint64_t spawned_at = 0;
};

// Groups in chunks, as an encoder wants them.
class packer {
 public:
  explicit packer(std::function<void(const chunk&)> use) : use_(std::move(use)), chunk_(std::make_unique<chunk>()) {}

  void add(std::int32_t source, group g) {
    if (chunk_->count + g.size() > chunk::capacity || chunk_->source != source) flush();
    chunk_->source = source;
    chunk_->count = static_cast<std::uint32_t>(std::copy(g.begin(), g.end(), chunk_->events + chunk_->count) - chunk_->events);
  }
  void flush() {
    if (chunk_->count != 0) use_(*chunk_);
    chunk_->count = 0;
  }

 private:
  const std::function<void(const chunk&)> use_;
  const std::unique_ptr<chunk> chunk_;
};

class replayer {
 public:
  explicit replayer(const recording& r) : recording_(r), from_(r.complete_from) {
    if (from_ == 0) from_ = time_of_first_event();
    for_each_group(recording_, [this](const chunk& c, group g) { learn(c, g); });
  }

  void run(const std::function<void(const chunk&)>& use) const {
    packer b(use);
    for (const auto& [id, l] : lives_) introduce(b, id, l);
    for (const auto& [id, l] : lives_) {
      if (ran(l)) b.add(l.first_on, std::array{event{.when = from_, .kind = kind::started, .a = id, .b = l.spawned_at}});
    }
    b.flush();
    bool world_stands = false;
    for_each_group(recording_, [&](const chunk& c, group g) {
      const event& e = g.front();
      if (c.source == census || e.when < from_) return;
      if (e.kind == kind::world_stops) world_stands = true;
      if (e.kind == kind::world_goes && !std::exchange(world_stands, false)) return;  // the stop was before
      b.add(c.source, g);
    });
    b.flush();
  }

 private:
  std::int64_t time_of_first_event() const {
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    for_each_group(recording_, [&](const chunk&, group g) { first = std::min(first, g.front().when); });
    return first;
  }

  void learn(const chunk& c, group g) {
    const event& e = g.front();
    if (!is_about_goroutine(e.kind)) return;
    life& l = lives_[e.a];
    if (e.kind == kind::born || e.kind == kind::found) l.introduction = g;
    if (e.kind == kind::started) l.spawned_at = e.b;
    if (e.when < from_) {
      if (!l.last || l.last->when <= e.when) l.last = e;
    } else if (!l.first || e.when < l.first->when) {
      l.first = e;
      l.first_on = c.source;
    }
  }

  // It ran at the beginning.
  static bool ran(const life& l) { return l.first && l.first->kind == kind::stopped; }

  // Whoever is alive is in the census, and whoever has ended since then has said so.
  static bool was_there(const life& l) { return l.first && l.first->kind != kind::born; }

  // Its state at the beginning; it was there.
  event found(std::uint64_t id, const life& l) const {
    event e{.when = from_, .kind = kind::found, .why = why::runnable, .a = id};
    if (ran(l)) return e;
    const event* const told = l.first->kind == kind::found                ? &*l.first
                              : l.last && l.last->kind == kind::stopped ? &*l.last
                                                                          : nullptr;
    if (told != nullptr) {
      e.why = told->why;
      e.reason = told->reason;
    } else if (l.first->kind == kind::readied) {
      e.why = why::waiting;
    }
    return e;
  }

  void introduce(packer& b, std::uint64_t id, const life& l) const {
    if (!was_there(l)) return;
    std::vector<event> g{found(id, l)};
    if (!l.introduction.empty()) {
      g.insert(g.end(), l.introduction.begin() + 1, l.introduction.end());
    } else {
      g.push_back({.kind = kind::origin, .b = l.spawned_at});
    }
    b.add(outside, g);
  }

  const recording& recording_;
  std::int64_t from_;
  std::unordered_map<std::uint64_t, life> lives_;
};

}  // namespace

void replay(const recording& r, const std::function<void(const chunk&)>& use) { replayer(r).run(use); }

}  // namespace weft::trace
