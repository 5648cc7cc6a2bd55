// One select that waits: what its waiters on all the channels share. On the stack of who waits.
//
//   announced --hook-----------> parked --a waker on a channel, timer, stop--> claimed by case i
//       +-------timer, stop---------------------------------------------------> claimed by case i
//
// Each arrow is one compare-and-swap on `word`; whoever makes the one to "claimed" has won and is the only one that may
// touch the rest. From parked it also readies the goroutine, as its very last touch; from announced the goroutine is
// still on its way to sleep, and its hook finds out. Wakers on a channel never see announced: they find the waiters
// under the channel's lock, and the hook goes to parked before it releases the first one. A select without timer and
// stop therefore begins as parked.
#pragma once

#include <weft/detail/park.h>
#include <weft/detail/select_core.h>

#include <atomic>
#include <cstdint>

#include "base/delay.h"

namespace weft::detail {

struct select_state {
  static constexpr std::uint32_t announced = 0;
  static constexpr std::uint32_t parked = 1;
  static constexpr std::uint32_t first_claim = 2;

  std::atomic<std::uint32_t> word{parked};
  std::uint32_t channels = 0;  // how many slots have one
  std::uint32_t timeout_case = 0;
  goroutine* g = nullptr;
  select_slot* slots = nullptr;

  // A waker on a channel, holding its lock. True: it has won, hands over, and calls ready().
  bool claim(std::uint32_t index) noexcept {
    std::uint32_t expected = parked;
    base::delay();
    // [select.claim] acquire: what the selecting goroutine wrote before it parked
    return word.compare_exchange_strong(expected, first_claim + index, std::memory_order_acq_rel,
                                        std::memory_order_relaxed);
  }
  bool is_open() const noexcept { return word.load(std::memory_order_relaxed) == parked; }

  // A timer or a stop request. Readies the goroutine if it won and that one sleeps.
  void claim_from_outside(std::uint32_t index) noexcept {
    goroutine* const waiting = g;  // after a claim from announced the select may be gone
    std::uint32_t seen = word.load(std::memory_order_relaxed);
    while (seen == announced || seen == parked) {
      base::delay();
      if (!word.compare_exchange_weak(seen, first_claim + index, std::memory_order_acq_rel, std::memory_order_relaxed))
        continue;
      if (seen == parked) ready(waiting);
      return;
    }
  }

  bool is_claimed() const noexcept { return word.load(std::memory_order_acquire) >= first_claim; }
  std::uint32_t winner() const noexcept {
    return word.load(std::memory_order_acquire) - first_claim;
  }  // [select.claim]
};

}  // namespace weft::detail
