// The first frame of a goroutine that borrows the stack of another; see sched/join.h.
#if defined(__aarch64__)
        .text
        .globl  weft_goroutine_borrow
        .hidden weft_goroutine_borrow
        .type   weft_goroutine_borrow, %function
        .p2align 4
weft_goroutine_borrow:
        .cfi_startproc
        .cfi_personality 0x1b, weft_goroutine_personality
        .cfi_undefined x30              // who called this is another goroutine
        hint    #34                     // bti c
        stp     x29, x30, [sp, #-16]!
        .cfi_adjust_cfa_offset 16
        mov     x29, sp
        bl      weft_borrower_main
        ldp     x29, x30, [sp], #16
        .cfi_adjust_cfa_offset -16
        ret
        .cfi_endproc
        .size   weft_goroutine_borrow, .-weft_goroutine_borrow
#endif
        .section .note.GNU-stack,"",%progbits
