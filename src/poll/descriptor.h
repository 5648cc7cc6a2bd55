// What the poller knows of one file descriptor: who waits for it to be readable, who for it to be writable.
//
// A slot is one word, and every arrow one compare-and-swap (or exchange) of it:
//
//            notify                          announce
//     idle ----------> ready        idle ----------------> waiter     the one who waits, before it parks
//       ^                |             ^                      |
//       +----------------+             +----------------------+       notify: the poller saw an event
//            announce: the                                            nudge:  somebody wants the waiter to look again
//            readiness is used up                                     withdraw: the waiter itself, its deadline came
//
//     any of them --close--> closed --reset (nobody uses the descriptor)--> idle
//
// Whoever makes the arrow away from `waiter` has the waiter in its hands, and nobody else does: it wakes it, once. (In
// poll/ that means: puts it into a list; sched/ wakes.) `ready` may be out of date: whoever is told "ready" tries its
// system call again, and comes back if that says EAGAIN. It is never missing, and that is all that edge-triggered
// epoll asks for: an event that comes after the EAGAIN and before announce() leaves `ready` behind, which announce()
// finds; one that comes later finds the waiter.
//
//   [slot.waiter]    release by announce(), acquire by who takes the waiter: the record on its stack
//   [slot.closed]    release by close(), acquire by who finds it
//   [poll.deadline]  set_deadline() stores the deadline and then looks for a waiter; a waiter announces itself and then
//                    looks at the deadline again. All four are seq_cst: one of the two sees the other.
//
// Descriptors are never given back to the system: an event that epoll_wait() has already returned may be looked at long
// after the descriptor was closed and used again. Its tag tells (as a rule; if the tag has come round, somebody is
// told "ready" in vain).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace weft::poll {

inline constexpr std::int64_t no_deadline = std::numeric_limits<std::int64_t>::max();

// One wait, on the waiter's stack. What else there is to it is sched's matter.
struct waiter {
  waiter* next = nullptr;  // of who holds it
};

// Waiters that were taken out of their slots and are to be woken.
class ready_list {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  std::uint32_t size() const noexcept { return size_; }

  void add(waiter* w) noexcept {
    if (w == nullptr) return;
    w->next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = w;
    last_ = w;
    ++size_;
  }

  const waiter* first() const noexcept { return first_; }

  waiter* pop() noexcept {
    waiter* w = first_;
    if (w == nullptr) return nullptr;
    first_ = w->next;
    if (first_ == nullptr) last_ = nullptr;
    --size_;
    return w;
  }

 private:
  waiter* first_ = nullptr;
  waiter* last_ = nullptr;
  std::uint32_t size_ = 0;
};

enum class announced { waiting, ready, closed };

class slot {
 public:
  // waiting: `w` belongs to whoever takes it, until it is woken or has withdrawn itself.
  announced announce(waiter& w) noexcept;

  // True: nobody has taken `w`, and nobody will.
  bool withdraw(waiter& w) noexcept;

  // These return the waiter that the caller has to wake, if there is one.
  waiter* notify() noexcept;
  waiter* nudge() noexcept;
  waiter* close() noexcept;

  // Who has seen an event, and that this holds after it, need not notify: whoever uses it up tries its call after that. [slot.used]
  bool is_ready() const noexcept { return word_.load(std::memory_order_seq_cst) == ready; }

  // Not to be touched: it may be gone. For who wants its cache lines to be there by the time he takes it.
  waiter* likely_waiter() const noexcept;

  bool is_closed() const noexcept { return word_.load(std::memory_order_acquire) == closed; }  // [slot.closed]

  std::int64_t deadline() const noexcept { return deadline_.load(std::memory_order_seq_cst); }    // [poll.deadline]
  void set_deadline(std::int64_t ns) noexcept { deadline_.store(ns, std::memory_order_seq_cst); }  // [poll.deadline]

  // Nobody uses the descriptor.
  void reset() noexcept;

 private:
  static constexpr std::uintptr_t idle = 0, ready = 1, closed = 2;  // anything else is a waiter

  waiter* take(bool leave_ready) noexcept;

  std::atomic<std::uintptr_t> word_{closed};
  std::atomic<std::int64_t> deadline_{no_deadline};
};

enum direction : std::uint8_t { reading = 0, writing = 1 };

struct alignas(64) descriptor {
  slot slots[2];
  std::atomic<std::uint32_t> tag{0};   // changes with each use of the descriptor
  // The other side has hung up, there is an error, or urgent data: from now on a short read does not mean that there is
  // nothing more to read without another event. Stored before the slots are notified.
  std::atomic<bool> exceptional{false};
  descriptor* next_free = nullptr;
};

// A fresh one, and back. In a section.
descriptor* take_descriptor() noexcept;
void put_descriptor(descriptor* d) noexcept;

// Waiters in slots, of all descriptors. Where there are none, nobody needs to poll. (For a moment it may be too high.)
// [poll.count] seq_cst: a waiter that comes from a plain thread counts itself and then looks whether somebody polls; an M
// that does not poll says so and then looks at the count.
bool any_waiter() noexcept;
std::uint64_t waiter_count() noexcept;  // what whoever is counted did before, has happened

}  // namespace weft::poll
