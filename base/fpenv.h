/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The modes in which floating-point instructions round.
 *
 * All ranks must get the same bits, whichever thread does the arithmetic. An
 * application may set modes in its threads (flush to zero, another rounding direction,
 * traps), and may do so on one rank alone. So the library computes in the modes in
 * which a C program begins, and gives a thread of the application its own modes back.
 * Modes belong to a thread, and a new thread inherits those of its maker.
 *
 *     modes = trib_fpenv_enter();   … arithmetic …   trib_fpenv_leave(modes);
 *
 * The two take a few cycles where the thread has the usual modes. They set the modes of
 * vector instructions only, with which all kernels work. trib_fpenv_enter_all also sets
 * what the C library looks at, for reading numbers, and costs more.
 */
#ifndef BASE_FPENV_H
#define BASE_FPENV_H

#include <fenv.h>
#include <stdint.h>

#if defined(__x86_64__)

/* MXCSR without the flags of exceptions that have happened, which stay as they are. */
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

/* FPCR: AHP, DN, FZ, RMode, FZ16 and the traps; its other bits do not change how A64
 * rounds. */
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

/** trib_fpenv_enter - the usual modes from here on; the thread's own, for
 * trib_fpenv_leave. */
static inline uint64_t trib_fpenv_enter(void)
{
    const uint64_t own = trib_fpenv_read();

    if (__builtin_expect((own & TRIB_FPENV_MODES) != TRIB_FPENV_USUAL, 0))
        trib_fpenv_write((own & ~(uint64_t)TRIB_FPENV_MODES) | TRIB_FPENV_USUAL);
    return own;
}

/** trib_fpenv_leave - the modes that trib_fpenv_enter found. */
static inline void trib_fpenv_leave(uint64_t own)
{
    if (__builtin_expect((own & TRIB_FPENV_MODES) != TRIB_FPENV_USUAL, 0))
        trib_fpenv_write(own);
}

/** trib_fpenv_enter_all, trib_fpenv_leave_all - the same, and for the C library,
 * too. */
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
