// Where yield_x86_64.S finds what it needs. yield.cpp proves that it is there.
#pragma once

#include "arch/sanitized.h"

// Sanitizers are to be told of every switch.
#if defined(__x86_64__) && !defined(WEFT_ASAN) && !defined(WEFT_TSAN)
#define WEFT_HAS_SHORT_YIELDS 1
#else
#define WEFT_HAS_SHORT_YIELDS 0
#endif

#define WEFT_M_LOCKS 0
#define WEFT_M_REVOKED 4
#define WEFT_M_P 8
#define WEFT_M_CURG 16
#define WEFT_M_ERRNO 24
#define WEFT_M_EXCEPTIONS 32
#define WEFT_M_AFTER 40 /* run; from stands behind it */

#define WEFT_P_ALONE 4
#define WEFT_P_SHORT_YIELDS_LEFT 0x188
#define WEFT_P_ATTENTION 0x1c0
#define WEFT_P_RUNNEXT 0x200
#define WEFT_P_RING 0x240
#define WEFT_RING_HEAD 0
#define WEFT_RING_TAIL 64
#define WEFT_RING_SLOTS 128

#define WEFT_G_OPS 8
#define WEFT_G_SP 16
#define WEFT_G_PC 24
#define WEFT_G_FP 32
#define WEFT_G_SAVED 40
#define WEFT_G_OWN_MACHINE 48
#define WEFT_G_STATE 56

#define WEFT_RUNNABLE 1
#define WEFT_RUNNING 2
