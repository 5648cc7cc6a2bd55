#include "sched/tracing.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "gmp/current.h"
#include "os/clock.h"
#include "sched/stack.h"

namespace weft::sched {
namespace {

using trace::event;
using trace::kind;
using trace::why;

constexpr std::size_t longest_name = 64;
constexpr std::uint32_t most_together = 2 + longest_name / 16;

std::uint64_t spawned_at(const record* body) noexcept {
  return body != nullptr ? reinterpret_cast<std::uintptr_t>(body->creator_pc) : 0;
}

std::uint64_t address(const record* r) noexcept { return reinterpret_cast<std::uintptr_t>(r); }

event origin_of(const record* body) noexcept {
  return {.kind = kind::origin, .a = body != nullptr ? body->creator : 0, .b = spawned_at(body)};
}

// In pieces, after the event that it belongs to.
template <class Add>
void add_name(std::string_view name, Add add) noexcept {
  name = name.substr(0, longest_name);
  for (std::size_t at = 0; at < name.size(); at += 16) {
    event piece{.kind = kind::name, .number = static_cast<std::uint32_t>(name.size())};
    const std::string_view rest = name.substr(at);
    std::memcpy(&piece.a, rest.data(), std::min<std::size_t>(rest.size(), 8));
    if (rest.size() > 8) std::memcpy(&piece.b, rest.data() + 8, std::min<std::size_t>(rest.size() - 8, 8));
    add(piece);
  }
}

// With its name, if it has one.
void add_named(processor* p, const event& e, const record* body) noexcept {
  p->log->make_room(most_together);
  p->log->add(e);
  if (body != nullptr && body->ops != nullptr && body->ops->extras != nullptr) {
    add_name(gmp::name_of(body), [p](const event& piece) { p->log->add(piece); });
  }
}

void add_start(processor* p, const goroutine* g, std::int64_t now) noexcept {
  add_named(p, {.when = now, .kind = kind::started, .a = g->id, .b = spawned_at(g->body)}, g->body);
}

void add_stop(processor* p, const goroutine* g, why w, std::int64_t now) noexcept {
  p->log->add({.when = now, .kind = kind::stopped, .why = w, .reason = static_cast<std::uint8_t>(g->reason.get()), .a = g->id});
}

// Why a goroutine that is being switched away from does not run on; its end has been told already.
void add_departure(processor* p, const goroutine* g, std::int64_t now) noexcept {
  const status state = g->state.load(std::memory_order_relaxed);
  if (state == status::dead) return;
  add_stop(p, g, state == status::waiting ? why::waiting : why::runnable, now);
}

// In which state the trace finds a goroutine while the world is stopped.
why state_of(const goroutine& g) noexcept {
  switch (g.state.load(std::memory_order_acquire)) {  // [g.state]
    case status::waiting:
      return why::waiting;
    case status::syscall:
      return why::in_call;
    case status::detached: {
      const machine* m = g.on_machine;
      const bool in_call = m != nullptr && m->curg == &g && m->revoked.load(std::memory_order_relaxed) == gmp::p_in_call;
      return in_call ? why::in_call : why::preempted;
    }
    case status::preempted:
      return why::preempted;
    default:
      return why::runnable;
  }
}

void add_found(const event& e, const record* body) noexcept {
  trace::add_outside(e);
  trace::add_outside(origin_of(body));
  add_name(gmp::name_of(body), &trace::add_outside);
}

void add_found(const goroutine& g, std::int64_t now) noexcept {
  if (g.state.load(std::memory_order_acquire) == status::dead) return;
  add_found({.when = now, .kind = kind::found, .why = state_of(g), .reason = static_cast<std::uint8_t>(g.reason.get()), .a = g.id}, g.body);
  for (const gmp::lender* l = g.lender; l != nullptr; l = l->outer) {
    add_found({.when = now, .kind = kind::found, .why = why::waiting, .reason = static_cast<std::uint8_t>(l->reason), .a = l->id}, l->body);
  }
}

}  // namespace

void trace_switch(processor* p, const goroutine* from, const goroutine* to) noexcept {
  const std::int64_t now = os::now_ns();
  if (from != nullptr) add_departure(p, from, now);
  if (to != nullptr) add_start(p, to, now);
}

void trace_start(processor* p, const goroutine* g) noexcept { add_start(p, g, os::now_ns()); }

void trace_stop(processor* p, const goroutine* g, why w) noexcept { add_stop(p, g, w, os::now_ns()); }

void trace_lending(processor* p, const goroutine* g, const gmp::lender& l) noexcept {
  p->log->add({.when = os::now_ns(), .kind = kind::stopped, .why = why::waiting, .reason = static_cast<std::uint8_t>(l.reason), .a = g->id});
}

void trace_birth(processor* p, const goroutine* g) noexcept {
  p->log->make_room(most_together);
  p->log->add({.when = os::now_ns(), .kind = kind::born, .a = g->id, .b = address(g->body)});
  add_named(p, origin_of(g->body), g->body);
}

void trace_spawn(processor* p, const record* r) noexcept { p->log->add({.when = os::now_ns(), .kind = kind::spawned, .a = r->creator, .b = address(r)}); }

void trace_ready(processor* p, const goroutine* g) noexcept {
  const machine* m = gmp::current_machine();
  const std::uint64_t by = m != nullptr && m->curg != nullptr ? m->curg->id : 0;
  p->log->add({.when = os::now_ns(), .kind = kind::readied, .a = g->id, .b = by});
}

void trace_steal(processor* thief, const processor* victim, std::uint32_t moved) noexcept {
  thief->log->add({.when = os::now_ns(), .kind = kind::stole, .number = moved, .a = static_cast<std::uint64_t>(victim->id)});
}

void trace_thread(processor* p, const machine* m) noexcept {
  p->log->add({.when = os::now_ns(), .kind = kind::on_thread, .number = static_cast<std::uint32_t>(m->tid)});
}

void trace_spawn_outside(const record* r) noexcept {
  if (trace::is_on()) trace::add_outside({.when = os::now_ns(), .kind = kind::spawned, .b = address(r)});
}

void trace_ready_outside(const goroutine* g) noexcept {
  if (trace::is_on()) trace::add_outside({.when = os::now_ns(), .kind = kind::readied, .a = g->id});
}

void trace_world(kind stops_or_goes) noexcept {
  if (trace::is_on()) trace::add_outside({.when = os::now_ns(), .kind = stops_or_goes});
}

void trace_population() noexcept {
  const std::int64_t now = os::now_ns();
  for_each_goroutine([now](const goroutine& g) { add_found(g, now); });
}

void attach_logs() noexcept {
  for (auto& slot : sched.all_ps) {
    processor* p = slot.load(std::memory_order_acquire);
    if (p == nullptr) break;
    p->log = trace::log_of(p->id);
  }
}

}  // namespace weft::sched
