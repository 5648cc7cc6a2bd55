// GoogleTest's names on a runner of a few lines, for builds where no GoogleTest is at hand (the cross build for
// aarch64, where WEFT_MINI_TEST is defined). Elsewhere this header is GoogleTest. Tests that must run in both use only
// what is defined here: TEST, TEST_F, EXPECT_/ASSERT_ with TRUE FALSE EQ NE LT LE GT GE STREQ THROW NO_THROW, FAIL,
// ADD_FAILURE, SUCCEED, GTEST_SKIP, each with << for a message. Expectations may be used on any thread.
#pragma once

#ifndef WEFT_MINI_TEST

#include <gtest/gtest.h>

#else

#include <atomic>
#include <cstdio>
#include <cstring>
#include <exception>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

namespace testing {

class Test {
 public:
  virtual ~Test() = default;
  virtual void TestBody() = 0;
  virtual void SetUp() {}
  virtual void TearDown() {}
};

}  // namespace testing

namespace weft_mini_test {

struct registered_test {
  const char* suite;
  const char* name;
  testing::Test* (*make)();
};

inline std::vector<registered_test>& all_tests() {
  static std::vector<registered_test> tests;
  return tests;
}

inline bool add_test(const char* suite, const char* name, testing::Test* (*make)()) {
  all_tests().push_back({suite, name, make});
  return true;
}

template <class T>
testing::Test* make_test() {
  return new T;
}

// Of the test that runs now; set on any thread.
inline std::atomic<bool> current_failed{false};
inline std::atomic<bool> current_skipped{false};

// What a test streams behind an expectation.
class message {
 public:
  template <class T>
  message& operator<<(const T& value) {
    text_ << value;
    return *this;
  }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
};

enum class verdict { failure, skip, success };

// `report(...) = message() << a << b` reports: assignment binds less tightly than <<, and its value is void, so it can
// stand behind `return` in a function that returns nothing.
class report {
 public:
  report(verdict v, const char* file, int line, std::string what)
      : verdict_(v), file_(file), line_(line), what_(std::move(what)) {}

  void operator=(const message& said) const {
    if (verdict_ == verdict::success) return;
    (verdict_ == verdict::failure ? current_failed : current_skipped).store(true, std::memory_order_relaxed);
    const std::string text = said.text();
    std::printf("%s:%d: %s%s%s%s\n", file_, line_,
                verdict_ == verdict::failure ? "Failure: " : "Skipped: ", what_.c_str(), text.empty() ? "" : ": ",
                text.c_str());
  }

 private:
  verdict verdict_;
  const char* file_;
  int line_;
  std::string what_;
};

// The outcome of one expectation: true, or false with the reason.
struct outcome {
  bool holds;
  std::string reason;
  explicit operator bool() const { return holds; }
};

template <class T>
std::string show(const T& value) {
  std::ostringstream out;
  out << std::boolalpha;
  if constexpr (std::is_null_pointer_v<T>) {
    out << "nullptr";
  } else if constexpr (std::is_enum_v<T>) {
    out << +static_cast<std::underlying_type_t<T>>(value);
  } else if constexpr (requires { out << value; }) {
    out << value;
  } else {
    out << "(an object of " << sizeof(T) << " bytes)";
  }
  return out.str();
}

template <class A, class B, class Compare>
outcome check_pair(const char* a_text, const char* op, const char* b_text, const A& a, const B& b, Compare compare) {
  if (compare(a, b)) return {true, {}};
  return {false,
          std::string("expected ") + a_text + " " + op + " " + b_text + ", found " + show(a) + " and " + show(b)};
}

template <class T>
outcome check_bool(const char* text, const T& value, bool expected) {
  return {static_cast<bool>(value) == expected,
          std::string("expected ") + text + " to be " + (expected ? "true" : "false")};
}

inline outcome check_same_text(const char* a_text, const char* b_text, const char* a, const char* b) {
  const bool same = a == nullptr || b == nullptr ? a == b : std::strcmp(a, b) == 0;
  return {same, std::string("expected ") + a_text + " and " + b_text + " to be the same text, found \"" +
                    (a ? a : "(null)") + "\" and \"" + (b ? b : "(null)") + "\""};
}

template <class Exception, class F>
outcome check_throws(const char* name, F&& f) {
  try {
    f();
  } catch (const Exception&) {
    return {true, {}};
  } catch (const std::exception& other) {
    return {false, std::string("expected an exception of type ") + name + ", found: " + other.what()};
  }
  return {false, std::string("expected an exception of type ") + name + ", found none"};
}

template <class F>
outcome check_throws_nothing(F&& f) {
  try {
    f();
  } catch (const std::exception& found) {
    return {false, std::string("expected no exception, found: ") + found.what()};
  }
  return {true, {}};
}

inline void run_one(const registered_test& test) {
  testing::Test* fixture = test.make();
  try {
    fixture->SetUp();
    if (!current_failed && !current_skipped) fixture->TestBody();
    fixture->TearDown();
  } catch (const std::exception& found) {
    report(verdict::failure, test.suite, 0, std::string("the test ended with an exception: ") + found.what()) =
        message();
  }
  delete fixture;
}

inline int run_all() {
  int failures = 0;
  for (const registered_test& test : all_tests()) {
    std::printf("[ RUN      ] %s.%s\n", test.suite, test.name);
    std::fflush(stdout);
    current_failed = false;
    current_skipped = false;
    run_one(test);
    std::printf("%s %s.%s\n",
                current_failed    ? "[  FAILED  ]"
                : current_skipped ? "[  SKIPPED ]"
                                  : "[       OK ]",
                test.suite, test.name);
    std::fflush(stdout);
    failures += current_failed ? 1 : 0;
  }
  std::printf("%zu tests, %d failed\n", all_tests().size(), failures);
  return failures == 0 && !all_tests().empty() ? 0 : 1;
}

}  // namespace weft_mini_test

#define WEFT_MINI_DEFINE_TEST(suite, name, base)                                                      \
  class suite##_##name##_Test : public base {                                                         \
   public:                                                                                            \
    void TestBody() override;                                                                         \
  };                                                                                                  \
  [[maybe_unused]] static const bool suite##_##name##_added =                                         \
      ::weft_mini_test::add_test(#suite, #name, &::weft_mini_test::make_test<suite##_##name##_Test>); \
  void suite##_##name##_Test::TestBody()

#define TEST(suite, name) WEFT_MINI_DEFINE_TEST(suite, name, ::testing::Test)
#define TEST_F(fixture, name) WEFT_MINI_DEFINE_TEST(fixture, name, fixture)

#define WEFT_MINI_REPORT(kind, text) \
  ::weft_mini_test::report(::weft_mini_test::verdict::kind, __FILE__, __LINE__, text) = ::weft_mini_test::message()

// `switch` keeps an `else` of the caller from binding to this `if`.
#define WEFT_MINI_CHECK(check, on_failure)               \
  switch (0)                                             \
  case 0:                                                \
  default:                                               \
    if (const ::weft_mini_test::outcome outcome = check) \
      ;                                                  \
    else                                                 \
      on_failure WEFT_MINI_REPORT(failure, outcome.reason)

#define WEFT_MINI_PAIR(a, op, b) \
  ::weft_mini_test::check_pair(#a, #op, #b, a, b, [](const auto& x, const auto& y) { return x op y; })

#define EXPECT_TRUE(x) WEFT_MINI_CHECK(::weft_mini_test::check_bool(#x, (x), true), )
#define ASSERT_TRUE(x) WEFT_MINI_CHECK(::weft_mini_test::check_bool(#x, (x), true), return )
#define EXPECT_FALSE(x) WEFT_MINI_CHECK(::weft_mini_test::check_bool(#x, (x), false), )
#define ASSERT_FALSE(x) WEFT_MINI_CHECK(::weft_mini_test::check_bool(#x, (x), false), return )
#define EXPECT_EQ(a, b) WEFT_MINI_CHECK(WEFT_MINI_PAIR(a, ==, b), )
#define ASSERT_EQ(a, b) WEFT_MINI_CHECK(WEFT_MINI_PAIR(a, ==, b), return )
#define EXPECT_NE(a, b) WEFT_MINI_CHECK(WEFT_MINI_PAIR(a, !=, b), )
#define ASSERT_NE(a, b) WEFT_MINI_CHECK(WEFT_MINI_PAIR(a, !=, b), return )
#define EXPECT_LT(a, b) WEFT_MINI_CHECK(WEFT_MINI_PAIR(a, <, b), )
#define ASSERT_LT(a, b) WEFT_MINI_CHECK(WEFT_MINI_PAIR(a, <, b), return )
#define EXPECT_LE(a, b) WEFT_MINI_CHECK(WEFT_MINI_PAIR(a, <=, b), )
#define ASSERT_LE(a, b) WEFT_MINI_CHECK(WEFT_MINI_PAIR(a, <=, b), return )
#define EXPECT_GT(a, b) WEFT_MINI_CHECK(WEFT_MINI_PAIR(a, >, b), )
#define ASSERT_GT(a, b) WEFT_MINI_CHECK(WEFT_MINI_PAIR(a, >, b), return )
#define EXPECT_GE(a, b) WEFT_MINI_CHECK(WEFT_MINI_PAIR(a, >=, b), )
#define ASSERT_GE(a, b) WEFT_MINI_CHECK(WEFT_MINI_PAIR(a, >=, b), return )
#define EXPECT_STREQ(a, b) WEFT_MINI_CHECK(::weft_mini_test::check_same_text(#a, #b, a, b), )
#define ASSERT_STREQ(a, b) WEFT_MINI_CHECK(::weft_mini_test::check_same_text(#a, #b, a, b), return )
#define EXPECT_THROW(statement, type) WEFT_MINI_CHECK(::weft_mini_test::check_throws<type>(#type, [&] { statement; }), )
#define ASSERT_THROW(statement, type) \
  WEFT_MINI_CHECK(::weft_mini_test::check_throws<type>(#type, [&] { statement; }), return )
#define EXPECT_NO_THROW(statement) WEFT_MINI_CHECK(::weft_mini_test::check_throws_nothing([&] { statement; }), )
#define ASSERT_NO_THROW(statement) WEFT_MINI_CHECK(::weft_mini_test::check_throws_nothing([&] { statement; }), return )

#define ADD_FAILURE() WEFT_MINI_REPORT(failure, "failed")
#define FAIL() return WEFT_MINI_REPORT(failure, "failed")
#define SUCCEED() WEFT_MINI_REPORT(success, "")
#define GTEST_SKIP() return WEFT_MINI_REPORT(skip, "this test")

#endif  // WEFT_MINI_TEST
