// The first frame of a goroutine; see context.h.
#if defined(__aarch64__)
        .text
        .globl  weft_goroutine_start
        .hidden weft_goroutine_start
        .type   weft_goroutine_start, %function
        .p2align 4
weft_goroutine_start:
        .cfi_startproc
        .cfi_personality 0x1b, weft_goroutine_personality
        .cfi_undefined x30              // nobody called this: unwinding ends here
        hint    #38                     // bti jc: reached by a branch
        mov     x0, x29
        mov     x29, xzr
        mov     x30, xzr
        bl      weft_goroutine_main
        brk     #1
        .cfi_endproc
        .size   weft_goroutine_start, .-weft_goroutine_start

#include "arch/gdb_script.inc"          // here, because every program that uses weft has this file
#endif
        .section .note.GNU-stack,"",%progbits
