// The state machine of a slot, and its races: an event, a deadline, a close and a waiter that comes, at the same time.
#include "poll/descriptor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "support/build.h"

namespace {

using weft::poll::announced;
using weft::poll::any_waiter;
using weft::poll::ready_list;
using weft::poll::slot;
using weft::poll::waiter;

class poll_slot : public testing::Test {
 protected:
  poll_slot() { s.reset(); }
  ~poll_slot() override { EXPECT_FALSE(any_waiter()); }

  slot s;
  waiter w;
};

TEST_F(poll_slot, an_event_before_the_wait_is_found_by_the_waiter_once) {
  EXPECT_EQ(s.notify(), nullptr);
  EXPECT_EQ(s.notify(), nullptr);
  EXPECT_EQ(s.announce(w), announced::ready);
  EXPECT_EQ(s.announce(w), announced::waiting);
  EXPECT_TRUE(s.withdraw(w));
}

TEST_F(poll_slot, an_event_takes_the_waiter_and_leaves_nothing_behind) {
  EXPECT_EQ(s.announce(w), announced::waiting);
  EXPECT_TRUE(any_waiter());
  EXPECT_EQ(s.notify(), &w);
  EXPECT_FALSE(s.withdraw(w));
  EXPECT_EQ(s.announce(w), announced::waiting);
  EXPECT_TRUE(s.withdraw(w));
  EXPECT_FALSE(s.withdraw(w));
}

TEST_F(poll_slot, a_nudge_takes_a_waiter_and_is_forgotten_if_there_is_none) {
  EXPECT_EQ(s.nudge(), nullptr);
  EXPECT_EQ(s.announce(w), announced::waiting);
  EXPECT_EQ(s.nudge(), &w);
  EXPECT_EQ(s.nudge(), nullptr);
  s.notify();
  EXPECT_EQ(s.nudge(), nullptr);
  EXPECT_EQ(s.announce(w), announced::ready) << "a nudge does not use readiness up";
}

TEST_F(poll_slot, a_closed_slot_stays_closed_until_it_is_reset) {
  EXPECT_EQ(s.announce(w), announced::waiting);
  EXPECT_EQ(s.close(), &w);
  EXPECT_EQ(s.close(), nullptr);
  EXPECT_EQ(s.notify(), nullptr);
  EXPECT_EQ(s.nudge(), nullptr);
  EXPECT_EQ(s.announce(w), announced::closed);
  EXPECT_TRUE(s.is_closed());
  s.set_deadline(5);
  s.reset();
  EXPECT_FALSE(s.is_closed());
  EXPECT_EQ(s.deadline(), weft::poll::no_deadline);
}

TEST_F(poll_slot, a_ready_list_keeps_the_order) {
  waiter a;
  waiter b;
  ready_list list;
  list.add(nullptr);
  EXPECT_TRUE(list.empty());
  list.add(&a);
  list.add(&b);
  EXPECT_EQ(list.size(), 2u);
  EXPECT_EQ(list.pop(), &a);
  EXPECT_EQ(list.pop(), &b);
  EXPECT_EQ(list.pop(), nullptr);
}

TEST(poll_descriptor, one_that_is_used_again_has_another_tag_and_open_slots) {
  weft::poll::descriptor* first = weft::poll::take_descriptor();
  const auto tag = first->tag.load();
  first->slots[0].close();
  first->exceptional = true;
  weft::poll::put_descriptor(first);
  EXPECT_TRUE(first->slots[1].is_closed()) << "an event that comes late finds nothing to make ready";
  weft::poll::descriptor* second = weft::poll::take_descriptor();
  EXPECT_EQ(second, first);
  EXPECT_NE(second->tag.load(), tag);
  EXPECT_FALSE(second->exceptional);
  EXPECT_FALSE(second->slots[0].is_closed());
  weft::poll::put_descriptor(second);
}

// A waiter, an "event", a "set_deadline" and in the end a "close" meet in one slot. Each announcement ends exactly once, and
// no event is lost: whoever waits after the last event is still there when the slot is closed.
TEST(poll_slot_race, every_wait_ends_exactly_once_and_no_event_is_lost) {
  const int rounds = static_cast<int>(test::scaled(4'000, 2'000, 1'000));
  slot s;
  s.reset();
  struct wait : waiter {
    std::atomic<int> woken{0};
  };
  const auto wake = [](waiter* w) {
    if (w != nullptr) ++static_cast<wait*>(w)->woken;
  };
  std::atomic<int> produced = 0;
  std::atomic<int> consumed = 0;
  std::atomic<bool> closing = false;
  std::thread events([&] {
    for (int i = 0; i < rounds; ++i) {
      while (produced - consumed.load() > 1) std::this_thread::yield();
      ++produced;
      wake(s.notify());
    }
  });
  std::thread nudges([&] {
    while (!closing) {
      wake(s.nudge());
      std::this_thread::yield();
    }
  });
  while (consumed < rounds) {  // like a reader: look, and wait if there is nothing
    const int now = produced;
    if (now != consumed) {
      consumed = now;
      continue;
    }
    wait w;
    if (s.announce(w) != announced::waiting) continue;
    if (consumed % 7 == 0 && s.withdraw(w)) {
      EXPECT_EQ(w.woken, 0);
      std::this_thread::yield();
      continue;
    }
    while (w.woken == 0) std::this_thread::yield();
    EXPECT_EQ(w.woken, 1);
  }
  closing = true;
  events.join();
  nudges.join();
  wait last;
  while (s.announce(last) == announced::ready) {
  }
  wake(s.close());
  EXPECT_EQ(last.woken, 1);
  EXPECT_FALSE(any_waiter());
}

}  // namespace
