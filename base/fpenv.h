/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Floating-point control modes.
 *
 * All ranks must get the same bits, whichever thread computes. An application may
 * change the modes of its threads (flush to zero, rounding direction, traps), perhaps
 * on one rank only. So the library computes in the default modes of a C program and
 * restores the modes of application threads. Modes are per thread; a new thread
 * inherits them from its creator.
 *
 *     modes = trib_fpenv_enter();   … arithmetic …   trib_fpenv_leave(modes);
 *
 * The two calls take a few cycles if the thread has the default modes. They set only
 * the modes of vector instructions, which all kernels use. trib_fpenv_enter_all also
 * sets those used by the C library to parse numbers, and costs more.
 */
#ifndef BASE_FPENV_H
#define BASE_FPENV_H

#include <fenv.h>
#include <stdint.h>

#if defined(__x86_64__)

/* MXCSR without the exception flags, which are preserved. */
#define TRIB_FPENV_MODES 0xffc0u
#define TRIB_FPENV_USUAL 0x1f80u /* round to nearest even, no flush to zero, no traps */

static inline uint64_t trib_fpenv_read(void)
{
    return __builtin_ia32_stmxcsr();
}

static inline void trib_fpenv_write(uint64_t modes)
{
    __builtin_ia32_ldmxcsr((unsigned)modes);
}

#elif defined(__aarch64__)

/* FPCR: AHP, DN, FZ, RMode, FZ16 and the traps; other bits do not affect A64
 * rounding. */
#define TRIB_FPENV_MODES 0x07c89f00u
#define TRIB_FPENV_USUAL 0u

static inline uint64_t trib_fpenv_read(void)
{
    uint64_t modes;

    __asm__ volatile("mrs %0, fpcr" : "=r"(modes));
    return modes;
}

static inline void trib_fpenv_write(uint64_t modes)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(modes) : "memory");
}

#else

#define TRIB_FPENV_MODES 0u
#define TRIB_FPENV_USUAL 0u

static inline uint64_t trib_fpenv_read(void)
{
    return 0;
}

static inline void trib_fpenv_write(uint64_t modes)
{
    (void)modes;
}

#endif

/** trib_fpenv_enter - set the default modes; return the thread's own for
 * trib_fpenv_leave. */
static inline uint64_t trib_fpenv_enter(void)
{
    const uint64_t own = trib_fpenv_read();

    if (__builtin_expect((own & TRIB_FPENV_MODES) != TRIB_FPENV_USUAL, 0))
        trib_fpenv_write((own & ~(uint64_t)TRIB_FPENV_MODES) | TRIB_FPENV_USUAL);
    return own;
}

/** trib_fpenv_leave - restore the modes returned by trib_fpenv_enter. */
static inline void trib_fpenv_leave(uint64_t own)
{
    if (__builtin_expect((own & TRIB_FPENV_MODES) != TRIB_FPENV_USUAL, 0))
        trib_fpenv_write(own);
}

/** trib_fpenv_enter_all, trib_fpenv_leave_all - the same, also for the C library. */
static inline void trib_fpenv_enter_all(fenv_t *own_out)
{
    (void)fegetenv(own_out);
    (void)fesetenv(FE_DFL_ENV);
    (void)trib_fpenv_enter();
}

static inline void trib_fpenv_leave_all(const fenv_t *own)
{
    (void)fesetenv(own);
}

#endif
