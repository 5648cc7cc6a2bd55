// When a send or a receive waits, who is served first, and what close does to those who wait.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/build.h"
#include "support/chan_places.h"

namespace {

using namespace std::chrono_literals;

class chan_anywhere : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(everywhere, chan_anywhere, test::all_places(), test::name_of_place);

TEST_P(chan_anywhere, a_value_arrives) {
  here([] {
    weft::chan<int> ch;
    weft::go([ch] { ch.send(42); });
    EXPECT_EQ(ch.recv(), 42);
  });
}

TEST_P(chan_anywhere, an_unbuffered_send_returns_only_when_it_is_received) {
  here([] {
    weft::chan<int> ch;
    std::atomic<bool> sent = false;
    std::atomic<bool> received = false;
    weft::go([&] {
      EXPECT_TRUE(test::stays_false(5ms, [&] { return sent.load(); }));
      EXPECT_EQ(ch.recv(), 1);
      received = true;
    });
    ch.send(1);
    sent = true;
    test::await([&] { return received.load(); });
  });
}

TEST_P(chan_anywhere, what_the_sender_wrote_is_seen_by_the_receiver) {
  here([] {
    for (const std::size_t capacity : {0u, 1u, 10u}) {
      int shared = 0;
      weft::chan<int> ch(capacity);
      weft::go([&, ch] {
        shared = 5;
        ch.send(0);
      });
      ch.recv();
      EXPECT_EQ(shared, 5);
    }
  });
}

TEST_P(chan_anywhere, a_buffered_send_does_not_wait_while_there_is_room) {
  here([] {
    weft::chan<int> ch(3);
    EXPECT_EQ(ch.capacity(), 3u);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(ch.size(), static_cast<std::size_t>(i));
      ch.send(i);
    }
    EXPECT_EQ(ch.size(), 3u);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(ch.recv(), i);
    EXPECT_EQ(ch.size(), 0u);
  });
}

TEST_P(chan_anywhere, values_of_one_sender_keep_their_order) {
  static constexpr int n = test::scaled(20'000, 3'000, 3'000);
  here([] {
    for (const std::size_t capacity : {0u, 1u, 2u, 100u}) {
      weft::chan<int> ch(capacity);
      weft::go([ch] {
        for (int i = 0; i < n; ++i) ch.send(i);
        ch.close();
      });
      int next = 0;
      for (const int v : ch) ASSERT_EQ(v, next++);
      ASSERT_EQ(next, n);
    }
  });
}

TEST_P(chan_anywhere, every_value_is_received_exactly_once) {
  static constexpr int senders = 6, receivers = 5, each = test::scaled(3000, 500, 500);
  here([] {
    for (const std::size_t capacity : {0u, 1u, 10u}) {
      weft::chan<int> ch(capacity);
      weft::chan<std::vector<int>> results;
      std::atomic<int> senders_left = senders;
      for (int s = 0; s < senders; ++s) {
        weft::go([&, s] {
          for (int i = 0; i < each; ++i) ch.send(s * each + i);
          if (--senders_left == 0) ch.close();
        });
      }
      for (int r = 0; r < receivers; ++r) {
        weft::go([&] {
          std::vector<int> mine;
          for (const int v : ch) mine.push_back(v);
          results.send(std::move(mine));
        });
      }
      std::vector<int> all;
      for (int r = 0; r < receivers; ++r) {
        const std::optional<std::vector<int>> some = results.recv();
        all.insert(all.end(), some->begin(), some->end());
      }
      std::sort(all.begin(), all.end());
      ASSERT_EQ(all.size(), static_cast<std::size_t>(senders * each));
      for (int i = 0; i < senders * each; ++i) ASSERT_EQ(all[static_cast<std::size_t>(i)], i);
    }
  });
}

TEST_P(chan_anywhere, goroutines_and_threads_share_a_channel) {
  static constexpr int each = test::scaled(2000, 300, 300);
  here([] {
    for (const std::size_t capacity : {0u, 3u}) {
      weft::chan<int> ch(capacity);
      weft::chan<long> sums(4);
      std::vector<std::thread> threads;
      const auto produce = [ch] {
        for (int i = 1; i <= each; ++i) ch.send(i);
      };
      const auto consume = [ch, sums] {
        long sum = 0;
        for (const int v : ch) sum += v;
        sums.send(sum);
      };
      std::atomic<int> producing = 4;
      const auto produce_and_close = [&] {
        produce();
        if (--producing == 0) ch.close();
      };
      for (int i = 0; i < 2; ++i) {
        weft::go(consume);
        weft::go(produce_and_close);
        threads.emplace_back(consume);
        threads.emplace_back(produce_and_close);
      }
      long total = 0;
      for (int i = 0; i < 4; ++i) total += *sums.recv();
      EXPECT_EQ(total, 4L * each * (each + 1) / 2);
      for (std::thread& t : threads) t.join();
    }
  });
}

// ---- not waiting ----

TEST_P(chan_anywhere, try_send_and_try_recv_never_wait) {
  here([] {
    weft::chan<int> unbuffered;
    int value = 1;
    EXPECT_FALSE(unbuffered.try_send(value));
    EXPECT_FALSE(unbuffered.try_send(2));
    EXPECT_EQ(unbuffered.try_recv(value), weft::recv_status::empty);
    weft::chan<int> buffered(1);
    EXPECT_EQ(buffered.try_recv(value), weft::recv_status::empty);
    EXPECT_TRUE(buffered.try_send(7));
    EXPECT_FALSE(buffered.try_send(8));
    EXPECT_EQ(buffered.try_recv(value), weft::recv_status::ok);
    EXPECT_EQ(value, 7);
  });
}

TEST_P(chan_anywhere, try_send_finds_a_waiting_receiver) {
  here([] {
    weft::chan<int> ch;
    weft::chan<int> result(1);
    weft::go([=] { result.send(*ch.recv()); });
    test::await([&] { return ch.try_send(3); });
    EXPECT_EQ(result.recv(), 3);
  });
}

TEST_P(chan_anywhere, try_recv_finds_a_waiting_sender) {
  here([] {
    weft::chan<std::string> ch;
    weft::go([=] { ch.send("hello"); });
    std::string out;
    test::await([&] { return ch.try_recv(out) == weft::recv_status::ok; });
    EXPECT_EQ(out, "hello");
  });
}

TEST_P(chan_anywhere, try_recv_from_a_full_buffer_lets_the_waiting_sender_in) {
  here([] {
    weft::chan<int> ch(1);
    ch.send(1);
    std::atomic<bool> sent = false;
    weft::go([&, ch] {
      ch.send(2);
      sent = true;
    });
    int out = 0;
    EXPECT_EQ(ch.try_recv(out), weft::recv_status::ok);
    EXPECT_EQ(out, 1);
    test::await([&] { return sent.load(); });
    EXPECT_EQ(ch.recv(), 2);
  });
}

// ---- first come, first served ----

TEST(chan_order, receivers_are_served_in_the_order_of_their_coming) {
  weft::run(
      [] {
        weft::chan<int> ch;
        std::vector<std::pair<int, int>> got;
        for (int r = 0; r < 10; ++r) {
          weft::go([&, r] { got.emplace_back(r, *ch.recv()); });
          test::let_others_run();
        }
        for (int i = 0; i < 10; ++i) ch.send(i);
        test::let_others_run();
        std::sort(got.begin(), got.end());
        ASSERT_EQ(got.size(), 10u);
        for (int i = 0; i < 10; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], std::pair(i, i));
      },
      {.procs = 1});
}

TEST(chan_order, senders_are_served_in_the_order_of_their_coming) {
  weft::run(
      [] {
        for (const std::size_t capacity : {0u, 1u, 3u}) {
          weft::chan<int> bits(capacity);
          weft::chan<std::string> objects(capacity);
          for (int s = 0; s < 10; ++s) {
            weft::go([bits, s] { bits.send(s); });
            weft::go([objects, s] { objects.send(std::to_string(s)); });
            test::let_others_run();
          }
          for (int i = 0; i < 10; ++i) {
            EXPECT_EQ(bits.recv(), i);
            EXPECT_EQ(objects.recv(), std::to_string(i));
          }
        }
      },
      {.procs = 1});
}

TEST(chan_order, a_select_stands_in_line_like_everybody_else) {
  weft::run(
      [] {
        weft::chan<int> ch;
        weft::chan<int> other;
        std::vector<std::pair<int, int>> got;
        for (int r = 0; r < 6; ++r) {
          weft::go([&, r] {
            if (r % 2 == 0) {
              got.emplace_back(r, *ch.recv());
            } else {
              weft::select(weft::on_recv(other),
                           weft::on_recv(ch, [&](std::optional<int> v) { got.emplace_back(r, *v); }));
            }
          });
          test::let_others_run();
        }
        for (int i = 0; i < 6; ++i) ch.send(i);
        test::let_others_run();
        std::sort(got.begin(), got.end());
        ASSERT_EQ(got.size(), 6u);
        for (int i = 0; i < 6; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], std::pair(i, i));
      },
      {.procs = 1});
}

// ---- close ----

TEST_P(chan_anywhere, a_closed_channel_gives_what_it_holds_and_then_nothing) {
  here([] {
    weft::chan<int> ch(3);
    ch.send(1);
    ch.send(2);
    ch.close();
    EXPECT_EQ(ch.size(), 2u);
    EXPECT_EQ(ch.recv(), 1);
    int out = 0;
    EXPECT_EQ(ch.try_recv(out), weft::recv_status::ok);
    EXPECT_EQ(out, 2);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(ch.recv(), std::nullopt);
      EXPECT_EQ(ch.try_recv(out), weft::recv_status::closed);
    }
  });
}

TEST_P(chan_anywhere, a_value_that_looks_like_nothing_is_a_value) {
  here([] {
    weft::chan<int> ch(2);
    ch.send(0);
    ch.close();
    EXPECT_EQ(ch.recv(), std::optional<int>(0));
    EXPECT_EQ(ch.recv(), std::nullopt);
  });
}

TEST_P(chan_anywhere, send_on_a_closed_channel_is_an_error) {
  here([] {
    for (const std::size_t capacity : {0u, 2u}) {
      weft::chan<int> ch(capacity);
      ch.close();
      try {
        ch.send(1);
        ADD_FAILURE() << "sent";
      } catch (const weft::channel_error& e) {
        EXPECT_STREQ(e.what(), "send on closed channel");
      }
      int value = 2;
      EXPECT_THROW(ch.try_send(value), weft::channel_error);
      EXPECT_THROW(ch.try_send(3), std::logic_error);
      EXPECT_EQ(ch.recv(), std::nullopt);
    }
  });
}

TEST_P(chan_anywhere, close_of_a_closed_channel_is_an_error) {
  here([] {
    weft::chan<int> ch;
    ch.close();
    try {
      ch.close();
      ADD_FAILURE() << "closed";
    } catch (const weft::channel_error& e) {
      EXPECT_STREQ(e.what(), "close of closed channel");
    }
  });
}

TEST_P(chan_anywhere, close_of_the_nil_channel_is_an_error) {
  here([] {
    const weft::chan<int> nil = nullptr;
    try {
      nil.close();
      ADD_FAILURE() << "closed";
    } catch (const weft::channel_error& e) {
      EXPECT_STREQ(e.what(), "close of nil channel");
    }
  });
}

TEST_P(chan_anywhere, close_wakes_every_blocked_receiver) {
  static constexpr int n = 200;
  here([] {
    weft::chan<int> ch;
    std::atomic<int> arrived = 0;
    std::atomic<int> woken = 0;
    for (int i = 0; i < n; ++i) {
      weft::go([&] {
        ++arrived;
        EXPECT_EQ(ch.recv(), std::nullopt);
        ++woken;
      });
    }
    std::thread outsider([&] {
      ++arrived;
      EXPECT_EQ(ch.recv(), std::nullopt);
      ++woken;
    });
    test::await([&] { return arrived == n + 1; });
    EXPECT_EQ(woken, 0);
    ch.close();
    test::await([&] { return woken == n + 1; });
    outsider.join();
  });
}

TEST_P(chan_anywhere, close_wakes_every_blocked_sender_with_an_error) {
  static constexpr int n = 200;
  here([] {
    for (const std::size_t capacity : {0u, 1u}) {
      weft::chan<std::string> ch(capacity);
      if (capacity == 1) ch.send("in the buffer");
      std::atomic<int> arrived = 0;
      std::atomic<int> failed = 0;
      const auto sender = [&] {
        ++arrived;
        EXPECT_THROW(ch.send("never received"), weft::channel_error);
        ++failed;
      };
      for (int i = 0; i < n; ++i) weft::go(sender);
      std::thread outsider(sender);
      test::await([&] { return arrived == n + 1; });
      ch.close();
      test::await([&] { return failed == n + 1; });
      outsider.join();
      if (capacity == 1) {
        EXPECT_EQ(ch.recv(), "in the buffer");
      }
      EXPECT_EQ(ch.recv(), std::nullopt);
    }
  });
}

TEST_P(chan_anywhere, selects_leave_a_channel_by_another_way_while_close_wakes_those_who_wait) {
  static constexpr int n = 200;
  static constexpr int rounds = test::scaled(50, 10, 10);
  here([] {
    for (int round = 0; round < rounds; ++round) {
      weft::chan<int> a, b;
      std::atomic<int> arrived = 0;
      std::atomic<int> woken = 0;
      for (int i = 0; i < n; ++i) {
        weft::go([&] {
          ++arrived;
          weft::select(weft::on_recv(a), weft::on_recv(b));
          ++woken;
        });
      }
      test::await([&] { return arrived == n; });
      weft::go([b] { b.close(); });
      a.close();
      test::await([&] { return woken == n; });
    }
  });
}

TEST_P(chan_anywhere, closing_while_others_send_and_receive_loses_nothing_that_was_sent) {
  static constexpr int rounds = test::scaled(300, 60, 60);
  here([] {
    for (int round = 0; round < rounds; ++round) {
      weft::chan<int> ch(static_cast<std::size_t>(round % 3));
      std::atomic<int> sent = 0;
      std::atomic<int> received = 0;
      std::atomic<int> left = 6;
      for (int i = 0; i < 3; ++i) {
        weft::go([&] {
          try {
            for (;;) {
              ch.send(1);
              if (++sent % 8 == 0) weft::yield();  // a pair that talks shares its time slice and would keep it all
            }
          } catch (const weft::channel_error&) {
          }
          --left;
        });
        weft::go([&] {
          for (const int v : ch) received += v;
          --left;
        });
      }
      for (int i = 0; i < round % 17; ++i) weft::yield();
      ch.close();
      test::await([&] { return left == 0; });
      ASSERT_EQ(sent, received);
    }
  });
}

TEST_P(chan_anywhere, range_for_ends_when_the_channel_is_closed_and_drained) {
  here([] {
    weft::chan<std::string> ch(2);
    weft::go([ch] {
      for (const char* word : {"for", "each", "of", "them"}) ch.send(word);
      ch.close();
    });
    std::string all;
    for (std::string& word : ch) {
      word += ' ';
      all += word;
    }
    EXPECT_EQ(all, "for each of them ");
    for (const std::string& word : ch) ADD_FAILURE() << word;
  });
}

TEST_P(chan_anywhere, a_range_for_that_is_left_early_leaves_the_rest) {
  here([] {
    weft::chan<int> ch(5);
    for (int i = 0; i < 5; ++i) ch.send(i);
    for (const int v : ch) {
      if (v == 1) break;
    }
    EXPECT_EQ(ch.recv(), 2);
  });
}

TEST_P(chan_anywhere, a_channel_may_be_dropped_by_the_receiver_while_the_sender_is_still_in_its_call) {
  static constexpr int rounds = test::scaled(3000, 500, 500);
  here([] {
    for (int i = 0; i < rounds; ++i) {
      auto ch = std::make_unique<weft::chan<int>>();
      weft::go([c = ch.get()] { c->send(1); });
      EXPECT_EQ(ch->recv(), 1);
    }
  });
}

// ---- nil ----

TEST(chan_nil, sends_and_receives_block_for_ever) {
  weft::run(
      [] {
        const weft::chan<int> nil = nullptr;
        std::atomic<int> arrived = 0;
        std::atomic<int> passed = 0;
        weft::go([&, nil] {
          ++arrived;
          nil.send(1);
          ++passed;
        });
        weft::go([&, nil] {
          ++arrived;
          nil.recv();
          ++passed;
        });
        weft::go([&, nil] {
          ++arrived;
          for (int v : nil) passed += v + 1;
        });
        test::let_others_run();
        EXPECT_EQ(arrived, 3);
        EXPECT_EQ(passed, 0);
        int value = 0;
        EXPECT_FALSE(nil.try_send(value));
        EXPECT_EQ(nil.try_recv(value), weft::recv_status::empty);
      },
      {.procs = 1});
}

// ---- programs ----

TEST_P(chan_anywhere, a_prime_sieve_of_goroutines_finds_the_primes) {
  here([] {
    weft::chan<int> in;
    weft::go([out = in] {
      for (int i = 2; i < 550; ++i) out.send(i);
      out.close();
    });
    std::vector<int> primes;
    while (const std::optional<int> prime = in.recv()) {
      primes.push_back(*prime);
      weft::chan<int> out;
      weft::go([in, out, p = *prime] {
        for (const int v : in) {
          if (v % p != 0) out.send(v);
        }
        out.close();
      });
      in = out;
    }
    ASSERT_EQ(primes.size(), 101u);
    EXPECT_EQ(primes.back(), 547);
  });
}

TEST_P(chan_anywhere, a_semaphore_can_be_made_of_a_buffered_channel) {
  static constexpr int limit = 3, workers = 20;
  here([] {
    struct token {};
    weft::chan<token> tokens(limit);
    std::atomic<int> inside = 0, most = 0, done = 0;
    for (int i = 0; i < workers; ++i) {
      weft::go([&] {
        tokens.send({});
        const int now = ++inside;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        for (int k = 0; k < 5; ++k) weft::yield();
        --inside;
        tokens.recv();
        ++done;
      });
    }
    test::await([&] { return done == workers; });
    EXPECT_LE(most, limit);
  });
}

}  // namespace
