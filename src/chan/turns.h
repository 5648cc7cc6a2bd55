// Objects go through the ring outside of the lock, since their moves are foreign code, which may be slow, allocate or use weft. A place
// in the ring has a turn; who got the place under the lock waits (nearly always: not at all) for its own:
//
//   2 * lap      lap's sender may construct            [chan.turn] each change releases the place as it is,
//   2 * lap + 1  lap's receiver may take               the look with acquire takes it over
//   + awaited    somebody is parked until a later turn of this place comes
//
// Who is parked leaves its move to others: who had the turn before makes it, too, passes the turn on, and only then readies it. So a
// place moves on whatever becomes of a goroutine that waits for it; it may have frozen with the end of run(). But nobody does that for
// ever: after some moves the next one's owner is readied to go on with them (sched::begin_handing_on() sees to it that it does). And
// a plain thread, which does not freeze, makes its own: on its behalf a goroutine might freeze in foreign code that uses weft.
// Rejected: yielding and sleeping until the turn has come, since the goroutine may freeze meanwhile, and since a crowd that does so
// keeps who has the turn from its core.
//
// The change of the turn without the lock is the last touch of the channel: it may let the others end all that they have to do with
// it, and one of them destroy it. But not if somebody is parked, for that one's operation has not ended. A parked one is in the list
// before `awaited` is set, both under the lock; and whoever finds `awaited` changes the turn under the lock, too.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <weft/detail/chan_core.h>

namespace weft::chans {

struct channel;

// What begin_…() has decided.
struct transfer {
  detail::chan_waiter* peer = nullptr;  // taken from its queue, to be served and readied
  bool has_place = false;               // objects: this place of the ring is ours, for one element
  std::uint32_t lap = 0;
  std::size_t place = 0;
};

inline constexpr std::uint32_t turn_awaited = 0x8000'0000;

constexpr std::uint32_t turn_to_construct(std::uint32_t lap) noexcept { return (2 * lap) & ~turn_awaited; }
constexpr std::uint32_t turn_to_take(std::uint32_t lap) noexcept { return (2 * lap + 1) & ~turn_awaited; }
inline bool is_turn(const std::atomic<std::uint32_t>& turn, std::uint32_t wanted) noexcept {
  return (turn.load(std::memory_order_acquire) & ~turn_awaited) == wanted;  // [chan.turn]
}

// On the stack of who is parked. All is read by who makes the move, and changed before the owner is readied.
struct turn_waiter {
  turn_waiter* next = nullptr;
  detail::goroutine* g = nullptr;
  void* value = nullptr;  // the sender's element, or where the receiver wants it
  transfer way;
  bool sends = false;
  bool is_handed_on = false;  // to its owner: it has been readied with its move to be made, and perhaps those of others
};

// The move through the place that `way` says, and service of the peer. In no section; returns when all is done.
void send_through_ring(channel& c, void* value, const transfer& way) noexcept;
void recv_through_ring(channel& c, void* to, const transfer& way) noexcept;

}  // namespace weft::chans
