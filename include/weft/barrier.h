// barrier: as in std, for goroutines and plain threads alike.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <weft/detail/errno.h>

namespace weft {

namespace detail {

struct waiter;

// What barrier is made of, without the completion function.
//
//   word_   phase (upper half), arrivals that are missing (from bit 1), guard
//           An arrival is one subtraction. The one that leaves none missing has the barrier to itself: it runs the
//           completion function, and then begins the next phase and lets go of the guard with one store, having taken
//           the queue. It does not touch the barrier after that.
//   head_   the queue, behind the guard
//   expected_  arrivals in each phase from the next one on
//
//   [barrier.arrive] release: what came before an arrival is visible to the completion, which acquires
//   [barrier.phase]  release: what led to the end of a phase is visible to who sees the next one
class barrier_core {
 public:
  static constexpr std::ptrdiff_t max = std::numeric_limits<std::int32_t>::max() / 2;

  constexpr explicit barrier_core(std::ptrdiff_t expected) noexcept
      : word_(static_cast<std::uint64_t>(expected) * one), expected_(static_cast<std::uint64_t>(expected)) {}
  barrier_core(const barrier_core&) = delete;
  barrier_core& operator=(const barrier_core&) = delete;

  struct arrival {
    std::uint32_t phase;
    bool last;  // call complete()
  };
  arrival arrive(std::ptrdiff_t n);
  void drop() noexcept { expected_.fetch_sub(1, std::memory_order_relaxed); }  // before its arrive(1)

  // Ends the phase and wakes who waits for that.
  void complete() noexcept;

  void wait(std::uint32_t phase) noexcept;

 private:
  static constexpr std::uint64_t guard = 1, one = 2;

  bool queue_up(waiter& self, std::uint32_t phase) noexcept;

  std::atomic<std::uint64_t> word_;
  waiter* head_ = nullptr;
  std::atomic<std::uint64_t> expected_;
};

struct no_completion {
  void operator()() noexcept {}
};

}  // namespace detail

// The completion must not throw, as in std: std::terminate() if it does.
template <class CompletionFunction = detail::no_completion>
class barrier {
  static_assert(std::is_invocable_v<CompletionFunction&>, "the completion is called without arguments");

 public:
  class arrival_token {
   public:
    arrival_token(arrival_token&&) noexcept = default;
    arrival_token& operator=(arrival_token&&) noexcept = default;

   private:
    friend class barrier;
    explicit arrival_token(std::uint32_t phase) noexcept : phase_(phase) {}
    std::uint32_t phase_;
  };

  static constexpr std::ptrdiff_t max() noexcept { return detail::barrier_core::max; }

  constexpr explicit barrier(std::ptrdiff_t expected, CompletionFunction f = CompletionFunction())
      : core_(expected), completion_(std::move(f)) {
    if (expected < 0 || expected > max()) throw std::logic_error("weft::barrier: the count is out of range");
  }
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;

  // More arrivals than are missing in this phase are a std::logic_error.
  [[nodiscard]] arrival_token arrive(std::ptrdiff_t update = 1) {
    const auto a = core_.arrive(update);
    if (a.last) {
      complete();
    }
    return arrival_token(a.phase);
  }
  void wait(arrival_token&& arrival) const { core_.wait(arrival.phase_); }

  void arrive_and_wait() {
    const auto a = core_.arrive(1);
    if (a.last) {
      complete();
    } else {
      core_.wait(a.phase);
    }
  }
  void arrive_and_drop() {
    core_.drop();
    static_cast<void>(arrive(1));
  }

 private:
  void complete() noexcept {
    completion_();
    core_.complete();
  }

  mutable detail::barrier_core core_;
  [[no_unique_address]] CompletionFunction completion_;
};

}  // namespace weft
