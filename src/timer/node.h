// A timer: what to call, and where it is. The memory is the owner's (a goroutine's stack, a timer object, a poll
// descriptor); a heap only points to it.
//
// States, all of them told by two words, home_ and slot_:
//
//             add                      add, reset                  run: period > 0
//   fresh ----------> pending <-------------------------- idle     (stays pending, with a later deadline,
//                      |   ^                               ^        before the callback is entered)
//                      |   |  reset, add: new deadline     |
//                      |   +--- move_all: another home     |
//                      +-----------------------------------+
//                           stop, stop_sync; run: period == 0, before the callback is entered
//
//   fresh    home_ == null                  no operation but add changes it
//   pending  home_ == h, slot_ != 0         in h's heap, in that slot
//   idle     home_ == h, slot_ == 0         in no heap; h is where it was last, and whose lock guards it
//
// Each transition is made by whoever holds the lock of home_ (of both homes, for move_all), except fresh's: a
// compare-and-swap of home_ picks one of several first adds, unless there can be no other (add_fresh). home_ itself
// changes only under the lock of the old home: lock, look again whether home_ is still the same, and the node stands
// still. While a stop_sync() waits for the callback, an idle node stays idle: adds and resets are stopped as they come.
//
// Whether a callback runs right now is not a state of the node but noted in the heap that calls it (heap::calls_), so
// that nothing touches a node after its callback was entered: see heap.h on when a node may be destroyed.
//
// Orderings:
//   [timer.home]  home_ is stored with release and loaded with acquire. The acquire hands over the heap itself, and
//                 what was done to the node under the lock of its former home.
//   slot_ is written under the lock. Read without it, it is only a hint for which any recent value will do: relaxed.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::timers {

class heap;

// Short, never blocks, never throws. `seq` is the one given to the add or reset that set this deadline; `lateness_ns`,
// at least 0, is how far the deadline lies before the `now` that run() was given.
using callback = void (*)(void* arg, std::uint64_t seq, std::int64_t lateness_ns) noexcept;

class timer_node {
 public:
  constexpr timer_node(callback fn, void* arg) noexcept : fn_(fn), arg_(arg) {}
  timer_node(const timer_node&) = delete;
  timer_node& operator=(const timer_node&) = delete;
  // Fatal while pending.
  ~timer_node() {
    if (pending()) destroyed_while_pending();
  }

  // A hint, unless the caller knows that nobody else uses the node.
  bool pending() const noexcept { return slot_.load(std::memory_order_relaxed) != 0; }

 private:
  friend class heap;
  friend class quad_heap;

  [[noreturn]] void destroyed_while_pending() const noexcept;

  std::atomic<heap*> home_{nullptr};
  std::atomic<std::uint32_t> slot_{0};  // written through quad_heap alone
  // All below: under the lock of home_.
  std::uint16_t stoppers_ = 0;  // stop_sync()s that wait for the callback
  bool refused_ = false;        // it was to be made pending meanwhile
  std::int64_t period_ = 0;
  std::uint64_t seq_ = 0;
  const callback fn_;
  void* const arg_;
};

}  // namespace weft::timers
