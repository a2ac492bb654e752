/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows of the collectives: table, csv and json.
 */
#ifndef PERF_COLL_WRITER_H
#define PERF_COLL_WRITER_H

#include <stdbool.h>
#include <stddef.h>

#include <tributary.h>

#include "perf/coll/measure.h"

struct perf_writer;

/**
 * perf_writer_open - open the outputs that args asks for.
 *
 * Files are written to a temporary name and renamed when complete.
 * errors   NULL: why[] has the message
 */
struct perf_writer *perf_writer_open(const struct perf_args *args, int ranks, char *why,
                                     size_t why_bytes);
void perf_writer_add(struct perf_writer *w, const struct perf_result *result);
/** perf_writer_interrupted - record that only the first `sizes` sizes were measured. */
void perf_writer_interrupted(struct perf_writer *w, size_t sizes);
/** perf_writer_finish - print the memory line and put files in place. false: why[] has
 * the message. */
bool perf_writer_finish(struct perf_writer *w, const trib_stats_t *stats, char *why,
                        size_t why_bytes);
/** perf_writer_keep - make the json document even if --json is not given. Call it
 * before the first row. */
bool perf_writer_keep(struct perf_writer *w);
/** perf_writer_document - return the json document after perf_writer_finish; NULL: not
 * made. */
struct json_t *perf_writer_document(const struct perf_writer *w);
/** perf_writer_free - NULL is allowed. Removes unfinished files. */
void perf_writer_free(struct perf_writer *w);

#endif
