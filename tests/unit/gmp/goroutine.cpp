// The states of a goroutine: every edge that is drawn at the head of gmp/goroutine.h, and no other.
#include "gmp/goroutine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace {

using weft::gmp::goroutine;
using weft::gmp::is_legal;
using weft::gmp::status;
using weft::gmp::to_string;
using weft::gmp::transition;
using weft::gmp::try_transition;

using edge = std::pair<status, status>;

constexpr edge drawn[] = {
    {status::dead, status::runnable},     {status::runnable, status::running},  {status::running, status::runnable},
    {status::running, status::waiting},   {status::running, status::syscall},   {status::running, status::detached},
    {status::detached, status::preempted}, {status::running, status::dead},      {status::waiting, status::runnable},
    {status::syscall, status::running},   {status::syscall, status::detached},  {status::detached, status::running},
    {status::detached, status::runnable}, {status::preempted, status::running},
    {status::preempted, status::detached},
};

constexpr status states[] = {status::dead,    status::runnable, status::running,  status::waiting,
                             status::syscall, status::detached, status::preempted};
static_assert(std::size(states) == static_cast<std::size_t>(status::count_));

bool is_drawn(const edge& e) { return std::find(std::begin(drawn), std::end(drawn), e) != std::end(drawn); }

std::vector<edge> all_edges() {
  std::vector<edge> all;
  for (const status from : states) {
    for (const status to : states) all.emplace_back(from, to);
  }
  return all;
}

std::string text(const edge& e) {
  return "from " + std::string(to_string(e.first)) + " to " + std::string(to_string(e.second));
}

struct in_state : goroutine {
  explicit in_state(status s) {
    id = 42;
    state.store(s, std::memory_order_relaxed);
  }
  status now() const { return state.load(std::memory_order_relaxed); }
};

TEST(the_state_table, has_exactly_the_edges_that_are_drawn) {
  for (const edge& e : all_edges()) EXPECT_EQ(is_legal(e.first, e.second), is_drawn(e)) << text(e);
}

TEST(a_transition, along_a_drawn_edge_changes_the_state) {
  for (const edge& e : drawn) {
    in_state g(e.first);
    transition(g, e.first, e.second);
    EXPECT_EQ(g.now(), e.second) << text(e);
  }
}

TEST(a_transition, that_is_not_drawn_is_fatal_and_says_which_goroutine_wanted_what) {
  for (const edge& e : all_edges()) {
    if (is_drawn(e)) continue;
    in_state g(e.first);
    const std::string is = ": it is " + std::string(to_string(e.first));
    EXPECT_DEATH(transition(g, e.first, e.second), "fatal error: goroutine 42: cannot go " + text(e) + is);
  }
}

TEST(a_transition, from_a_state_that_the_goroutine_is_not_in_is_fatal_and_says_the_state_it_is_in) {
  in_state waiting(status::waiting);
  EXPECT_DEATH(transition(waiting, status::running, status::runnable),
               "fatal error: goroutine 42: cannot go from running to runnable: it is waiting");
  in_state dead(status::dead);
  EXPECT_DEATH(transition(dead, status::waiting, status::runnable),
               "fatal error: goroutine 42: cannot go from waiting to runnable: it is dead");
}

TEST(a_transition, of_a_goroutine_whose_state_was_overwritten_says_so) {
  in_state g(static_cast<status>(77));
  EXPECT_DEATH(transition(g, status::runnable, status::running),
               "fatal error: goroutine 42: cannot go from runnable to running: it is corrupt");
}

TEST(a_competed_transition, along_a_drawn_edge_changes_the_state) {
  for (const edge& e : drawn) {
    in_state g(e.first);
    EXPECT_TRUE(try_transition(g, e.first, e.second)) << text(e);
    EXPECT_EQ(g.now(), e.second) << text(e);
  }
}

TEST(a_competed_transition, is_refused_where_another_party_was_faster) {
  in_state g(status::running);
  EXPECT_FALSE(try_transition(g, status::syscall, status::running));
  EXPECT_EQ(g.now(), status::running);
}

TEST(a_competed_transition, that_is_not_drawn_is_fatal_whatever_the_state) {
  in_state g(status::running);
  EXPECT_DEATH(try_transition(g, status::waiting, status::running),
               "fatal error: goroutine 42: cannot go from waiting to running: it is running");
}

TEST(a_goroutine, begins_dead_and_without_a_name) {
  goroutine g;
  EXPECT_EQ(g.state.load(), status::dead);
  EXPECT_EQ(g.name(), "");
  EXPECT_EQ(g.id, 0u);
}

}  // namespace
