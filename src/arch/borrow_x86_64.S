// The first frame of a goroutine that borrows the stack of another; see sched/join.h.
#if defined(__x86_64__)
        .text
        .globl  weft_goroutine_borrow
        .hidden weft_goroutine_borrow
        .type   weft_goroutine_borrow, @function
        .p2align 4
weft_goroutine_borrow:
        .cfi_startproc
        .cfi_personality 0x1b, weft_goroutine_personality
        .cfi_undefined rip              // who called this is another goroutine
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        call    weft_borrower_main
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        ret
        .cfi_endproc
        .size   weft_goroutine_borrow, .-weft_goroutine_borrow
#endif
        .section .note.GNU-stack,"",%progbits
