// A suspended computation: where it goes on, and on which stack. Everything else that must survive is on that stack,
// put there by the compiler, because switch_context() tells it that every other register is lost.
//
// The floating-point control words (rounding mode, exception masks) are the thread's, not the goroutine's: saving them
// would cost as much as the rest of the switch.
#pragma once

namespace weft::arch {

struct context {
  void* sp;
  void* pc;
  void* fp;
};

// The first frame of a goroutine: calls weft_goroutine_main(argument). Its unwind information ends the stack, and its
// personality routine sees every exception that nobody below caught.
extern "C" void weft_goroutine_start();

// The first frame of a goroutine that borrows the stack of another, which called this: calls weft_borrower_main(argument), and
// is to unwinders what the other is. (sched/join.h)
extern "C" void weft_goroutine_borrow(void* argument);

// Makes `c` a computation that has not begun: weft_goroutine_main(argument) on the stack that ends at `stack_top`
// (16-byte aligned).
inline void prepare_context(context& c, void* stack_top, void* argument) noexcept {
  c.sp = stack_top;
  c.pc = reinterpret_cast<void*>(&weft_goroutine_start);
  c.fp = argument;  // the start frame moves it to the first argument and clears the frame pointer
}

// Suspends the running computation into `from` and continues `to`. Returns when somebody continues `from`, maybe on
// another thread: what was read from thread-local storage before is stale. The result is the `passed` of who does so,
// which is how the other side learns on which thread it is without asking.
//
// Always inlined, and left by an indirect jump, not a return: the return predictor would be wrong every time.
[[gnu::always_inline]] inline void* switch_context(context* from, const context* to, void* passed = nullptr) noexcept {
#if defined(__x86_64__)
  asm volatile(
      "movq %%rsp, 0(%[from])\n\t"
      "leaq 1f(%%rip), %%rax\n\t"
      "movq %%rax, 8(%[from])\n\t"
      "movq %%rbp, 16(%[from])\n\t"
      "movq 16(%[to]), %%rbp\n\t"
      "movq 0(%[to]), %%rsp\n\t"
      "jmpq *8(%[to])\n"
      "1:\n\t"
      : [from] "+D"(from), [to] "+S"(to), [passed] "+d"(passed)
      :
      : "rax", "rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3",
        "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "mm0", "mm1",
        "mm2", "mm3", "mm4", "mm5", "mm6", "mm7", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)",
#ifdef __AVX512F__
        "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28",
        "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7",
#endif
        "memory", "cc");
#elif defined(__aarch64__)
  register context* f asm("x0") = from;
  register const context* t asm("x1") = to;
  register void* p asm("x2") = passed;
  asm volatile(
      "mov x9, sp\n\t"
      "adr x10, 1f\n\t"
      "stp x9, x10, [x0]\n\t"
      "str x29, [x0, #16]\n\t"
      "ldr x29, [x1, #16]\n\t"
      "ldp x9, x10, [x1]\n\t"
      "mov sp, x9\n\t"
      "br x10\n"
      "1:\n\t"
      "hint #36\n\t"  // bti j: a landing pad for the branch above
      : "+r"(f), "+r"(t), "+r"(p)
      :
      : "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20",
        "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8",
        "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25",
        "v26", "v27", "v28", "v29", "v30", "v31",
#ifdef __ARM_FEATURE_SVE
        "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", "p15", "ffr",
#endif
        "memory", "cc");
  passed = p;
#else
#error "weft knows x86-64 and aarch64"
#endif
  return passed;
}

// Where the caller of the function that uses this is, in the midst of its call: what a walk over its stack can begin with. Null
// where a frame does not tell.
[[gnu::always_inline]] inline context callers_context() noexcept {
#if defined(__x86_64__)
  auto* frame = static_cast<void**>(__builtin_frame_address(0));
  return {frame + 2, static_cast<char*>(__builtin_return_address(0)) - 1, frame[0]};
#else
  return {};
#endif
}

}  // namespace weft::arch
