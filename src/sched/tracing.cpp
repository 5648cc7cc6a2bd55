#include "sched/tracing.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "os/clock.h"
#include "sched/stack.h"

namespace weft::sched {
namespace {

using trace::event;
using trace::kind;
using trace::why;

constexpr std::size_t longest_name = 64;
constexpr std::size_t piece = 16;

std::uint64_t address(const record* r) noexcept { return reinterpret_cast<std::uintptr_t>(r); }

std::uint64_t spawned_at(const record* body) noexcept {
  return body != nullptr ? reinterpret_cast<std::uintptr_t>(body->creator_pc) : 0;
}

// An event and what is to be known of its goroutine: where it was spawned, and its name, in pieces.
class introduction {
 public:
  introduction(const event& e, const record* body, std::string_view name) noexcept {
    events_[count_++] = e;
    events_[count_++] = {.kind = kind::origin, .b = spawned_at(body)};
    name = gmp::beginning_of(name, longest_name);
    for (std::size_t at = 0; at < name.size(); at += piece) {
      events_[count_++] = {.kind = kind::name,
                           .number = static_cast<std::uint32_t>(name.size()),
                           .a = word(name, at),
                           .b = word(name, at + piece / 2)};
    }
  }

  std::span<const event> events() const noexcept { return {events_.data(), count_}; }

 private:
  static std::uint64_t word(std::string_view text, std::size_t at) noexcept {
    std::uint64_t w = 0;
    if (at < text.size()) std::memcpy(&w, text.data() + at, std::min(text.size() - at, sizeof w));
    return w;
  }

  std::array<event, 2 + longest_name / piece> events_;
  std::size_t count_ = 0;
};

void add_start(processor* p, const goroutine* g, std::int64_t now) noexcept {
  p->log->add({.when = now, .kind = kind::started, .a = g->id, .b = spawned_at(g->body)});
}

void add_stop(processor* p, std::uint64_t id, why w, detail::wait_reason reason, std::int64_t now) noexcept {
  p->log->add({.when = now, .kind = kind::stopped, .why = w, .reason = static_cast<std::uint8_t>(reason), .a = id});
}

// Why a goroutine that is being switched away from does not run on; its end has been told already.
void add_departure(processor* p, const goroutine* g, std::int64_t now) noexcept {
  const status state = g->state.load(std::memory_order_relaxed);
  if (state == status::dead) return;
  add_stop(p, g->id, state == status::waiting ? why::waiting : why::runnable, g->reason, now);
}

void add_outside(const event& e) noexcept { trace::add_outside({&e, 1}); }

// In which state the trace finds a goroutine while the world is stopped.
why state_of(const goroutine& g) noexcept {
  switch (g.state.load(std::memory_order_acquire)) {  // [g.state]
    case status::waiting:
      return why::waiting;
    case status::syscall:
      return why::in_call;
    case status::detached: {
      const machine* m = g.on_machine;
      const bool in_call =
          m != nullptr && m->curg == &g && m->revoked.load(std::memory_order_relaxed) == gmp::p_in_call;
      return in_call ? why::in_call : why::preempted;
    }
    case status::preempted:
      return why::preempted;
    default:
      return why::runnable;
  }
}

using sink = void (*)(std::span<const event>) noexcept;

void add_found(sink add, std::uint64_t id, why w, detail::wait_reason reason, const record* body, std::string_view name,
               std::int64_t now) noexcept {
  const event e{.when = now, .kind = kind::found, .why = w, .reason = static_cast<std::uint8_t>(reason), .a = id};
  add(introduction(e, body, name).events());
}

void add_found(sink add, const goroutine& g, std::int64_t now) noexcept {
  if (g.state.load(std::memory_order_acquire) == status::dead) return;
  // Also one that goes on meanwhile has its name still: see forget_extras().
  add_found(add, g.id, state_of(g), g.reason, g.body, g.name(), now);
  for (const gmp::lender* l = g.lender; l != nullptr; l = l->outer) {
    add_found(add, l->id, why::waiting, l->reason, l->body, gmp::name_of(l->body), now);
  }
}

}  // namespace

void trace_switch(processor* p, const goroutine* from, const goroutine* to) noexcept {
  const std::int64_t now = os::now_ns();
  if (from != nullptr) add_departure(p, from, now);
  if (to != nullptr) add_start(p, to, now);
}

void trace_start(processor* p, const goroutine* g) noexcept { add_start(p, g, os::now_ns()); }

void trace_stop(processor* p, const goroutine* g, why w) noexcept { add_stop(p, g->id, w, g->reason, os::now_ns()); }

void trace_lending(processor* p, const goroutine* g, const gmp::lender& l) noexcept {
  add_stop(p, g->id, why::waiting, l.reason, os::now_ns());
}

void trace_birth(processor* p, const goroutine* g) noexcept {
  const event e{.when = os::now_ns(), .kind = kind::born, .a = g->id, .b = address(g->body)};
  p->log->add(introduction(e, g->body, g->name()).events());
}

void trace_spawn(processor* p, const record* r) noexcept {
  p->log->add({.when = os::now_ns(), .kind = kind::spawned, .b = address(r)});
}

void trace_ready(processor* p, const goroutine* g) noexcept {
  p->log->add({.when = os::now_ns(), .kind = kind::readied, .a = g->id});
}

void trace_steal(processor* thief, const processor* victim, std::uint32_t moved) noexcept {
  thief->log->add(
      {.when = os::now_ns(), .kind = kind::stole, .number = moved, .a = static_cast<std::uint64_t>(victim->id)});
}

void trace_thread(processor* p, const machine* m) noexcept {
  p->log->add({.when = os::now_ns(), .kind = kind::on_thread, .number = static_cast<std::uint32_t>(m->tid)});
}

void trace_spawn_outside(const record* r) noexcept {
  if (trace::is_on()) add_outside({.when = os::now_ns(), .kind = kind::spawned, .b = address(r)});
}

void trace_ready_outside(const goroutine* g) noexcept {
  if (trace::is_on()) add_outside({.when = os::now_ns(), .kind = kind::readied, .a = g->id});
}

void trace_world(kind stops_or_goes) noexcept {
  if (trace::is_on()) add_outside({.when = os::now_ns(), .kind = stops_or_goes});
}

void begin_trace() noexcept {
  // Before it is on: whatever happens to a goroutine now is later than that it was found.
  const std::int64_t now = os::now_ns() - 1;
  trace::begin_logging();
  add_outside({.when = now, .kind = kind::world_stops});  // it stands, or does not exist yet
  for_each_goroutine([now](const goroutine& g) { add_found(trace::add_outside, g, now); });
  attach_logs();
}

void begin_recording(std::uint32_t chunks) noexcept {
  trace::begin_recording(chunks);
  attach_logs();
}

trace::recording take_recording() noexcept {
  const std::int64_t now = os::now_ns();
  for_each_goroutine([now](const goroutine& g) { add_found(trace::add_to_census, g, now); });
  return trace::take_recording();
}

void end_trace() noexcept {
  trace::end_logging();
  attach_logs();
}

void attach_logs() noexcept {
  for (auto& slot : sched.all_ps) {
    processor* p = slot.load(std::memory_order_acquire);
    if (p == nullptr) break;
    p->log = trace::log_of(p->id);
  }
}

}  // namespace weft::sched
