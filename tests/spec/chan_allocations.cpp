// What channels and selects cost in memory: a channel is one small block, and once it exists nothing is allocated.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <thread>
#include <optional>
#include <stop_token>

namespace {

std::atomic<std::size_t> allocations{0};
std::atomic<std::size_t> bytes{0};

const std::thread::id tests_thread = std::this_thread::get_id();

void* count_and_allocate(std::size_t size, std::size_t alignment) {
  // Those of goroutines and of the tests themselves: the runtime may start a thread at any time.
  if (weft::in_goroutine() || std::this_thread::get_id() == tests_thread) {
    ++allocations;
    bytes += size;
  }
  void* p = alignment > __STDCPP_DEFAULT_NEW_ALIGNMENT__
                ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
                : std::malloc(size);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) { return count_and_allocate(size, 1); }
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t a) {
  return count_and_allocate(size, static_cast<std::size_t>(a));
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace {

using namespace std::chrono_literals;

TEST(chan_allocations, an_unbuffered_channel_of_ints_is_one_block_of_192_bytes_at_most) {
  const std::size_t before = allocations;
  const std::size_t bytes_before = bytes;
  const weft::chan<int> ch;
  EXPECT_EQ(allocations - before, 1u);
  EXPECT_LE(bytes - bytes_before, 192u);
}

TEST(chan_allocations, a_buffered_channel_is_one_block) {
  const std::size_t before = allocations;
  const weft::chan<int> ch(1000);
  EXPECT_EQ(allocations - before, 1u);
}

TEST(chan_allocations, values_that_come_and_go_allocate_nothing) {
  for (const int procs : {1, 2}) {
    weft::run(
        [] {
          for (const std::size_t capacity : {0u, 1u, 8u}) {
            weft::chan<std::uint64_t> there(capacity), back(capacity);
            weft::go([=] {
              for (const std::uint64_t v : there) back.send(v + 1);
              back.close();
            });
            there.send(0);
            back.recv();
            const std::size_t before = allocations;
            for (std::uint64_t i = 0; i < 1000; ++i) {
              there.send(i);
              ASSERT_EQ(back.recv(), i + 1);
            }
            EXPECT_EQ(allocations, before);
            there.close();
            back.recv();
          }
        },
        {.procs = procs});
  }
}

TEST(chan_allocations, a_select_allocates_nothing) {
  for (const int procs : {1, 2}) {
    weft::run(
        [] {
          weft::chan<std::uint64_t> a, b, back;
          const std::stop_source stop;
          weft::go([=] {
            for (std::uint64_t i = 0;; ++i) {
              bool over = false;
              weft::select(weft::on_send(i % 2 == 0 ? a : b, i),
                           weft::on_recv(back, [&](std::optional<std::uint64_t> v) { over = !v; }));
              if (over) return;
            }
          });
          std::uint64_t sum = 0;
          const auto add = [&](std::optional<std::uint64_t> v) { sum += *v; };
          const auto turn = [&] {
            weft::select(weft::on_recv(a, add), weft::on_recv(b, add), weft::on_timeout(1h),
                         weft::on_stop(stop.get_token()));
          };
          for (int i = 0; i < 10; ++i) turn();
          const std::size_t before = allocations;
          for (int i = 0; i < 1000; ++i) turn();
          EXPECT_EQ(allocations, before);
          EXPECT_EQ(sum, 1010u * 1009u / 2);
          back.close();
        },
        {.procs = procs});
  }
}

TEST(chan_allocations, a_selector_allocates_nothing_when_it_waits_again) {
  weft::run(
      [] {
        weft::chan<int> ch[100];
        weft::selector all;
        for (const auto& c : ch) all.add(weft::on_recv(c));
        weft::go([&] {
          for (int i = 0; i < 300; ++i) ch[i % 100].send(i);
        });
        for (int i = 0; i < 100; ++i) all.wait();
        const std::size_t before = allocations;
        for (int i = 0; i < 200; ++i) all.wait();
        EXPECT_EQ(allocations, before);
      },
      {.procs = 1});
}

}  // namespace
