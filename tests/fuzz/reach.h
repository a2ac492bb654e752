/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Let a target report that an input was valid: it defines the counter, and counts.
 * Seeds whose names begin with "good" must count, or replay.c fails: otherwise a corpus
 * that a new check refuses at its first byte would be replayed for ever without effect.
 */
#ifndef TESTS_FUZZ_REACH_H
#define TESTS_FUZZ_REACH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tributary/comm.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern unsigned fuzz_reached __attribute__((weak)); /* absent in targets without one */

/* Abort if an input breaks the condition; a fuzzer reports the abort as a finding. */
#define need(condition) need_at((condition), #condition, __LINE__)

static inline void need_at(bool holds, const char *condition, int line)
{
    if (holds)
        return;
    fprintf(stderr, "line %d: this does not hold: %s\n", line, condition);
    abort();
}

/* Return a copy of exactly `bytes`, so that a sanitizer detects reads past the end. */
static inline void *copy_new(const void *src, size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);

    need(p);
    return bytes ? memcpy(p, src, bytes) : p;
}

/* A log callback. */
static inline void fuzz_drop_line(void *arg, trib_log_level_t level, const char *line)
{
    (void)arg, (void)level, (void)line;
}

#endif
