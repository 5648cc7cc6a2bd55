// All goroutines at one moment, as raw words. The world stands while they are gathered, and a goroutine that was stopped
// in place may hold malloc's lock or the loader's: so whatever is needed is allocated and looked up beforehand, and names
// for the addresses are found afterwards, when everybody runs again.
//
// Goroutines in their own code or in a blocking call do not notice that the world stands. Where they are is asked of the
// kernel, if their thread sleeps in it, and else of the thread itself (stand_still.h): census_detached.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "os/unwind.h"
#include "sched/scheduler.h"

namespace weft::sched {

class census {
 public:
  static constexpr std::size_t max_frames = 100;
  static constexpr std::size_t max_creators = 512;

  struct member {
    std::uint64_t id;
    std::uint64_t creator;         // 0: a plain thread
    std::uintptr_t creator_pc;     // where it called go()
    std::int64_t waiting_since;
    status state;                  // running, runnable, waiting or syscall
    detail::wait_reason reason;
    bool locked;                   // to its thread
    bool is_caller;                // it asked for the census
    std::uint32_t first_word;      // of its frames
    std::uint32_t frames;
    std::uint8_t name_size;
    char name[47];
  };
  // Goroutines that have not run yet, by where they were created.
  struct unborn {
    std::uintptr_t creator_pc;
    std::uint64_t creator;
    std::uint64_t count;
  };

  census();
  ~census();
  census(const census&) = delete;
  census& operator=(const census&) = delete;

  // Stops the world, if it is not, and gathers. From a plain thread.
  void take();
  // The same for a goroutine that waits somewhere in its own code until it is done.
  void take_for(const goroutine* g) {
    caller_ = g;
    take();
  }
  // From anywhere. A goroutine that calls it is listed as running, with the frames that it has here.
  void take_from_anywhere();

  std::span<const member> members() const noexcept { return {members_, count_}; }
  std::span<const unborn> never_started() const noexcept { return {unborn_, unborn_count_}; }
  std::span<const std::uintptr_t> frames(const member& m) const noexcept { return {words_ + m.first_word, m.frames}; }
  std::int64_t taken_at() const noexcept { return now_; }
  bool is_complete() const noexcept { return complete_; }

 private:
  // One that goes on while the world stands.
  struct runner {
    const goroutine* g;
    member* entry;
    machine* m = nullptr;  // null: it has come into the runtime meanwhile
    bool asked = false;    // to stand still
  };

  void gather() noexcept;
  void add(const goroutine& g) noexcept;
  void add_lender(const goroutine& g, const gmp::lender& l) noexcept;
  void add_queued(const runnable& r) noexcept;
  void add_unborn(const record& r) noexcept;
  static void set_name(member& m, const record* body) noexcept;
  void walk(const goroutine& g, member& m) noexcept;
  void walk_from(const os::machine_state& from, const goroutine& g, member& m) noexcept;
  void forget_walk(member& m) noexcept;
  static os::stack_bounds bounds_of(const goroutine& g) noexcept {
    return {reinterpret_cast<std::uintptr_t>(g.stack_low), reinterpret_cast<std::uintptr_t>(&g)};
  }
  // Not so while its thread runs on g0, or a signal handler on a stack of its own. A stack that overflows ends lower.
  static bool is_on_its_stack(const goroutine& g, std::uintptr_t sp) noexcept {
    constexpr std::uintptr_t overflow = 64 * 1024;
    return sp >= bounds_of(g).low - overflow && sp < bounds_of(g).high;
  }

  void walk_detached() noexcept;
  void find_machines() noexcept;
  bool walk_if_asleep(runner& r) noexcept;
  void walk_standing(runner& r) noexcept;
  void walk_last_resort(runner& r) noexcept;
  void walk_if_it_ran(const goroutine& g) noexcept;
  runner* runner_of(const goroutine* g) const noexcept;

  const os::code_map code_;
  const std::size_t capacity_;  // goroutines
  void* memory_;
  std::size_t bytes_;
  member* members_;
  std::uintptr_t* words_;
  runner* runners_;
  std::size_t count_ = 0, words_used_ = 0, runner_count_ = 0;
  unborn unborn_[max_creators];
  std::size_t unborn_count_ = 0;
  std::int64_t now_ = 0;
  bool complete_ = true;

  const goroutine* caller_ = nullptr;
  std::uintptr_t caller_frames_[max_frames];
  std::size_t caller_frame_count_ = 0;
};

}  // namespace weft::sched
