/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMI-1, which mpiexec of MPICH, of Intel MPI, and srun --mpi=pmi2 speak: lines of
 * "name=value" words over a socket that the launcher leaves open.
 */
#ifndef BOOT_PMI_H
#define BOOT_PMI_H

#include <stdbool.h>
#include <stddef.h>

#include <tributary/status.h>

struct trib_error;

#define TRIB_PMI_LINE_BYTES 2048 /* of a line with its line feed; launchers send 1024 \
                                  */
#define TRIB_PMI_VALUE_BYTES 1024 /* length of a word's value with its zero */

/**
 * trib_pmi_word - the value of one word of a line.
 *
 * line     "cmd=get_result rc=0 value=node7:4711", ends with a zero
 * returns  false: there is no such word, or its value is longer than `bytes`
 */
bool trib_pmi_word(const char *line, const char *name, char *value, size_t bytes);

struct trib_pmi_opts {
    int fd; /* stays open: it is the launcher's, and its number may not be used again */
    int rank;
    int timeout_ms; /* limit for all exchanges together; 0: none */
    struct trib_error *err;
    struct trib_idle *idle; /* called meanwhile; or NULL */
};

/**
 * trib_pmi_pass - rank 0's text to all ranks; each calls it, once.
 *
 * The launcher goes on to expect trib_pmi_leave, or the good-bye of an MPI library in
 * this process, which uses the same connection.
 *
 * text     on rank 0 what to pass, without spaces; on others, receives it
 * errors   TRIB_ERR_BOOT: the launcher has gone, answers with something else, or not
 *          within the time
 */
trib_status_t trib_pmi_pass(const struct trib_pmi_opts *opts, char *text, size_t bytes);

/** trib_pmi_leave - say good-bye: without it the launcher takes the end for a crash. */
trib_status_t trib_pmi_leave(const struct trib_pmi_opts *opts);

#endif
