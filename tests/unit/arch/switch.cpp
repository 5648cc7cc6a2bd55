// The bare context switch, without the runtime around it: two computations on two stacks of one thread.
#include <gtest/gtest.h>
#include <pthread.h>

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "arch/context.h"
#include "arch/sanitizer.h"

namespace {

namespace arch = weft::arch;

// A computation on a stack of its own. resume() runs it until it calls pause() or its body returns.
class computation {
 public:
  using body = void (*)(computation&);

  explicit computation(body b, void* extra = nullptr, std::size_t unused_at_top = 0)
      : extra(extra), body_(b), stack_(std::make_unique<aligned_stack>()) {
    adopt_home();
    arch::create_fiber(fiber_, stack_->bytes, sizeof stack_->bytes);
    arch::prepare_context(context_, stack_->bytes + sizeof stack_->bytes - unused_at_top, this);
  }
  computation(const computation&) = delete;
  computation& operator=(const computation&) = delete;
  ~computation() {
    // Its frames never returned: what they marked must not meet the next user of this memory.
    arch::scrub_stack(stack_->bytes, sizeof stack_->bytes);
    arch::destroy_fiber(fiber_);
  }

  void resume() {
    arch::before_switch(home_fiber_, fiber_, false);
    arch::switch_context(&home_, &context_);
    arch::after_switch(home_fiber_);
  }
  void pause() {
    arch::before_switch(fiber_, home_fiber_, false);
    arch::switch_context(&context_, &home_);
    arch::after_switch(fiber_);
  }
  bool done() const { return done_; }

  const std::byte* stack_low() const { return stack_->bytes; }
  const std::byte* stack_high() const { return stack_->bytes + sizeof stack_->bytes; }

  void main() {
    arch::after_switch(fiber_);
    body_(*this);
    done_ = true;
    for (;;) pause();
  }

  void* extra;
  long steps = 0;

 private:
  struct alignas(16) aligned_stack {
    std::byte bytes[128 * 1024];
  };

  void adopt_home() {
    pthread_attr_t attributes;
    void* low = nullptr;
    std::size_t size = 0;
    if (::pthread_getattr_np(::pthread_self(), &attributes) == 0) {
      ::pthread_attr_getstack(&attributes, &low, &size);
      ::pthread_attr_destroy(&attributes);
    }
    arch::adopt_thread_fiber(home_fiber_, low, size);
  }

  body body_;
  bool done_ = false;
  std::unique_ptr<aligned_stack> stack_;
  arch::context context_{};
  arch::context home_{};
  [[no_unique_address]] arch::fiber fiber_;
  [[no_unique_address]] arch::fiber home_fiber_;
};

void* last_argument = nullptr;

}  // namespace

// What the start frame calls. (This program has no goroutines, and so no other definition of it.)
extern "C" void weft_goroutine_main(void* argument) {
  last_argument = argument;
  static_cast<computation*>(argument)->main();
}

namespace {

// Fills every register but the stack's, so that nothing survives a switch by luck.
void spoil_registers() {
#if defined(__x86_64__)
  asm volatile(
      "movq $-1, %%rax\n\t movq $-1, %%rbx\n\t movq $-1, %%rcx\n\t movq $-1, %%rdx\n\t movq $-1, %%rsi\n\t"
      "movq $-1, %%rdi\n\t movq $-1, %%r8\n\t movq $-1, %%r9\n\t movq $-1, %%r10\n\t movq $-1, %%r11\n\t"
      "movq $-1, %%r12\n\t movq $-1, %%r13\n\t movq $-1, %%r14\n\t movq $-1, %%r15\n\t"
      "pcmpeqd %%xmm0, %%xmm0\n\t pcmpeqd %%xmm1, %%xmm1\n\t pcmpeqd %%xmm2, %%xmm2\n\t pcmpeqd %%xmm3, %%xmm3\n\t"
      "pcmpeqd %%xmm4, %%xmm4\n\t pcmpeqd %%xmm5, %%xmm5\n\t pcmpeqd %%xmm6, %%xmm6\n\t pcmpeqd %%xmm7, %%xmm7\n\t"
      "pcmpeqd %%xmm8, %%xmm8\n\t pcmpeqd %%xmm9, %%xmm9\n\t pcmpeqd %%xmm10, %%xmm10\n\t pcmpeqd %%xmm11, %%xmm11\n\t"
      "pcmpeqd %%xmm12, %%xmm12\n\t pcmpeqd %%xmm13, %%xmm13\n\t pcmpeqd %%xmm14, %%xmm14\n\t pcmpeqd %%xmm15, %%xmm15"
      :
      :
      : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1",
        "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
        "xmm15", "cc");
#elif defined(__aarch64__)
  asm volatile(
      "mov x0, #-1\n\t mov x1, #-1\n\t mov x2, #-1\n\t mov x3, #-1\n\t mov x4, #-1\n\t mov x5, #-1\n\t"
      "mov x6, #-1\n\t mov x7, #-1\n\t mov x8, #-1\n\t mov x9, #-1\n\t mov x10, #-1\n\t mov x11, #-1\n\t"
      "mov x12, #-1\n\t mov x13, #-1\n\t mov x14, #-1\n\t mov x15, #-1\n\t mov x16, #-1\n\t mov x17, #-1\n\t"
      "mov x18, #-1\n\t mov x19, #-1\n\t mov x20, #-1\n\t mov x21, #-1\n\t mov x22, #-1\n\t mov x23, #-1\n\t"
      "mov x24, #-1\n\t mov x25, #-1\n\t mov x26, #-1\n\t mov x27, #-1\n\t mov x28, #-1\n\t"
      "movi v0.16b, #255\n\t movi v1.16b, #255\n\t movi v2.16b, #255\n\t movi v3.16b, #255\n\t"
      "movi v4.16b, #255\n\t movi v5.16b, #255\n\t movi v6.16b, #255\n\t movi v7.16b, #255\n\t"
      "movi v8.16b, #255\n\t movi v9.16b, #255\n\t movi v10.16b, #255\n\t movi v11.16b, #255\n\t"
      "movi v12.16b, #255\n\t movi v13.16b, #255\n\t movi v14.16b, #255\n\t movi v15.16b, #255\n\t"
      "movi v16.16b, #255\n\t movi v17.16b, #255\n\t movi v18.16b, #255\n\t movi v19.16b, #255\n\t"
      "movi v20.16b, #255\n\t movi v21.16b, #255\n\t movi v22.16b, #255\n\t movi v23.16b, #255\n\t"
      "movi v24.16b, #255\n\t movi v25.16b, #255\n\t movi v26.16b, #255\n\t movi v27.16b, #255\n\t"
      "movi v28.16b, #255\n\t movi v29.16b, #255\n\t movi v30.16b, #255\n\t movi v31.16b, #255"
      :
      :
      : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
        "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "v0", "v1", "v2", "v3",
        "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20",
        "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");
#endif
}

// Values that the compiler cannot compute again, and so must keep somewhere across what comes between.
template <class T>
T opaque(T value) {
  volatile T hidden = value;
  return hidden;
}

TEST(a_context, begins_when_it_is_first_switched_to) {
  computation c([](computation& self) { self.steps = 1; });
  EXPECT_EQ(c.steps, 0);
  c.resume();
  EXPECT_EQ(c.steps, 1);
  EXPECT_TRUE(c.done());
}

TEST(a_context, gets_its_argument) {
  computation a([](computation&) {});
  computation b([](computation&) {});
  a.resume();
  EXPECT_EQ(last_argument, static_cast<void*>(&a));
  b.resume();
  EXPECT_EQ(last_argument, static_cast<void*>(&b));
}

TEST(a_context, runs_on_its_own_stack) {
  const std::byte* seen = nullptr;
  computation c(
      [](computation& self) {
        *static_cast<const std::byte**>(self.extra) = static_cast<const std::byte*>(__builtin_frame_address(0));
      },
      &seen);
  c.resume();
  EXPECT_GE(seen, c.stack_low());
  EXPECT_LT(seen, c.stack_high());
}

TEST(two_contexts, take_turns) {
  constexpr long turns = 100'000;
  computation c([](computation& self) {
    for (;;) {
      ++self.steps;
      self.pause();
    }
  });
  for (long i = 1; i <= turns; ++i) {
    c.resume();
    ASSERT_EQ(c.steps, i);
  }
}

TEST(many_contexts, go_on_where_each_of_them_was) {
  std::vector<std::unique_ptr<computation>> all;
  for (int i = 0; i < 20; ++i) {
    all.push_back(std::make_unique<computation>([](computation& self) {
      for (int round = 0; round < 50; ++round) {
        self.steps += round;
        self.pause();
      }
    }));
  }
  for (int round = 0; round < 50; ++round) {
    for (auto& c : all) c->resume();
  }
  for (auto& c : all) {
    EXPECT_EQ(c->steps, 50 * 49 / 2);
    EXPECT_FALSE(c->done());
    c->resume();
    EXPECT_TRUE(c->done());
  }
}

TEST(a_switch, keeps_integers_on_both_sides) {
  computation c([](computation& self) {
    const long a = opaque(11L), b = opaque(12L), d = opaque(13L), e = opaque(14L), f = opaque(15L), g = opaque(16L),
               h = opaque(17L), i = opaque(18L);
    for (int round = 0; round < 100; ++round) {
      spoil_registers();
      self.pause();
      self.steps += a + 2 * b + 3 * d + 4 * e + 5 * f + 6 * g + 7 * h + 8 * i;
    }
  });
  const long a = opaque(1L), b = opaque(2L), d = opaque(3L), e = opaque(4L), f = opaque(5L), g = opaque(6L),
             h = opaque(7L), i = opaque(8L);
  long sum = 0;
  for (int round = 0; round <= 100; ++round) {
    c.resume();
    sum += a + 2 * b + 3 * d + 4 * e + 5 * f + 6 * g + 7 * h + 8 * i;
  }
  EXPECT_EQ(sum, 101L * (1 + 4 + 9 + 16 + 25 + 36 + 49 + 64));
  EXPECT_EQ(c.steps, 100L * (11 + 24 + 39 + 56 + 75 + 96 + 119 + 144));
}

TEST(a_switch, keeps_floating_point_values_on_both_sides) {
  double inside = 0;
  computation c(
      [](computation& self) {
        const double a = opaque(1.5), b = opaque(2.25), d = opaque(3.125), e = opaque(4.0625), f = opaque(5.5),
                     g = opaque(6.25), h = opaque(7.125), i = opaque(8.0625), j = opaque(9.5);
        const float k = opaque(0.5f);
        for (int round = 0; round < 100; ++round) {
          spoil_registers();
          self.pause();
          *static_cast<double*>(self.extra) += a + b + d + e + f + g + h + i + j + static_cast<double>(k);
        }
      },
      &inside);
  const double a = opaque(0.5), b = opaque(0.25), d = opaque(0.125), e = opaque(0.0625), f = opaque(10.0),
               g = opaque(20.0), h = opaque(30.0), i = opaque(40.0), j = opaque(50.0);
  const long double k = opaque(0.75L);
  double sum = 0;
  long double long_sum = 0;
  for (int round = 0; round <= 100; ++round) {
    c.resume();
    sum += a + b + d + e + f + g + h + i + j;
    long_sum += k;
  }
  EXPECT_EQ(sum, 101 * 150.9375);
  EXPECT_TRUE(long_sum == 101 * 0.75L);
  EXPECT_EQ(inside, 100 * 47.875);
}

TEST(a_switch, keeps_vectors) {
  typedef float vector __attribute__((vector_size(16)));
  computation c([](computation& self) {
    for (;;) {
      spoil_registers();
      ++self.steps;
      self.pause();
    }
  });
  vector v = {opaque(1.f), opaque(2.f), opaque(3.f), opaque(4.f)};
  for (int round = 0; round < 100; ++round) {
    const vector before = v;
    c.resume();
    v = before + before - v;
  }
  EXPECT_EQ(v[0], 1.f);
  EXPECT_EQ(v[1], 2.f);
  EXPECT_EQ(v[2], 3.f);
  EXPECT_EQ(v[3], 4.f);
}

// ---- alignment ------------------------------------------------------------------------------------------------------

// Saves floating-point arguments with aligned stores on x86-64.
std::string format(const char* pattern, ...) {
  char text[200];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

double sum_of(int count, ...) {
  va_list arguments;
  va_start(arguments, count);
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += va_arg(arguments, double);
  va_end(arguments);
  return sum;
}

struct alignment_report {
  std::uintptr_t frame = 1;
  std::uintptr_t vector = 1;
  std::string text;
  double sum = 0;
};

void use_aligned_things(computation& self) {
  auto& r = *static_cast<alignment_report*>(self.extra);
  typedef float vector __attribute__((vector_size(16)));
  volatile vector v = {1, 2, 3, 4};  // kept with aligned moves
  vector w = v;
  w += w;
  v = w;
  r.frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) % 16;
  r.vector = reinterpret_cast<std::uintptr_t>(&v) % 16;
  r.text = format("%d %.2f %.3Lf %.1f %s", 7, 2.25, opaque(1.125L), static_cast<double>(w[3]), "x");
  r.sum = sum_of(10, 1., 2., 3., 4., 5., 6., 7., 8., 9., 10.);
}

TEST(the_stack_of_a_new_context, is_aligned_for_calls) {
  for (const std::size_t unused : {0, 16, 32, 48, 64, 1024}) {
    alignment_report r;
    computation c(&use_aligned_things, &r, unused);
    c.resume();
    ASSERT_TRUE(c.done());
    EXPECT_EQ(r.frame, 0u) << unused;
    EXPECT_EQ(r.vector, 0u) << unused;
    EXPECT_STREQ(r.text.c_str(), "7 2.25 1.125 8.0 x") << unused;
    EXPECT_EQ(r.sum, 55.) << unused;
  }
}

// ---- exceptions -----------------------------------------------------------------------------------------------------

[[gnu::noinline]] int throw_from_depth(int depth) {
  if (depth == 0) throw std::runtime_error("from below");
  return throw_from_depth(depth - 1) + 1;
}

TEST(an_exception, is_caught_on_a_switched_stack) {
  std::string caught;
  computation c(
      [](computation& self) {
        for (int i = 0; i < 10; ++i) {
          try {
            self.steps += throw_from_depth(i);
          } catch (const std::runtime_error& e) {
            *static_cast<std::string*>(self.extra) = e.what();
            ++self.steps;
          }
          self.pause();
        }
      },
      &caught);
  for (long i = 1; i <= 10; ++i) {
    c.resume();
    EXPECT_EQ(c.steps, i);
  }
  EXPECT_STREQ(caught.c_str(), "from below");
}

TEST(an_exception, unwinds_frames_that_were_switched_away_from_and_back) {
  struct counted {
    explicit counted(long& n) : n(n) {}
    ~counted() { ++n; }
    long& n;
  };
  computation c([](computation& self) {
    try {
      counted outer(self.steps);
      self.pause();
      counted inner(self.steps);
      self.pause();
      throw_from_depth(5);
    } catch (const std::runtime_error&) {
      self.steps += 10;
    }
  });
  c.resume();
  c.resume();
  EXPECT_EQ(c.steps, 0);
  c.resume();
  EXPECT_EQ(c.steps, 12);
}

}  // namespace
