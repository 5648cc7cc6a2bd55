// go(): what may be spawned, and what becomes of its captures and arguments.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/await.h"
#include "support/live.h"

namespace {

// Spawns through `spawn` and waits until the goroutine has set the flag it is given.
template <class Spawn>
void run_and_await(Spawn spawn) {
  for (const int procs : {1, 2}) {
    std::atomic<int> done = 0;
    weft::run(
        [&] {
          spawn(done);
          test::await([&] { return done == 1; });
        },
        {.procs = procs});
  }
}

std::atomic<int> calls = 0;
void a_function() { ++calls; }
void a_function_of(int a, int b) { calls += a * b; }

TEST(go, runs_a_function) {
  calls = 0;
  weft::run([] {
    weft::go(a_function);
    weft::go(&a_function);
    weft::go(a_function_of, 2, 5);
    test::await([] { return calls == 12; });
  });
}

TEST(go, runs_a_lambda) {
  run_and_await([](std::atomic<int>& done) { weft::go([&done] { ++done; }); });
}

TEST(go, runs_a_mutable_lambda) {
  run_and_await([](std::atomic<int>& done) {
    weft::go([&done, n = 0]() mutable {
      n += 1;
      done += n;
    });
  });
}

TEST(go, runs_an_lvalue_function_object_as_a_copy) {
  run_and_await([](std::atomic<int>& done) {
    struct adder {
      std::atomic<int>* done;
      int n = 0;
      void operator()() {
        n += 1;
        *done += n;
      }
    };
    adder original{&done};
    weft::go(original);
    test::await([&] { return done == 1; });
    EXPECT_EQ(original.n, 0);
  });
}

TEST(go, runs_a_std_function_and_a_bound_function) {
  run_and_await([](std::atomic<int>& done) {
    std::function<void()> f = [&done] { ++done; };
    weft::go(f);
    test::await([&] { return done == 1; });
    done = 0;
    weft::go(std::bind_front([&done](int n) { done += n; }, 1));
  });
}

struct has_a_member_named_joined {
  bool joined = false;
  std::atomic<int>* ran;
  void operator()() { ++*ran; }
};
struct says_it_is_joined {
  static constexpr bool joined = true;
  std::atomic<int>* ran;
  void operator()() { ++*ran; }
};
struct asks_whether_it_is_joined {
  static bool joined() { return true; }
  std::atomic<int>* ran;
  void operator()() { ++*ran; }
};

TEST(go, makes_nothing_of_the_names_in_a_function_object) {
  weft::run([] {
    std::atomic<int> ran = 0;
    weft::go(has_a_member_named_joined{false, &ran});
    weft::go(says_it_is_joined{&ran});
    weft::go(asks_whether_it_is_joined{&ran});
    test::await([&] { return ran == 3; });
  });
}

TEST(go, ignores_what_the_function_returns) {
  run_and_await([](std::atomic<int>& done) {
    weft::go([&done] {
      ++done;
      return std::string("nobody reads this");
    });
  });
}

TEST(go, moves_move_only_captures) {
  run_and_await([](std::atomic<int>& done) {
    auto value = std::make_unique<int>(5);
    weft::go([&done, value = std::move(value)] {
      EXPECT_EQ(*value, 5);
      ++done;
    });
  });
}

TEST(go, moves_move_only_arguments) {
  run_and_await([](std::atomic<int>& done) {
    auto value = std::make_unique<int>(6);
    weft::go(
        [&done](std::unique_ptr<int> p) {
          EXPECT_EQ(*p, 6);
          ++done;
        },
        std::move(value));
    EXPECT_EQ(value, nullptr);
  });
}

TEST(go, copies_its_arguments_when_it_is_called) {
  run_and_await([](std::atomic<int>& done) {
    std::string text = "as it was at the call";
    int number = 1;
    weft::go(
        [&done](const std::string& s, int n) {
          EXPECT_EQ(s, "as it was at the call");
          EXPECT_EQ(n, 1);
          ++done;
        },
        text, number);
    text = "changed";
    number = 2;
  });
}

TEST(go, decays_its_arguments) {
  run_and_await([](std::atomic<int>& done) {
    const int array[3] = {1, 2, 3};
    const std::string text = "const at the call";
    weft::go(
        [&done, &array](auto pointer, auto function, auto string) {
          static_assert(std::is_same_v<decltype(pointer), const int*>);
          static_assert(std::is_same_v<decltype(function), void (*)()>);
          static_assert(std::is_same_v<decltype(string), std::string>);
          EXPECT_EQ(pointer, array);
          ++done;
        },
        array, a_function, text);
  });
}

TEST(go, passes_references_through_std_ref) {
  run_and_await([](std::atomic<int>& done) {
    int target = 0;
    weft::go(
        [&done](int& n) {
          n = 9;
          ++done;
        },
        std::ref(target));
    test::await([&] { return done == 1; });
    EXPECT_EQ(target, 9);
  });
}

struct ship {
  std::atomic<int> cargo = 0;
  void load(int n) { cargo += n; }
  void unload() { cargo -= 1; }
  void load_from(std::unique_ptr<int> n) { cargo += *n; }
};

TEST(go, calls_member_functions_through_pointer_reference_and_smart_pointer) {
  ship boat;
  auto shared = std::make_shared<ship>();
  weft::run([&] {
    weft::go(&ship::load, &boat, 10);
    weft::go(&ship::unload, std::ref(boat));
    weft::go(&ship::load_from, &boat, std::make_unique<int>(100));
    weft::go(&ship::load, shared, 7);
    test::await([&] { return boat.cargo == 109 && shared->cargo == 7; });
  });
}

TEST(go, keeps_captures_of_every_size_intact) {
  const auto of_size = []<std::size_t size>(std::integral_constant<std::size_t, size>) {
    run_and_await([](std::atomic<int>& done) {
      std::array<unsigned char, size> content;
      for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<unsigned char>(i * 7 + size);
      for (int copy = 0; copy < 3; ++copy) {
        weft::go([&done, content, copy] {
          std::size_t wrong = 0;
          for (std::size_t i = 0; i < size; ++i) wrong += content[i] != static_cast<unsigned char>(i * 7 + size);
          EXPECT_EQ(wrong, 0u) << "of " << size << " bytes";
          if (copy == 2) ++done;
        });
        if (copy < 2) weft::yield();
      }
    });
  };
  const auto each_of = [&]<std::size_t... sizes>(std::index_sequence<sizes...>) {
    (of_size(std::integral_constant<std::size_t, sizes>{}), ...);
  };
  each_of(std::index_sequence<1, 8, 15, 16, 17, 24, 31, 32, 33, 39, 40, 41, 47, 48, 49, 55, 56, 57, 63, 64, 65, 100,
                              128, 255, 256, 257, 1000, 4096, 20'000>{});
}

TEST(go, takes_a_capture_that_is_larger_than_the_stack_it_runs_on) {
  std::atomic<bool> done = false;
  weft::run(
      [&] {
        std::array<int, 100'000> content;
        content.fill(3);
        weft::go({.name = "small", .stack_size = 64 * 1024}, [&done, content] {
          EXPECT_EQ(content.front(), 3);
          EXPECT_EQ(content.back(), 3);
          done = true;
        });
        test::await([&] { return done.load(); });
      },
      {.stack_size = 4 * 1024 * 1024});
}

TEST(go, aligns_over_aligned_captures_and_arguments) {
  const auto aligned_to = []<std::size_t alignment>(std::integral_constant<std::size_t, alignment>) {
    struct alignas(alignment) thing {
      std::uintptr_t content = 0x5eed;
      bool is_aligned() const { return reinterpret_cast<std::uintptr_t>(this) % alignment == 0; }
    };
    run_and_await([](std::atomic<int>& done) {
      weft::go([&done, captured = thing{}] {
        EXPECT_TRUE(captured.is_aligned()) << alignment;
        EXPECT_EQ(captured.content, 0x5eedu);
        ++done;
      });
      test::await([&] { return done == 1; });
      done = 0;
      weft::go(
          [&done](const thing& argument) {
            EXPECT_TRUE(argument.is_aligned()) << alignment;
            EXPECT_EQ(argument.content, 0x5eedu);
            ++done;
          },
          thing{});
    });
  };
  aligned_to(std::integral_constant<std::size_t, 16>{});
  aligned_to(std::integral_constant<std::size_t, 32>{});
  aligned_to(std::integral_constant<std::size_t, 64>{});
  aligned_to(std::integral_constant<std::size_t, 128>{});
  aligned_to(std::integral_constant<std::size_t, 4096>{});
}

TEST(go, destroys_captures_and_arguments_exactly_once) {
  for (const int procs : {1, 4}) {
    std::atomic<int> alive = 0;
    std::atomic<int> ran = 0;
    weft::run(
        [&] {
          for (int i = 0; i < 1000; ++i) {
            weft::go([&ran, captured = test::live(alive)](const test::live&) { ++ran; }, test::live(alive));
            weft::go([&ran, captured = test::live(alive), large = std::array<char, 500>{}] { ++ran; });
          }
          test::await([&] { return ran == 2000 && alive == 0; });
        },
        {.procs = procs});
    EXPECT_EQ(alive, 0);
  }
}

TEST(go, destroys_captures_in_the_goroutine_that_ran_them) {
  struct witness {
    std::atomic<std::uint64_t>* destroyed_in;
    explicit witness(std::atomic<std::uint64_t>& where) : destroyed_in(&where) {}
    witness(witness&& other) noexcept : destroyed_in(std::exchange(other.destroyed_in, nullptr)) {}
    ~witness() {
      if (destroyed_in == nullptr) return;
      weft::yield();
      *destroyed_in = weft::goroutine_id();
    }
  };
  for (const int procs : {1, 2}) {
    std::atomic<std::uint64_t> ran_in = 0;
    std::atomic<std::uint64_t> destroyed_in = 0;
    weft::run(
        [&] {
          weft::go([&ran_in, w = witness(destroyed_in)] { ran_in = weft::goroutine_id(); });
          test::await([&] { return destroyed_in != 0; });
        },
        {.procs = procs});
    EXPECT_EQ(ran_in, destroyed_in);
  }
}

TEST(go, lets_an_exception_of_the_copy_leave_and_spawns_nothing) {
  struct uncopyable_in_fact {
    uncopyable_in_fact() = default;
    uncopyable_in_fact(const uncopyable_in_fact&) { throw std::runtime_error("cannot be copied"); }
    void operator()() const { ADD_FAILURE() << "was spawned"; }
  };
  weft::run([] {
    test::await_solitude();
    const uncopyable_in_fact f;
    EXPECT_THROW(weft::go(f), std::runtime_error);
    EXPECT_THROW(weft::go([](const uncopyable_in_fact&) { ADD_FAILURE() << "was spawned"; }, f), std::runtime_error);
    EXPECT_THROW(weft::go({.name = "with a name"}, f), std::runtime_error);
    EXPECT_EQ(weft::runtime::num_goroutine(), 1u);
    for (int i = 0; i < 100; ++i) weft::yield();
  });
}

TEST(go, does_not_let_the_caller_wait_for_the_goroutine) {
  weft::run(
      [] {
        std::atomic<bool> caller_went_on = false;
        std::atomic<bool> done = false;
        weft::go([&] {
          test::await([&] { return caller_went_on.load(); });
          done = true;
        });
        caller_went_on = true;
        test::await([&] { return done.load(); });
      },
      {.procs = 1});
}

TEST(go, runs_each_of_many_goroutines_exactly_once) {
  for (const int procs : {1, 2, 8, 32}) {
    constexpr std::size_t count = 20'000;
    std::vector<std::atomic<int>> runs(count);
    std::atomic<std::size_t> total = 0;
    weft::run(
        [&] {
          for (auto& own : runs) {
            weft::go([&] {
              ++own;
              ++total;
            });
          }
          test::await([&] { return total == count; });
        },
        {.procs = procs});
    for (const auto& own : runs) ASSERT_EQ(own, 1);
  }
}

void spread(int depth, std::atomic<int>& leaves) {
  if (depth == 0) {
    ++leaves;
    return;
  }
  weft::go([depth, &leaves] { spread(depth - 1, leaves); });
  weft::go(spread, depth - 1, std::ref(leaves));
}

TEST(go, lets_goroutines_spawn_goroutines) {
  for (const int procs : {1, 2, 8}) {
    std::atomic<int> leaves = 0;
    weft::run(
        [&] {
          spread(14, leaves);
          test::await([&] { return leaves == 1 << 14; });
        },
        {.procs = procs});
  }
}

TEST(go_options, are_optional_one_by_one) {
  std::atomic<int> done = 0;
  weft::run([&] {
    weft::go(weft::go_options{}, [&] { ++done; });
    weft::go({.name = "named"}, [&] { ++done; });
    weft::go({.stack_size = 128 * 1024}, [&] { ++done; });
    weft::go(
        {.name = "named and sized", .stack_size = 1024 * 1024}, [&](int n) { done += n; }, 1);
    test::await([&] { return done == 4; });
  });
}

TEST(go_options, may_name_a_goroutine_by_a_string_that_dies_at_once) {
  std::atomic<int> done = 0;
  weft::run([&] {
    for (int i = 0; i < 1000; ++i) {
      weft::go({.name = "a name too long for any small buffer, number " + std::to_string(i)}, [&] { ++done; });
    }
    test::await([&] { return done == 1000; });
  });
}

TEST(go_options, take_the_same_functions_captures_and_arguments) {
  run_and_await([](std::atomic<int>& done) {
    weft::go(
        {.name = "all at once"},
        [&done, captured = std::make_unique<int>(1), large = std::array<int, 200>{}](std::unique_ptr<int> p,
                                                                                     const std::string& s) {
          EXPECT_EQ(*captured + *p, 3);
          EXPECT_EQ(large[199], 0);
          EXPECT_EQ(s, "text");
          ++done;
        },
        std::make_unique<int>(2), "text");
  });
  ship boat;
  weft::run([&] {
    weft::go({.name = "member"}, &ship::load, &boat, 3);
    test::await([&] { return boat.cargo == 3; });
  });
}

}  // namespace
