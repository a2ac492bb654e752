/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sizes and times on the command line: "8,64K,1M:64M:4".
 */
#ifndef PERF_COMMON_SIZES_H
#define PERF_COMMON_SIZES_H

#include <stdbool.h>
#include <stddef.h>

struct perf_sizes {
    size_t *bytes;
    size_t n;
};

/** perf_size_parse - parse "64", "64K" or "2GiB" (powers of 1024). Return false if it
 * is not a size. */
bool perf_size_parse(const char *text, size_t *bytes_out);

/**
 * perf_sizes_parse - parse a list of sizes and of ranges from:to:factor.
 *
 * owner    the caller frees *sizes_out with perf_sizes_free()
 * errors   false: why[] has the message, *sizes_out is unchanged
 */
bool perf_sizes_parse(const char *text, struct perf_sizes *sizes_out, char *why,
                      size_t why_bytes);
void perf_sizes_free(struct perf_sizes *sizes);

/** perf_time_parse - parse "10us", "50ms" or "1s" to seconds. */
bool perf_time_parse(const char *text, double *seconds_out);

/** perf_size_text - write "64 KiB" or "25 MB" for round sizes, else "1000 B". Return
 * text. */
char *perf_size_text(size_t bytes, char *text, size_t text_bytes);

#endif
