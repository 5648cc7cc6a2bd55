// What can be sent through a channel, how often it is moved, and that none is lost or destroyed twice.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <array>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "support/build.h"
#include "support/chan_places.h"

namespace {

// Counts its moves, and how many of them are alive.
struct counted {
  static inline std::atomic<int> alive{0};
  static inline std::atomic<int> moves{0};
  static void reset() { moves = 0; }

  explicit counted(int n) noexcept : number(n) { ++alive; }
  counted(counted&& other) noexcept : number(std::exchange(other.number, -1)) {
    ++alive;
    ++moves;
  }
  counted& operator=(counted&&) = delete;
  ~counted() { --alive; }

  int number;
};

struct strict {  // neither default constructible nor assignable
  explicit strict(std::string s) : text(std::move(s)) {}
  strict(strict&&) noexcept = default;
  strict& operator=(strict&&) = delete;
  std::string text;
};

struct nothing {};

struct large {
  std::array<std::uint64_t, 500> words;
};

struct alignas(256) aligned {
  explicit aligned(int n) : number(n) { check(); }
  aligned(aligned&& other) noexcept : number(other.number) { check(); }
  void check() const {
    if (reinterpret_cast<std::uintptr_t>(this) % 256 != 0) misplaced = true;
  }
  static inline std::atomic<bool> misplaced{false};
  int number;
};

struct alignas(128) aligned_bits {
  int number;
};

class chan_elements : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(everywhere, chan_elements, test::all_places(), test::name_of_place);

// Sends 0 .. n-1 through a channel of each capacity from one goroutine to here.
template <class T, class Make, class Check>
void passes(int n, Make make, Check check) {
  for (const std::size_t capacity : {0u, 1u, 2u, 7u}) {
    weft::chan<T> ch(capacity);
    weft::go([=] {
      for (int i = 0; i < n; ++i) ch.send(make(i));
      ch.close();
    });
    int received = 0;
    while (std::optional<T> v = ch.recv()) check(*v, received++);
    ASSERT_EQ(received, n);
  }
}

constexpr int some = test::scaled(500, 100, 100);

TEST_P(chan_elements, may_be_integers_of_any_size) {
  here([] {
    passes<int>(
        some, [](int i) { return i; }, [](int v, int i) { ASSERT_EQ(v, i); });
    passes<char>(
        some, [](int i) { return static_cast<char>(i); }, [](char v, int i) { ASSERT_EQ(v, static_cast<char>(i)); });
    passes<bool>(
        some, [](int i) { return i % 3 == 0; }, [](bool v, int i) { ASSERT_EQ(v, i % 3 == 0); });
    passes<std::uint64_t>(
        some, [](int i) { return ~std::uint64_t(i); }, [](std::uint64_t v, int i) { ASSERT_EQ(v, ~std::uint64_t(i)); });
    passes<std::array<int, 3>>(
        some,
        [](int i) {
          return std::array{i, i + 1, i + 2};
        },
        [](const auto& v, int i) { ASSERT_EQ(v[2], i + 2); });
    passes<std::array<char, 64>>(
        some,
        [](int i) {
          std::array<char, 64> a{};
          a[63] = static_cast<char>(i);
          return a;
        },
        [](const auto& v, int i) { ASSERT_EQ(v[63], static_cast<char>(i)); });
  });
}

TEST_P(chan_elements, may_be_move_only) {
  here([] {
    passes<std::unique_ptr<int>>(
        some, [](int i) { return std::make_unique<int>(i); }, [](auto& v, int i) { ASSERT_EQ(*v, i); });
  });
}

TEST_P(chan_elements, may_be_strings) {
  here([] {
    passes<std::string>(
        some, [](int i) { return std::string(50, 'x') + std::to_string(i); },
        [](const std::string& v, int i) { ASSERT_EQ(v.substr(50), std::to_string(i)); });
  });
}

TEST_P(chan_elements, need_neither_default_construction_nor_assignment) {
  here([] {
    passes<strict>(
        some, [](int i) { return strict(std::to_string(i)); },
        [](auto& v, int i) { ASSERT_EQ(v.text, std::to_string(i)); });
    weft::chan<strict> ch(1);
    ch.send(strict("x"));
    ch.close();
    for (strict& s : ch) EXPECT_EQ(s.text, "x");
  });
}

TEST_P(chan_elements, may_be_empty) {
  here([] {
    passes<nothing>(
        some, [](int) { return nothing{}; }, [](const nothing&, int) {});
    // They take no room.
    weft::chan<nothing> many(std::size_t{1} << 40);
    for (int i = 0; i < 1000; ++i) many.send({});
    EXPECT_EQ(many.size(), 1000u);
  });
}

TEST_P(chan_elements, may_be_large) {
  here([] {
    passes<large>(
        some,
        [](int i) {
          large l{};
          l.words.back() = static_cast<std::uint64_t>(i);
          return l;
        },
        [](const large& v, int i) { ASSERT_EQ(v.words.back(), static_cast<std::uint64_t>(i)); });
  });
}

TEST_P(chan_elements, may_be_over_aligned) {
  here([] {
    passes<aligned>(
        some, [](int i) { return aligned(i); }, [](const aligned& v, int i) { ASSERT_EQ(v.number, i); });
    EXPECT_FALSE(aligned::misplaced);
    passes<aligned_bits>(
        some, [](int i) { return aligned_bits{i}; }, [](const aligned_bits& v, int i) { ASSERT_EQ(v.number, i); });
  });
}

TEST_P(chan_elements, may_be_channels) {
  here([] {
    passes<weft::chan<int>>(
        some,
        [](int i) {
          weft::chan<int> inner(1);
          inner.send(i);
          return inner;
        },
        [](const weft::chan<int>& v, int i) { ASSERT_EQ(v.recv(), i); });
  });
}

struct request {  // with a channel of its own kind to answer on
  int number;
  weft::chan<request> reply = nullptr;
};

TEST_P(chan_elements, may_hold_channels_of_their_own_kind) {
  here([] {
    weft::chan<request> server;
    weft::go([server] {
      for (request& r : server) r.reply.send({r.number + 1});
    });
    weft::chan<request> reply;
    server.send({1, reply});
    EXPECT_EQ(reply.recv()->number, 2);
    EXPECT_EQ(weft::select(weft::on_send(server, {2, reply})), 0u);
    weft::select(weft::on_recv(reply, [](std::optional<request> r) { EXPECT_EQ(r->number, 3); }));
    server.close();
  });
}

TEST_P(chan_elements, may_be_over_aligned_in_try_recv) {
  here([] {
    weft::chan<aligned_bits> ch(3);
    ch.send({1});
    aligned_bits out{0};
    EXPECT_EQ(ch.try_recv(out), weft::recv_status::ok);
    EXPECT_EQ(out.number, 1);
  });
}

// ---- moves ----

TEST(chan_moves, a_send_to_a_waiting_receiver_moves_once) {
  weft::run(
      [] {
        weft::chan<counted> ch;
        weft::go([ch] { EXPECT_EQ(ch.recv()->number, 7); });
        test::let_others_run();
        counted::reset();
        ch.send(counted(7));
        EXPECT_EQ(counted::moves, 1);
        test::let_others_run();
        EXPECT_EQ(counted::moves, 1);
        EXPECT_EQ(counted::alive, 0);
      },
      {.procs = 1});
}

TEST(chan_moves, a_receive_from_a_waiting_sender_moves_once) {
  weft::run(
      [] {
        weft::chan<counted> ch;
        weft::go([ch] { ch.send(counted(7)); });
        test::let_others_run();
        counted::reset();
        EXPECT_EQ(ch.recv()->number, 7);
        EXPECT_EQ(counted::moves, 1);
        test::let_others_run();
        EXPECT_EQ(counted::alive, 0);
      },
      {.procs = 1});
}

TEST(chan_moves, the_way_through_a_buffer_takes_two) {
  weft::chan<counted> ch(1);
  counted::reset();
  ch.send(counted(7));
  EXPECT_EQ(ch.recv()->number, 7);
  EXPECT_EQ(counted::moves, 2);
  EXPECT_EQ(counted::alive, 0);
}

TEST(chan_moves, try_send_leaves_a_value_alone_that_it_cannot_send) {
  weft::chan<std::unique_ptr<int>> ch(1);
  auto first = std::make_unique<int>(1);
  EXPECT_TRUE(ch.try_send(first));
  EXPECT_EQ(first, nullptr);
  auto second = std::make_unique<int>(2);
  EXPECT_FALSE(ch.try_send(second));
  ASSERT_NE(second, nullptr);
  EXPECT_FALSE(ch.try_send(std::move(second)));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(**ch.recv(), 1);
  EXPECT_TRUE(ch.try_send(std::move(second)));
  EXPECT_EQ(second, nullptr);
}

TEST(chan_moves, try_recv_leaves_its_argument_alone_when_there_is_nothing) {
  weft::chan<std::string> ch(1);
  std::string out = "before";
  EXPECT_EQ(ch.try_recv(out), weft::recv_status::empty);
  EXPECT_EQ(out, "before");
  ch.send("value");
  EXPECT_EQ(ch.try_recv(out), weft::recv_status::ok);
  EXPECT_EQ(out, "value");
  ch.close();
  EXPECT_EQ(ch.try_recv(out), weft::recv_status::closed);
  EXPECT_EQ(out, "value");
}

// Foreign code in moves and destructors may use the channel itself: it is not under the lock.
struct curious {
  explicit curious(weft::chan<curious>* c) noexcept : channel(c) {}
  curious(curious&& other) noexcept : channel(other.channel) { look(); }
  ~curious() { look(); }
  void look() const noexcept {
    if (channel == nullptr) return;
    looks += static_cast<int>(channel->size()) + 1;
    weft::yield();
  }
  weft::chan<curious>* channel;
  static inline std::atomic<int> looks{0};
};

TEST(chan_moves, run_outside_of_the_lock) {
  for (const int procs : {1, 4}) {
    weft::run(
        [] {
          for (const std::size_t capacity : {0u, 1u, 3u}) {
            weft::chan<curious> ch(capacity);
            weft::chan<int> done;
            for (int s = 0; s < 3; ++s) {
              weft::go([&] {
                for (int i = 0; i < 20; ++i) ch.send(curious(&ch));
                done.send(0);
              });
            }
            weft::go([&] {
              while (std::optional<curious> v = ch.recv()) EXPECT_EQ(v->channel, &ch);
              done.send(0);
            });
            for (int s = 0; s < 3; ++s) done.recv();
            ch.close();
            done.recv();
          }
        },
        {.procs = procs});
  }
  EXPECT_GT(curious::looks, 0);
}

// ---- life and death ----

TEST(chan_life, elements_in_the_buffer_die_with_the_last_handle) {
  {
    weft::chan<counted> ch(10);
    for (int i = 0; i < 8; ++i) ch.send(counted(i));
    for (int i = 0; i < 5; ++i) ch.recv();
    for (int i = 0; i < 6; ++i) ch.send(counted(i));  // round the corner
    weft::chan<counted> copy = ch;
    ch = nullptr;
    EXPECT_EQ(counted::alive, 9);
    EXPECT_EQ(copy.size(), 9u);
  }
  EXPECT_EQ(counted::alive, 0);
}

TEST(chan_life, elements_of_a_closed_channel_die_with_it) {
  {
    weft::chan<counted> ch(2);
    ch.send(counted(1));
    ch.close();
  }
  EXPECT_EQ(counted::alive, 0);
}

TEST(chan_life, the_value_of_a_failed_send_dies_with_its_sender) {
  weft::chan<counted> ch(1);
  ch.close();
  EXPECT_THROW(ch.send(counted(1)), weft::channel_error);
  EXPECT_EQ(counted::alive, 0);
}

TEST(chan_life, the_value_of_a_send_that_close_interrupts_dies_with_its_sender) {
  weft::run(
      [] {
        weft::chan<counted> ch;
        weft::go([ch] { EXPECT_THROW(ch.send(counted(1)), weft::channel_error); });
        test::let_others_run();
        EXPECT_EQ(counted::alive, 1);
        ch.close();
        test::let_others_run();
        EXPECT_EQ(counted::alive, 0);
      },
      {.procs = 1});
}

TEST(chan_life, a_channel_may_die_under_frozen_goroutines_that_wait_on_it) {
  for (int round = 0; round < 2; ++round) {
    weft::run(
        [] {
          weft::chan<std::string> empty;
          weft::chan<std::string> full(1);
          full.send("in the buffer");
          weft::go([&] { empty.recv(); });
          weft::go([&] { full.send("never sent"); });
          weft::go([&] { weft::select(weft::on_recv(empty), weft::on_send(full, std::string("neither"))); });
          weft::go([&] { weft::select(weft::on_recv(empty), weft::on_timeout(std::chrono::milliseconds(20))); });
          test::let_others_run();
        },
        {.procs = 1});
  }
  weft::run([] { weft::sleep_for(std::chrono::milliseconds(50)); }, {.procs = 1});  // the timers go off
}

// A select that has won on one channel, or will, and whose other channel dies while the runtime stands still; over two
// channels, and over three cases.
class frozen_select : public ::testing::TestWithParam<int> {
 protected:
  using ints = weft::chan<int>;

  // On procs 1: returns when the select waits.
  void begin_select(ints& one, ints& other) {
    weft::go([this, &one, &other] {
      ints nil = nullptr;
      won = GetParam() == 2 ? weft::select(weft::on_recv(one), weft::on_recv(other))
                            : weft::select(weft::on_recv(one), weft::on_recv(other), weft::on_recv(nil));
    });
    test::let_others_run();
  }
  static void run_frozen() {
    weft::run([] { test::let_others_run(); }, {.procs = 1});
  }

  std::size_t won = 99;
};
INSTANTIATE_TEST_SUITE_P(cases, frozen_select, ::testing::Values(2, 3));

TEST_P(frozen_select, that_has_won_survives_both_its_channels) {
  weft::run(
      [this] {
        ints one, other;
        begin_select(one, other);
        one.send(1);
      },
      {.procs = 1});
  run_frozen();
  EXPECT_EQ(won, 0u);
}

TEST_P(frozen_select, that_still_waits_survives_one_of_its_channels) {
  ints one;
  weft::run(
      [this, &one] {
        ints other;
        begin_select(one, other);
      },
      {.procs = 1});
  weft::run(
      [&one] {
        one.send(1);
        test::let_others_run();
      },
      {.procs = 1});
  EXPECT_EQ(won, 0u);
}

TEST_P(frozen_select, that_was_taken_out_of_a_line_by_another_survives_that_channel) {
  ints one;
  weft::run(
      [this, &one] {
        ints other;
        begin_select(one, other);
        one.send(1);
        EXPECT_FALSE(other.try_send(2));  // finds the select, which has won already
      },
      {.procs = 1});
  run_frozen();
  EXPECT_EQ(won, 0u);
}

TEST(chan_life, an_iterator_keeps_the_channel_alive) {
  weft::chan<int> ch(3);
  ch.send(1);
  ch.send(2);
  ch.close();
  int sum = 0;
  for (const int v : ch) {
    sum += v;
    ch = nullptr;
  }
  EXPECT_EQ(sum, 3);
}

// ---- the handle ----

TEST(chan_handle, zero_is_a_capacity_and_nullptr_is_nil) {
  const weft::chan<int> unbuffered(0);
  EXPECT_TRUE(unbuffered);
  EXPECT_EQ(unbuffered.capacity(), 0u);
  const weft::chan<int> nil = nullptr;
  EXPECT_FALSE(nil);
  EXPECT_EQ(nil.capacity(), 0u);
  EXPECT_EQ(nil.size(), 0u);
  const weft::chan<int> braces{5};
  EXPECT_EQ(braces.capacity(), 5u);
  static_assert(std::is_constructible_v<weft::chan<int>, std::nullptr_t>);
  static_assert(std::is_convertible_v<std::nullptr_t, weft::chan<int>>);
  static_assert(!std::is_convertible_v<int, weft::chan<int>>);
  static_assert(!std::is_constructible_v<weft::chan<int>, void*>);
  static_assert(std::is_nothrow_move_constructible_v<weft::chan<int>> &&
                std::is_nothrow_copy_constructible_v<weft::chan<int>>);
}

struct with_a_channel {
  weft::chan<int> channel;
  int number = 0;
};

weft::chan<int> nothing_but_braces() { return {}; }

TEST(chan_handle, is_made_where_nothing_is_said) {
  const with_a_channel both{};
  EXPECT_TRUE(both.channel);
  EXPECT_EQ(both.channel.capacity(), 0u);
  EXPECT_TRUE(nothing_but_braces());
}

TEST(chan_handle, copies_refer_to_the_same_channel) {
  const weft::chan<int> a(1);
  const weft::chan<int> b = a;
  const weft::chan<int> other(1);
  a.send(3);
  EXPECT_EQ(b.size(), 1u);
  EXPECT_EQ(b.recv(), 3);
  EXPECT_TRUE(a == b);
  EXPECT_TRUE(a != other);
  EXPECT_TRUE(a != nullptr);
  EXPECT_TRUE(weft::chan<int>(nullptr) == weft::chan<int>(nullptr));
}

template <class C>
constexpr bool can_send = requires(C c) {
  c.send(1);
}
|| requires(C c, int v) { c.try_send(v); }
|| requires(C c) { c.close(); };
template <class C>
constexpr bool can_recv = requires(C c) {
  c.recv();
}
|| requires(C c, int v) { c.try_recv(v); }
|| requires(C c) { c.begin(); };

TEST(chan_handle, views_have_only_their_direction) {
  using in = weft::recv_chan<int>;
  using out = weft::send_chan<int>;
  static_assert(std::is_convertible_v<weft::chan<int>, in> && std::is_convertible_v<weft::chan<int>, out>);
  static_assert(!std::is_convertible_v<in, weft::chan<int>> && !std::is_convertible_v<out, weft::chan<int>>);
  static_assert(!std::is_convertible_v<in, out> && !std::is_convertible_v<out, in>);
  static_assert(can_recv<in> && !can_send<in> && can_send<out> && !can_recv<out>);
  weft::chan<int> ch(4);
  const out o = ch;
  const in i = ch;
  o.send(1);
  int value = 2;
  EXPECT_TRUE(o.try_send(value));
  EXPECT_TRUE(o.try_send(3));
  EXPECT_EQ(i.recv(), 1);
  EXPECT_EQ(i.try_recv(value), weft::recv_status::ok);
  EXPECT_EQ(value, 2);
  o.close();
  int sum = 0;
  for (int& v : i) sum += v;
  EXPECT_EQ(sum, 3);
  EXPECT_TRUE(i == in(ch));
  EXPECT_TRUE(o);
  EXPECT_FALSE(in(nullptr));
}

TEST(chan_handle, a_capacity_that_no_memory_holds_is_a_length_error) {
  EXPECT_THROW(weft::chan<int>(std::numeric_limits<std::size_t>::max()), std::length_error);
  EXPECT_THROW(weft::chan<int>(static_cast<std::size_t>(-1)), std::logic_error);
  EXPECT_THROW(weft::chan<std::string>(std::numeric_limits<std::size_t>::max() / 8), std::length_error);
  EXPECT_THROW(weft::chan<nothing>(std::numeric_limits<std::size_t>::max()), std::length_error);
}

TEST(chan_handle, its_iterator_is_an_input_iterator) {
  static_assert(std::input_iterator<weft::chan<int>::iterator>);
  static_assert(std::sentinel_for<weft::chan<int>::sentinel, weft::chan<int>::iterator>);
  static_assert(std::ranges::input_range<weft::chan<std::unique_ptr<int>>>);
  static_assert(std::same_as<decltype(*weft::chan<int>().begin()), int&>);
}

}  // namespace
