// The first frame of a goroutine; see context.h.
#if defined(__x86_64__)
        .text
        .globl  weft_goroutine_start
        .hidden weft_goroutine_start
        .type   weft_goroutine_start, @function
        .p2align 4
weft_goroutine_start:
        .cfi_startproc
        .cfi_personality 0x1b, weft_goroutine_personality
        .cfi_undefined rip              // nobody called this: unwinding ends here
        movq    %rbp, %rdi
        xorl    %ebp, %ebp
        call    weft_goroutine_main
        ud2
        .cfi_endproc
        .size   weft_goroutine_start, .-weft_goroutine_start

#include "arch/gdb_script.inc"          // here, because every program that uses weft has this file
#endif
        .section .note.GNU-stack,"",%progbits
