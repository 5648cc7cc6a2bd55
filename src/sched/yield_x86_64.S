// weft::yield(), and its short way: where there is one P (nobody else takes from its ring), the first in the ring and the
// goroutine that yields change places. What a switch costs is its reads and writes of memory, three a cycle at best; a compiler
// makes half as many again, and more branches. Everything unusual is left to yield.cpp, with nothing changed.
//
// [yield.short] The P has a credit of such yields only while it is alone and not traced, and says for how long nobody needs to look
// around. That a goroutine stands in the ring a moment before it is off its stack is seen by nobody: a stop of the world
// waits for the end of the section.
//
// A goroutine that left here goes on at `landing`, with its registers on its stack. Nothing else has that pc: not a record (it
// has the address of a call there), and no goroutine that is locked to its thread, for none of those leaves here.
#include "sched/yield_layout.h"

#if WEFT_HAS_SHORT_YIELDS

// As C++ calls them.
#define yield _ZN4weft5yieldEv
#define yield_anyhow _ZN4weft5sched12yield_anyhowEv
#define yield_by_queues _ZN4weft5sched15yield_by_queuesEPNS_3gmp7machineEPNS1_9goroutineE
#define renew_short_yields _ZN4weft5sched18renew_short_yieldsEPNS_3gmp9processorE
#define attend_and_leave _ZN4weft5sched16attend_and_leaveEPNS_3gmp7machineE

#define m %rdi
#define p %rcx
#define self %rsi
#define next %rax

#define HEAD WEFT_P_RING+WEFT_RING_HEAD
#define TAIL WEFT_P_RING+WEFT_RING_TAIL
#define SLOTS WEFT_P_RING+WEFT_RING_SLOTS

        .macro  push_register register
        pushq   %\register
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset \register, 0
        .endm

        .macro  push_registers
        push_register rbx
        push_register rbp
        push_register r12
        push_register r13
        push_register r14
        push_register r15
        .endm

        .macro  pop_register register
        popq    %\register
        .cfi_adjust_cfa_offset -8
        .cfi_restore \register
        .endm

        .macro  pop_registers
        pop_register r15
        pop_register r14
        pop_register r13
        pop_register r12
        pop_register rbp
        pop_register rbx
        .endm

        // Nothing can come in between now. r8, r9: head and tail; r10: errno; edx: short yields left.
        .macro  change_places
        push_registers
        movq    %rsp, WEFT_G_SP(self)
        leaq    .Llanding(%rip), %r11
        movq    %r11, WEFT_G_PC(self)
        movq    %r10, WEFT_G_SAVED(self)
        movl    $WEFT_RUNNABLE, WEFT_G_STATE(self)
        movzbl  %r9b, %ebx
        movq    self, SLOTS(p, %rbx, 8)
        incq    %r8
        incl    %r9d
        movq    %r8, HEAD(p)
        movl    %r9d, TAIL(p)
        movl    %edx, WEFT_P_SHORT_YIELDS_LEFT(p)
        movl    $WEFT_RUNNING, WEFT_G_STATE(next)
        movq    next, WEFT_M_CURG(m)
        .endm

        .macro  leave_section           // as leave_outermost() in section.h, and returns
        cmpb    $0, WEFT_P_ATTENTION(p)
        jne     attend_and_leave
        movl    $0, WEFT_M_LOCKS(m)
        ret
        .endm

        .text
        .hidden weft_this_machine
        .hidden renew_short_yields
        .hidden yield_anyhow
        .hidden yield_by_queues
        .hidden attend_and_leave

        .globl  yield
        .type   yield, @function
        .p2align 6
yield:
        .cfi_startproc
        // as enter_simply() in section.h
        movq    weft_this_machine@gottpoff(%rip), m
        movq    %fs:(m), m
        testq   m, m
        je      yield_anyhow
        movl    $1, WEFT_M_LOCKS(m)
        cmpl    $0, WEFT_M_REVOKED(m)
        jne     .Lrevoked

        movq    WEFT_M_P(m), p
        movq    WEFT_M_CURG(m), self
        movl    WEFT_P_SHORT_YIELDS_LEFT(p), %edx
        subl    $1, %edx
        js      .Lused_up
.Lrenewed:
        cmpq    $0, WEFT_P_RUNNEXT(p)
        jne     yield_by_queues
        cmpq    $0, WEFT_G_OWN_MACHINE(self)
        jne     yield_by_queues
        movq    HEAD(p), %r8
        movl    TAIL(p), %r9d
        cmpl    %r8d, %r9d
        je      yield_by_queues
        // No exceptions, and the same errno: see exchange_thread_state() in switch.h.
        movq    WEFT_M_EXCEPTIONS(m), %r11
        pxor    %xmm0, %xmm0
        movdqu  (%r11), %xmm1
        pcmpeqd %xmm1, %xmm0
        pmovmskb %xmm0, %r10d
        cmpl    $0xffff, %r10d
        jne     yield_by_queues
        movq    WEFT_M_ERRNO(m), %r11
        movl    (%r11), %r10d
        movzbl  %r8b, %r11d
        movq    SLOTS(p, %r11, 8), next
        leaq    .Llanding(%rip), %r11
        cmpq    %r11, WEFT_G_PC(next)
        jne     .Lto_elsewhere
        cmpq    %r10, WEFT_G_SAVED(next)
        jne     yield_by_queues
        .cfi_remember_state
        change_places
        movq    WEFT_G_SP(next), %rsp
        pop_registers
        leave_section
        .cfi_restore_state

        // The next one left somewhere else, or has not begun.
.Lto_elsewhere:
        cmpq    $0, WEFT_G_OPS(next)
        jne     yield_by_queues
        cmpq    $0, WEFT_G_OWN_MACHINE(next)
        jne     yield_by_queues
        cmpq    %r10, WEFT_G_SAVED(next)
        jne     yield_by_queues
        cmpl    $WEFT_RUNNABLE, WEFT_G_STATE(next)
        jne     yield_by_queues
        .cfi_remember_state
        change_places
        movq    $0, WEFT_M_AFTER(m)     // run
        movq    m, %rdx
        movq    WEFT_G_SP(next), %rsp
        movq    WEFT_G_FP(next), %rbp
        jmpq    *WEFT_G_PC(next)

        // From here to the end of `landing`, all is on the stack that change_places put there. This as complete_switch() in switch.h:
.Lcomplete_switch:
        pushq   m
        .cfi_adjust_cfa_offset 8
        movq    WEFT_M_AFTER+8(m), %rsi // from
        leaq    WEFT_M_AFTER(m), %rdx
        call    *%rax
        popq    m
        .cfi_adjust_cfa_offset -8
        jmp     .Lswitch_completed

        // rdx: the M, maybe another. (switch_context() in arch/context.h)
.Llanding:
        movq    %rdx, m
        movq    WEFT_M_AFTER(m), %rax   // run
        testq   %rax, %rax
        jne     .Lcomplete_switch
.Lswitch_completed:
        movq    WEFT_M_P(m), p
        pop_registers
        leave_section
        .cfi_restore_state

.Lused_up:
        cmpb    $0, WEFT_P_ALONE(p)
        je      yield_by_queues
        pushq   m
        .cfi_adjust_cfa_offset 8
        movq    p, %rdi
        call    renew_short_yields
        popq    m
        .cfi_adjust_cfa_offset -8
        movq    WEFT_M_P(m), p
        movq    WEFT_M_CURG(m), self
        movl    WEFT_P_SHORT_YIELDS_LEFT(p), %edx
        subl    $1, %edx
        js      yield_by_queues
        jmp     .Lrenewed

.Lrevoked:
        movl    $0, WEFT_M_LOCKS(m)
        jmp     yield_anyhow
        .cfi_endproc
        .size   yield, .-yield
#endif
        .section .note.GNU-stack,"",%progbits
