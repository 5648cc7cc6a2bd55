// pollable: waiting for descriptors of others.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include "support/anywhere.h"
#include "support/net.h"
#include "support/pipe.h"

namespace {

using namespace std::chrono_literals;
using test::error_of;
using clock = std::chrono::steady_clock;

using pipe_ends = test::nonblocking_pipe;

class pollable : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(, pollable, test::everywhere(), test::name_of);

TEST_P(pollable, wait_readable_returns_when_there_is_something_and_every_time_while_there_is) {
  here([] {
    pipe_ends pipe;
    weft::pollable in(pipe.in);
    test::crew crew;
    std::atomic<bool> readable = false;
    crew.goroutine([&] {
      in.wait_readable();
      readable = true;
    });
    test::await_io_wait();
    EXPECT_FALSE(readable);
    ASSERT_EQ(::write(pipe.out, "xy", 2), 2);
    crew.wait();
    in.wait_readable();
    char byte;
    ASSERT_EQ(::read(pipe.in, &byte, 1), 1);
    in.wait_readable();  // one is left
    ASSERT_EQ(::read(pipe.in, &byte, 1), 1);
    in.set_deadline(clock::now() + 2ms);
    EXPECT_EQ(error_of([&](std::error_code& ec) { in.wait_readable(ec); }), std::errc::timed_out);
  });
}

TEST_P(pollable, wait_writable_returns_when_there_is_room) {
  here([] {
    pipe_ends pipe;
    weft::pollable out(pipe.out);
    out.wait_writable();
    const std::string block(4096, 'x');
    std::size_t written = 0;
    for (ssize_t n; (n = ::write(pipe.out, block.data(), block.size())) > 0;) written += static_cast<std::size_t>(n);
    test::crew crew;
    crew.goroutine([&] { out.wait_writable(); });
    test::await_io_wait();
    std::string sink(written, ' ');
    while (written > 0) {
      const ssize_t n = ::read(pipe.in, sink.data(), sink.size());
      ASSERT_GT(n, 0);
      written -= static_cast<std::size_t>(n);
    }
  });
}

TEST_P(pollable, the_end_of_a_pipe_is_readable) {
  here([] {
    pipe_ends pipe;
    weft::pollable in(pipe.in);
    test::crew crew;
    crew.goroutine([&] { in.wait_readable(); });
    test::await_io_wait();
    ::close(pipe.out);
    crew.wait();
    pipe.out = ::dup(0);
  });
}

TEST_P(pollable, close_wakes_the_waiters_and_leaves_the_descriptor_open) {
  here([] {
    pipe_ends pipe;
    weft::pollable in(pipe.in);
    test::crew crew;
    std::atomic<int> canceled = 0;
    for (int i = 0; i < 4; ++i) {
      crew.either(i, [&] {
        canceled += error_of([&](std::error_code& ec) { in.wait_readable(ec); }) == std::errc::operation_canceled;
      });
    }
    test::await_io_wait();
    in.close();
    in.close();
    crew.wait();
    EXPECT_EQ(canceled, 4);
    EXPECT_GE(::fcntl(pipe.in, F_GETFD), 0);
    EXPECT_THROW(in.wait_readable(), std::system_error);

    weft::pollable again(pipe.in);
    ASSERT_EQ(::write(pipe.out, "x", 1), 1);
    again.wait_readable();
  });
}

// Whoever waited closes the descriptor when close() has woken it, and its number is another one's at once. The closer, still on its
// way out, must not take that one from the poller.
TEST_P(pollable, close_has_nothing_to_do_with_the_next_owner_of_the_number) {
  here([] {
    for (int round = 0; round < 300; ++round) {
      std::atomic<weft::pollable*> current = nullptr;
      std::atomic<bool> closed = false;
      test::crew crew;
      crew.either(round, [&] {
        auto first = std::make_unique<pipe_ends>();
        weft::pollable in(first->in);
        current = &in;
        EXPECT_EQ(error_of([&](std::error_code& ec) { in.wait_readable(ec); }), std::errc::operation_canceled);
        first.reset();
        pipe_ends second;
        weft::pollable again(second.in);
        again.set_deadline(clock::now() + 20s);
        std::thread writes([&] {
          test::await_io_wait();
          second.write();
        });
        EXPECT_FALSE(error_of([&](std::error_code& ec) { again.wait_readable(ec); }));
        writes.join();
        test::await([&] { return closed.load(); });  // the object outlives the call
      });
      test::await([&] { return current.load() != nullptr; });
      if (round % 2 == 0) test::await_io_wait();
      current.load()->close();
      closed = true;
    }
  });
}

TEST_P(pollable, two_of_them_may_watch_one_descriptor) {
  here([] {
    pipe_ends pipe;
    weft::pollable first(pipe.in);
    weft::pollable second(pipe.in);
    test::crew crew;
    crew.goroutine([&] { first.wait_readable(); });
    crew.goroutine([&] { second.wait_readable(); });
    test::await_io_waits(2);
    ASSERT_EQ(::write(pipe.out, "x", 1), 1);
    crew.wait();
  });
}

TEST_P(pollable, eventfds_and_timerfds_can_be_waited_for) {
  here([] {
    const int event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const int timer = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    {
      weft::pollable e(event);
      weft::pollable t(timer);
      const itimerspec soon{{0, 0}, {0, 2'000'000}};
      ::timerfd_settime(timer, 0, &soon, nullptr);
      t.wait_readable();
      test::crew crew;
      for (int i = 0; i < 50; ++i) {
        crew.goroutine([&] { ::eventfd_write(event, 1); });
        e.wait_readable();
        eventfd_t value;
        ::eventfd_read(event, &value);
      }
    }
    ::close(event);
    ::close(timer);
  });
}

TEST_P(pollable, a_regular_file_is_always_ready) {
  here([] {
    const int fd = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    weft::pollable file(fd);
    file.wait_readable();
    file.wait_writable();
    ::close(fd);
  });
}

TEST(pollable_errors, what_is_no_descriptor_is_an_error) { EXPECT_THROW(weft::pollable(-1), std::system_error); }

}  // namespace
