// The one shared thing: the global queue, the idle Ms and Ps, the spinning count, and the state of the world.
//
// Lost wakeups. Two sides, each "publish, full barrier, look":
//   submit: put work in a queue (sequentially consistent read-modify-write of runnext, or the lock), then look at
//           idle_ps and spinning; if a P is idle and nobody spins, wake one.           [wake.submit]
//   idle:   put the P in the idle list (idle_ps goes up), stop spinning, then look at every queue once more. [wake.idle]
// Both looks are seq_cst, so at least one side sees the other. See idle.cpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/lock.h"
#include "base/note.h"
#include "base/time_histogram.h"
#include "gmp/machine.h"
#include "gmp/pointer_queue.h"
#include "gmp/processor.h"

namespace weft::sched {

using detail::record;
using detail::runnable;
using gmp::goroutine;
using gmp::machine;
using gmp::processor;
using gmp::processor_state;
using gmp::status;

inline constexpr int max_procs_limit = 1024;
inline constexpr std::uint32_t fairness_ticks = 61;

// The life of the runtime. Changed under `lifecycle` (lifecycle.cpp).
enum class phase : std::uint32_t { down, running, frozen };

inline constexpr std::int32_t run_thread_none = 0, run_thread_starting = -1;

struct scheduler {
  // Read whenever something becomes runnable; written when Ms fall asleep and wake up.
  alignas(64) std::atomic<std::int32_t> idle_ps{0};
  std::atomic<std::int32_t> spinning{0};
  std::atomic<std::int32_t> owed_spinners{0};  // of these, those that the factory has yet to make
  std::atomic<bool> need_spinning{false};  // somebody wanted to wake a spinner when no P was idle
  std::atomic<bool> futile{false};         // the last spinner found nothing but runnexts about to be run: see idle.cpp

  alignas(64) std::atomic<std::size_t> global_size{0};

  // Changes only while the world is stopped.
  alignas(64) std::atomic<std::int32_t> procs{0};
  std::atomic<bool> stopping{false};  // the world is, or is to be, stopped
  std::atomic<phase> life{phase::down};
  std::atomic<processor*> all_ps[max_procs_limit] = {};
  std::atomic<std::uint64_t> idle_mask[max_procs_limit / 64] = {};
  std::atomic<std::uint64_t> timer_mask[max_procs_limit / 64] = {};  // Ps that may have timers: [timer.mask] in timer/heap.h

  alignas(64) base::mutex lock{base::lock_rank::sched};
  gmp::pointer_queue global WEFT_GUARDED_BY(lock);
  // Goroutines stopped in place, in the order in which they were. They belong to the global queue (global_size counts
  // them; a ticket says where), but are kept apart, for they can be given a P even when no M is left to choose one.
  goroutine* stopped_first WEFT_GUARDED_BY(lock) = nullptr;
  goroutine* stopped_last WEFT_GUARDED_BY(lock) = nullptr;
  std::atomic<std::int32_t> stopped_in_place{0};             // how many; changed under the lock
  std::atomic<std::int32_t> loose{0};                        // Ms in user code whose P was taken; changed under the lock
  processor* idle_p_list WEFT_GUARDED_BY(lock) = nullptr;
  machine* idle_m_list WEFT_GUARDED_BY(lock) = nullptr;
  std::int32_t idle_ms WEFT_GUARDED_BY(lock) = 0;
  machine* ended_ms WEFT_GUARDED_BY(lock) = nullptr;          // without a thread, to be used again
  std::int32_t machines WEFT_GUARDED_BY(lock) = 0;           // alive or being created
  std::int32_t starting WEFT_GUARDED_BY(lock) = 0;           // spares asked of the factory, not there yet
  // Ms without a P that are on their way to the idle list or into the poller: as good as idle ones, and no reason to make
  // another thread. Who wants one while none is in the list leaves word (spinner_wanted), and the next one to come by
  // becomes the spinner that is counted already. Raised by the M itself, lowered under the lock, where it finds the word.
  std::atomic<std::int32_t> retiring{0};
  bool spinner_wanted WEFT_GUARDED_BY(lock) = false;
  std::int32_t reserve WEFT_GUARDED_BY(lock) = 1;            // idle Ms to keep; 2 once preemption has needed one
  std::int32_t max_threads WEFT_GUARDED_BY(lock) = 10'000;
  std::atomic<bool> threads_refused{false};  // an M was wanted, and max_threads forbade it
  std::atomic<machine*> all_ms{nullptr};                     // pushed under the lock, never removed
  std::int32_t stop_wait WEFT_GUARDED_BY(lock) = 0;          // Ps that the stopper still waits for
  base::futex_word stopped{0};
  bool sysmon_asleep WEFT_GUARDED_BY(lock) = false;
  base::note sysmon_note;

  alignas(64) std::atomic<std::uint64_t> next_goroutine_id{1};
  std::atomic<std::uint64_t> created_outside{0};  // by plain threads
  std::atomic<std::uint64_t> socket_ticket{0};    // whom the poller put into the global queue last: sysmon sees that it does not take long
  std::atomic<std::uint64_t> readied_outside{0};  // by who has no P: plain threads, sysmon
  std::atomic<std::int64_t> coarse_now{0};        // written by sysmon
  std::atomic<std::int32_t> threads{0};           // all threads of the runtime
  std::atomic<std::int64_t> poll_until{0};        // until when an M sleeps in the poller; 0: none does
  // The thread that waits in run() for the main goroutine, and does nothing else:
  //   none --run()--> starting --run(), once main is in a queue--> its number --the main goroutine, at its end--> none
  // or straight from starting to none, if main was faster.
  std::atomic<std::int32_t> run_thread{run_thread_none};
  std::atomic<bool> polling{false};               // somebody polls without waiting
  std::atomic<std::int32_t> threads_at_sockets{0};  // plain threads that wait for a descriptor: also while the runtime is frozen
  std::atomic<std::int64_t> poller_left{0};       // when the poller was left; 0: somebody has been there since
  std::atomic<bool> poller_stays_away{false};     // the last time, that took long
  // The M in the poller does not sleep: the next timer is nearly due. It is retiring, so it comes by the lock when it is done;
  // who has left word there calls it.
  std::atomic<bool> poller_watches{false}, poller_called{false};
  std::atomic<bool> poller_recalled{false};  // its thread is needed, and max_threads allows no other
  std::atomic<std::uint64_t> polls{0}, poll_waits{0}, poll_events{0}, poll_readied{0}, poll_by_sysmon{0};
  std::atomic<std::uint64_t> stops_in_place{0}, preempt_signals{0}, revoked_running{0}, revoked_blocked{0}, rotations{0};
  std::atomic<bool> sysmon_delivers{false};       // it may have goroutines in its hands
  std::atomic<bool> main_exited{false};           // by exit_goroutine()
  std::atomic<std::int64_t> mutex_wait_ns{0};     // in mutex::lock(), by those who had to park
  std::atomic<std::int64_t> stop_began{0};        // of the world
  base::time_histogram stopping_times, pause_times;
  std::atomic<std::uint64_t> machine_wakeups{0}, idle_sleeps{0}, slices_ended{0}, futile_wakes{0}, missed_wakes{0}, moves{0}, world_stops{0}, handoffs{0}, redistributed{0};
  std::atomic<std::uint64_t> threads_created{0}, sysmon_rounds{0};
};

extern scheduler sched;

// Plain threads go on, and count on no goroutine that is not done yet.
inline bool is_world_frozen() noexcept { return sched.life.load(std::memory_order_acquire) == phase::frozen; }

inline processor* processor_at(int i) noexcept { return sched.all_ps[i].load(std::memory_order_acquire); }

// Alive, queued or not. The ends first: one that comes and goes meanwhile must not make the difference negative.
inline std::uint64_t count_goroutines() noexcept {
  std::uint64_t created = 0, finished = 0;
  for (const auto& slot : sched.all_ps) {
    const processor* p = slot.load(std::memory_order_acquire);
    if (p == nullptr) break;
    finished += p->counters.finished.read();
  }
  for (const auto& slot : sched.all_ps) {
    const processor* p = slot.load(std::memory_order_acquire);
    if (p == nullptr) break;
    created += p->counters.created.read();
  }
  return sched.created_outside.load(std::memory_order_relaxed) + created - finished;
}

inline bool is_set_in(const std::atomic<std::uint64_t>* mask, int p) noexcept {
  return (mask[p / 64].load(std::memory_order_relaxed) >> (p % 64)) & 1;
}
inline bool is_idle(int p) noexcept { return is_set_in(sched.idle_mask, p); }
inline bool may_have_timers(int p) noexcept { return is_set_in(sched.timer_mask, p); }

}  // namespace weft::sched
