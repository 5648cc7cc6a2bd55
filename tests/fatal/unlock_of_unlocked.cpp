// Unlocking what is not locked ends the program with a message, as in Go.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <csignal>

#include "support/subprocess.h"

namespace {

template <void (*Body)()>
void in_a_goroutine() {
  weft::run([] { Body(); }, {.procs = 2});
}

void unlock_mutex() {
  weft::mutex m;
  m.unlock();
}
void unlock_mutex_twice() {
  weft::mutex m;
  m.lock();
  m.unlock();
  m.unlock();
}
void unlock_timed_mutex() {
  weft::timed_mutex m;
  m.unlock();
}
void unlock_recursive_mutex() {
  weft::recursive_mutex m;
  m.unlock();
}
void unlock_recursive_mutex_of_another() {
  weft::recursive_mutex m;
  m.lock();
  weft::wait_group other;
  other.go([&] { m.unlock(); });
  other.wait();
}
void unlock_shared_mutex() {
  weft::shared_mutex m;
  m.unlock();
}
void unlock_shared_mutex_held_by_readers() {
  weft::shared_mutex m;
  m.lock_shared();
  m.unlock();
}
void unlock_shared_of_shared_mutex() {
  weft::shared_mutex m;
  m.unlock_shared();
}
void unlock_shared_of_shared_mutex_held_by_a_writer() {
  weft::shared_mutex m;
  m.lock();
  m.unlock_shared();
}

void expect_fatal(const test::scenario& s, const char* message) {
  const auto end = s.run();
  EXPECT_EQ(end.signal, SIGABRT) << end;
  EXPECT_NE(end.err.find(message), std::string::npos) << end;
}

constexpr const char* of_mutex = "fatal error: sync: unlock of unlocked mutex\n";
constexpr const char* of_shared = "fatal error: sync: unlock of unlocked shared_mutex\n";
constexpr const char* of_readers = "fatal error: sync: unlock_shared of unlocked shared_mutex\n";

const test::scenario mutex_by_thread("mutex_by_thread", unlock_mutex);
const test::scenario mutex_by_goroutine("mutex_by_goroutine", in_a_goroutine<unlock_mutex>);
const test::scenario mutex_twice("mutex_twice", in_a_goroutine<unlock_mutex_twice>);
TEST(unlock_of_unlocked_mutex, ends_the_program_with_a_message) {
  expect_fatal(mutex_by_thread, of_mutex);
  expect_fatal(mutex_by_goroutine, of_mutex);
  expect_fatal(mutex_twice, of_mutex);
}

const test::scenario timed("timed", unlock_timed_mutex);
TEST(unlock_of_unlocked_timed_mutex, ends_the_program_with_a_message) { expect_fatal(timed, of_mutex); }

const test::scenario recursive("recursive", in_a_goroutine<unlock_recursive_mutex>);
const test::scenario recursive_of_another("recursive_of_another", in_a_goroutine<unlock_recursive_mutex_of_another>);
TEST(unlock_of_a_recursive_mutex_that_one_does_not_hold, ends_the_program_with_a_message) {
  expect_fatal(recursive, of_mutex);
  expect_fatal(recursive_of_another, of_mutex);
}

const test::scenario shared("shared", in_a_goroutine<unlock_shared_mutex>);
const test::scenario shared_with_readers("shared_with_readers", in_a_goroutine<unlock_shared_mutex_held_by_readers>);
const test::scenario readers("readers", in_a_goroutine<unlock_shared_of_shared_mutex>);
const test::scenario readers_with_writer("readers_with_writer",
                                         in_a_goroutine<unlock_shared_of_shared_mutex_held_by_a_writer>);
TEST(unlock_of_unlocked_shared_mutex, ends_the_program_with_a_message) {
  expect_fatal(shared, of_shared);
  expect_fatal(shared_with_readers, of_shared);
  expect_fatal(readers, of_readers);
  expect_fatal(readers_with_writer, of_readers);
}

}  // namespace
