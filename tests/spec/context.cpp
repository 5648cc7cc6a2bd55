// Contexts: cancellation, deadlines and values that travel down a tree.
#include <weft/context.h>
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <weft/chan.h>
#include <weft/select.h>

#include "support/await.h"

namespace {

using namespace std::chrono_literals;

bool is_done(const weft::context& c) {
  std::monostate nothing;
  return c.done().try_recv(nothing) == weft::recv_status::closed;
}

TEST(background, is_never_done) {
  weft::run([] {
    const weft::context c = weft::background();
    EXPECT_FALSE(static_cast<bool>(c.done()));
    EXPECT_FALSE(c.error());
    EXPECT_FALSE(c.token().stop_possible());
    EXPECT_FALSE(c.deadline());
    EXPECT_EQ(c.value<int>("key"), nullptr);
  });
}

TEST(with_cancel, closes_done_and_says_why) {
  weft::run([] {
    auto [c, cancel] = weft::with_cancel(weft::background());
    EXPECT_FALSE(is_done(c));
    EXPECT_FALSE(c.error());
    cancel();
    EXPECT_TRUE(is_done(c));
    EXPECT_EQ(c.error(), weft::errc::canceled);
    EXPECT_EQ(c.error(), std::errc::operation_canceled);
    EXPECT_TRUE(c.token().stop_requested());
    cancel();  // again is fine
    EXPECT_EQ(c.error(), weft::errc::canceled);
  });
}

TEST(with_cancel, wakes_everybody_who_waits) {
  for (const int procs : {1, 2, 8}) {
    weft::run(
        [] {
          auto [c, cancel] = weft::with_cancel(weft::background());
          weft::wait_group waiting;
          std::atomic<int> woken = 0;
          for (int i = 0; i < 100; ++i) {
            waiting.go([&, c = c] {
              EXPECT_EQ(c.done().recv(), std::nullopt);
              ++woken;
            });
          }
          std::jthread outside([&, c = c] {
            weft::select(weft::on_done(c, [&] { ++woken; }));
          });
          weft::yield();
          cancel();
          waiting.wait();
          outside.join();
          EXPECT_EQ(woken, 101);
        },
        {.procs = procs});
  }
}

TEST(a_child, is_cancelled_with_its_parent_but_not_the_other_way) {
  weft::run([] {
    auto [parent, cancel_parent] = weft::with_cancel(weft::background());
    auto [one, cancel_one] = weft::with_cancel(parent);
    auto [two, cancel_two] = weft::with_cancel(weft::with_value(parent, "k", 1));
    auto [grandchild, cancel_grandchild] = weft::with_cancel(two);
    cancel_one();
    EXPECT_TRUE(is_done(one));
    EXPECT_FALSE(is_done(parent));
    EXPECT_FALSE(is_done(two));
    cancel_parent();
    EXPECT_TRUE(is_done(two));
    EXPECT_TRUE(is_done(grandchild));
    EXPECT_EQ(grandchild.error(), weft::errc::canceled);
    EXPECT_TRUE(grandchild.token().stop_requested());
  });
}

TEST(a_child, of_a_cancelled_parent_is_cancelled_at_once) {
  weft::run([] {
    auto [parent, cancel] = weft::with_cancel(weft::background());
    cancel();
    auto [child, cancel_child] = weft::with_timeout(parent, 1h);
    EXPECT_TRUE(is_done(child));
    EXPECT_EQ(child.error(), weft::errc::canceled);
  });
}

// As deep as no stack of a goroutine would be, if each level took some of it.
TEST(a_tree_of_contexts, may_be_deep) {
  constexpr int depth = 20'000;
  weft::run([] {
    auto [root, cancel] = weft::with_cancel(weft::background());
    weft::context leaf = root;
    for (int i = 0; i < depth; ++i) leaf = weft::with_value(weft::with_cancel(leaf).first, i, i);
    for (int i = 0; i < depth; ++i) leaf = weft::with_timeout(leaf, 1h).first;
    ASSERT_NE(leaf.value<int>(0), nullptr);
    cancel();
    EXPECT_EQ(leaf.error(), weft::errc::canceled);
    EXPECT_TRUE(is_done(leaf));
    leaf = weft::background();
  });
}

TEST(a_deadline, cancels_with_deadline_exceeded) {
  weft::run([] {
    const auto began = std::chrono::steady_clock::now();
    auto [c, cancel] = weft::with_timeout(weft::background(), 20ms);
    ASSERT_TRUE(c.deadline());
    EXPECT_GE(*c.deadline(), began + 20ms);
    EXPECT_EQ(c.done().recv(), std::nullopt);
    EXPECT_GE(std::chrono::steady_clock::now(), began + 20ms);
    EXPECT_EQ(c.error(), weft::errc::deadline_exceeded);
    EXPECT_EQ(c.error(), std::errc::timed_out);
    EXPECT_EQ(c.error().message(), "context deadline exceeded");
  });
}

TEST(a_deadline, in_the_past_cancels_at_once) {
  weft::run([] {
    using std::chrono::steady_clock, std::chrono::system_clock;
    const auto is_over = [](auto deadline) {
      const weft::context c = weft::with_deadline(weft::background(), deadline).first;
      return is_done(c) && c.error() == weft::errc::deadline_exceeded;
    };
    EXPECT_TRUE(is_over(system_clock::now() - 1s));
    EXPECT_TRUE(is_over(system_clock::time_point::min()));
    EXPECT_TRUE(is_over(steady_clock::time_point::min()));
  });
}

TEST(a_deadline, has_requested_stop_for_who_comes_from_done) {
  weft::run(
      [] {
        for (int i = 0; i < 200; ++i) {
          const weft::context c = weft::with_timeout(weft::background(), 100us).first;
          c.done().recv();
          ASSERT_TRUE(c.token().stop_requested());
        }
      },
      {.procs = 4});
}

TEST(a_deadline, later_than_the_parents_is_the_parents) {
  weft::run([] {
    auto [parent, cancel_parent] = weft::with_timeout(weft::background(), 10ms);
    auto [child, cancel_child] = weft::with_timeout(parent, 1h);
    EXPECT_EQ(child.deadline(), parent.deadline());
    EXPECT_EQ(child.done().recv(), std::nullopt);
    EXPECT_EQ(child.error(), weft::errc::deadline_exceeded);
  });
}

TEST(a_deadline, that_is_cancelled_before_stays_cancelled) {
  weft::run([] {
    bool before = false;
    for (test::hang_limit limit(__FILE__, __LINE__); !before; limit.check()) {
      auto [c, cancel] = weft::with_timeout(weft::background(), 5ms);
      cancel();
      before = c.error() == weft::errc::canceled;  // else it took more than 5 ms to come here
      const auto why = c.error();
      weft::sleep_for(15ms);
      EXPECT_EQ(c.error(), why);
    }
  });
}

TEST(a_deadline, works_from_a_plain_thread) {
  auto [c, cancel] = weft::with_timeout(weft::background(), 5ms);
  weft::start();
  EXPECT_EQ(c.done().recv(), std::nullopt);
  EXPECT_EQ(c.error(), weft::errc::deadline_exceeded);
}

struct my_key {
  int number;
  friend bool operator==(my_key, my_key) = default;
};

struct who {};
struct whither {};

TEST(a_context_value, may_have_a_type_without_members_as_its_key) {
  const auto c = weft::with_value(weft::with_value(weft::background(), who{}, std::string("me")), whither{}, std::string("home"));
  ASSERT_NE(c.value<std::string>(who{}), nullptr);
  EXPECT_EQ(*c.value<std::string>(who{}), "me");
  EXPECT_EQ(*c.value<std::string>(whither{}), "home");
  EXPECT_EQ(weft::background().value<std::string>(who{}), nullptr);
}

TEST(two_who_cancel_parts_of_one_tree, both_find_their_part_cancelled_when_they_return) {
  for (int round = 0; round < 300; ++round) {
    const auto [root, cancel_root] = weft::with_cancel(weft::background());
    const auto [part, cancel_part] = weft::with_cancel(root);
    std::vector<weft::context> below;
    for (int i = 0; i < 300; ++i) below.push_back(weft::with_cancel(i % 10 == 0 ? part : below.back()).first);
    std::thread other([&, &root = root, &cancel_part = cancel_part] {
      test::spin_until([&] { return static_cast<bool>(root.error()); });
      cancel_part();
      for (const weft::context& c : below) ASSERT_TRUE(is_done(c) && c.error() == weft::errc::canceled);
    });
    cancel_root();
    for (const weft::context& c : below) ASSERT_TRUE(is_done(c) && c.error() == weft::errc::canceled);
    EXPECT_TRUE(part.token().stop_requested());
    other.join();
  }
}

TEST(values, are_found_by_type_and_value_of_the_key_nearest_first) {
  weft::run([] {
    const auto a = weft::with_value(weft::background(), my_key{1}, std::string("one"));
    const auto b = weft::with_value(a, my_key{2}, 2);
    const auto c = weft::with_value(b, my_key{1}, std::string("uno"));
    EXPECT_EQ(*a.value<std::string>(my_key{1}), "one");
    EXPECT_EQ(*c.value<std::string>(my_key{1}), "uno");
    EXPECT_EQ(*c.value<int>(my_key{2}), 2);
    EXPECT_EQ(c.value<int>(my_key{3}), nullptr);
    EXPECT_EQ(c.value<long>(my_key{2}), nullptr) << "another type";
    EXPECT_EQ(c.value<int>(2), nullptr) << "a key of another type";
    const auto d = weft::with_value(c, "name", 7);
    EXPECT_EQ(*d.value<int>(std::string("name")), 7);
    EXPECT_EQ(*d.value<int>(std::string_view("name")), 7);
    EXPECT_EQ(*weft::with_value(d, std::string_view("sight"), 8).value<int>("sight"), 8);
    auto [e, cancel] = weft::with_cancel(d);
    EXPECT_EQ(*e.value<int>("name"), 7);
  });
}

struct counted {
  static inline std::atomic<int> alive = 0;
  counted() { ++alive; }
  counted(const counted&) { ++alive; }
  ~counted() { --alive; }
};

TEST(the_tree, lets_go_of_what_nobody_refers_to) {
  weft::run([] {
    auto [parent, cancel] = weft::with_cancel(weft::background());
    for (int i = 0; i < 1000; ++i) {
      auto [child, cancel_child] = weft::with_timeout(weft::with_value(parent, "k", counted()), 1h);
      if (i % 2 == 0) cancel_child();
    }
    EXPECT_EQ(counted::alive, 0);
    cancel();
  });
}

TEST(the_tree, survives_cancels_deadlines_and_ends_in_any_order) {
  for (const int procs : {1, 2, 8}) {
    weft::run(
        [] {
          for (int round = 0; round < 50; ++round) {
            auto [root, cancel] = weft::with_cancel(weft::background());
            weft::wait_group all;
            for (int i = 0; i < 20; ++i) {
              all.go([root = root, i] {
                auto [c, stop] = weft::with_timeout(root, std::chrono::microseconds(i * 50));
                auto [d, stop_d] = weft::with_cancel(c);
                if (i % 3 == 0) stop();
                weft::yield();
                d.done().recv();
                EXPECT_TRUE(d.error());
              });
            }
            if (round % 2 == 0) cancel();
            all.wait();
          }
        },
        {.procs = procs});
  }
}

// ---- nobody has a handle any more ------------------------------------------------------------------------------------

TEST(done_of_a_context_without_handles, is_closed_at_the_deadline) {
  weft::run([] {
    const auto done = weft::with_timeout(weft::background(), 5ms).first.done();
    EXPECT_EQ(done.recv(), std::nullopt);
  });
}

TEST(done_of_a_context_without_handles, is_closed_at_the_deadline_of_an_ancestor_that_has_none_either) {
  weft::run([] {
    const auto done = [] {
      const weft::context parent = weft::with_timeout(weft::background(), 5ms).first;
      return weft::with_cancel(weft::with_value(parent, 1, 2)).first.done();
    }();
    EXPECT_EQ(done.recv(), std::nullopt);
  });
}

TEST(done_of_a_context_without_handles, is_closed_when_its_parent_is_cancelled_before_the_deadline) {
  weft::run([] {
    const auto [parent, cancel] = weft::with_cancel(weft::background());
    const auto done = weft::with_timeout(parent, 1h).first.done();
    std::monostate nothing;
    EXPECT_EQ(done.try_recv(nothing), weft::recv_status::empty);
    cancel();
    EXPECT_EQ(done.try_recv(nothing), weft::recv_status::closed);
  });
}

TEST(a_token_of_a_context_without_handles, is_requested_to_stop_at_the_deadline) {
  weft::run([] {
    const std::stop_token token = weft::with_timeout(weft::background(), 5ms).first.token();
    weft::chan<int> stopped(1);
    const std::stop_callback callback(token, [&] { stopped.send(1); });
    EXPECT_EQ(stopped.recv(), 1);
  });
}

// Handles and done() go in any order, on two Ps, while the deadline comes: a node is destroyed once, and each done() is closed.
TEST(done_of_a_context_without_handles, is_closed_whoever_lets_go_of_it_when) {
  weft::run(
      [] {
        weft::wait_group all;
        for (int i = 0; i < 2000; ++i) {
          auto [c, cancel] = weft::with_timeout(weft::background(), std::chrono::microseconds(i % 300));
          all.go([c = std::move(c)]() mutable {
            const auto done = c.done();
            c = weft::background();
            EXPECT_EQ(done.recv(), std::nullopt);
          });
          all.go([cancel = std::move(cancel), i] {
            if (i % 4 == 0) cancel();
          });
        }
        all.wait();
      },
      {.procs = 2});
}

}  // namespace
