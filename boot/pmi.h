/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMI-1, spoken by mpiexec of MPICH and Intel MPI, and by srun --mpi=pmi2: lines of
 * "name=value" words over a socket inherited from the launcher.
 */
#ifndef BOOT_PMI_H
#define BOOT_PMI_H

#include <stdbool.h>
#include <stddef.h>

#include <tributary/status.h>

struct trib_error;

#define TRIB_PMI_LINE_BYTES 2048 /* of a line with its line feed; launchers send 1024 */
#define TRIB_PMI_VALUE_BYTES 1024 /* length of a value, plus the NUL */

/**
 * trib_pmi_word - extract a value from a line.
 *
 * line     "cmd=get_result rc=0 value=node7:4711", NUL-terminated
 * returns  false if the name is missing, or the value is longer than `bytes`
 */
bool trib_pmi_word(const char *line, const char *name, char *value, size_t bytes);

struct trib_pmi_opts {
    int fd; /* stays open: owned by the launcher, and its number must not be reused */
    int rank;
    int timeout_ms; /* timeout of all exchanges together; 0: none */
    struct trib_error *err;
    struct trib_idle *idle; /* called while waiting; or NULL */
};

/**
 * trib_pmi_pass - broadcast rank 0's text; every rank calls this once.
 *
 * The launcher then expects trib_pmi_leave, or the goodbye of an MPI library in this
 * process, which uses the same connection.
 * text     on rank 0 the text, without spaces; other ranks receive it here
 * errors   TRIB_ERR_BOOT: the launcher has exited, answers incorrectly or not in time
 */
trib_status_t trib_pmi_pass(const struct trib_pmi_opts *opts, char *text, size_t bytes);

/** trib_pmi_leave - send the goodbye; without it, the launcher treats the exit as a
 * crash. */
trib_status_t trib_pmi_leave(const struct trib_pmi_opts *opts);

#endif
