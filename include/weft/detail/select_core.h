// What select() needs of the runtime: cases of which only the kind, the channel and a place for the value are known.
#pragma once

#include <weft/detail/chan_core.h>
#include <weft/detail/time.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stop_token>
#include <utility>

namespace weft::detail {

enum class case_kind : std::uint8_t { inert, recv, send, stop };  // inert: default, timeout

// One case while it waits. Who binds it sets kind, channel and value; the rest is the runtime's.
struct select_slot : chan_waiter {
  chan_core* channel;        // null: nil channel, or not a channel
  std::uint32_t by_address;  // slots[i].by_address is the slot whose channel is the i-th, in the order of locking
  case_kind kind;
};

struct select_plan {
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  std::size_t default_case = none;
  std::size_t timeout_case = none;
  std::int64_t timeout_ns = no_deadline;
  bool has_stop = false;
  std::uint32_t ordered = 0;  // by_address is right for so many channels, from the last time
};

// The stop token of a case; the slot's value points to it.
struct stop_waiter {
  struct on_request {
    select_state* state;
    std::uint32_t index;
    void operator()() const noexcept;
  };

  std::stop_token token;
  std::optional<std::stop_callback<on_request>> callback;
};

// Waits until one case can go on, does what it has to do, and returns its index. Its slot says in `delivered` whether a
// receive has a value (true) or the channel is closed. channel_error: a send on a closed channel was chosen.
std::size_t select_wait(select_slot* slots, std::size_t n, select_plan& plan);

// A channel that a case refers to. From a handle that somebody else keeps it borrows; a handle that is given to it, it
// keeps.
class case_channel {
 public:
  explicit case_channel(const chan_ptr& borrowed) noexcept : core_(borrowed.get()) {}
  explicit case_channel(chan_ptr&& given) noexcept : core_(given.give_up()), owns_(true) {}
  case_channel(const case_channel&) = delete;
  case_channel& operator=(const case_channel&) = delete;
  ~case_channel() {
    if (owns_) chan_ptr::release(core_);
  }

  chan_core* get() const noexcept { return core_; }
  chan_ptr share() const noexcept {
    chan_ptr::retain(core_);
    return chan_ptr(core_);
  }

 private:
  chan_core* core_;
  bool owns_ = false;
};

}  // namespace weft::detail
