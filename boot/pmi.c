/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/pmi.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/config.h"
#include "base/error.h"
#include "base/time.h"
#include "base/wait.h"
#include "boot/launcher.h"
#include "boot/mpi.h"

#define KEY "tributary-root"
#define LEAVE_MS 2000

struct pmi {
    const struct trib_pmi_opts *opts;
    uint64_t deadline;
    size_t len; /* bytes in line */
    char line[TRIB_PMI_LINE_BYTES];
};

bool trib_pmi_word(const char *line, const char *name, char *value, size_t bytes)
{
    size_t name_len = strlen(name);

    for (;;) {
        line += strspn(line, " ");
        size_t len = strcspn(line, " ");
        if (len == 0)
            return false;
        if (len > name_len && line[name_len] == '=' && !strncmp(line, name, name_len)) {
            line += name_len + 1;
            len -= name_len + 1;
            if (len >= bytes)
                return false;
            memcpy(value, line, len);
            value[len] = '\0';
            return true;
        }
        line += len;
    }
}

static trib_status_t gone(const struct pmi *p, const char *doing, const char *why)
{
    return trib_fail(
        p->opts->err, TRIB_ERR_BOOT,
        "rank %d cannot %s over PMI_FD=%d: %s; start the ranks with mpiexec, "
        "or set TRIB_RANK, TRIB_SIZE and TRIB_ROOT",
        p->opts->rank, doing, p->opts->fd, why);
}

static trib_status_t send_line(struct pmi *p, const char *text)
{
    size_t left = strlen(text);

    while (left) {
        ssize_t n = send(p->opts->fd, text, left, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return gone(p, "write to the launcher",
                        errno == EPIPE ? "it has closed the connection"
                                       : strerror(errno));
        text += n;
        left -= (size_t)n;
    }
    return TRIB_OK;
}

static trib_status_t wait_readable(struct pmi *p, const char *doing)
{
    if (trib_wait_fd(p->opts->fd, POLLIN, p->deadline, p->opts->idle))
        return TRIB_OK;
    if (errno != ETIMEDOUT)
        return gone(p, doing, strerror(errno));
    return trib_fail(
        p->opts->err, TRIB_ERR_BOOT,
        "rank %d waited %d ms for the launcher to %s: another rank has not "
        "come; see what it said, or raise TRIB_BOOT_TIMEOUT_MS",
        p->opts->rank, p->opts->timeout_ms, doing);
}

/*
 * Read one line, without its line feed. The launcher answers each request with one line
 * and sends nothing unsolicited, so data after the line feed is not PMI.
 */
static trib_status_t read_line(struct pmi *p, const char *doing)
{
    p->len = 0;
    for (;;) {
        if (p->len == sizeof(p->line))
            return gone(p, doing, "the lines received are too long");
        trib_status_t status = wait_readable(p, doing);
        if (status != TRIB_OK)
            return status;
        ssize_t n =
            recv(p->opts->fd, p->line + p->len, sizeof(p->line) - p->len, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (n <= 0)
            return gone(p, doing,
                        n == 0 ? "it has closed the connection" : strerror(errno));
        p->len += (size_t)n;
        char *end = memchr(p->line, '\n', p->len);
        if (!end)
            continue;
        if (end + 1 != p->line + p->len || memchr(p->line, '\0', p->len))
            return gone(p, doing, "the response is not PMI");
        *end = '\0';
        return TRIB_OK;
    }
}

/* Send a request, and check that the response matches it. */
static trib_status_t ask(struct pmi *p, const char *question, const char *answer,
                         const char *doing)
{
    char word[64];
    char why[192];

    trib_status_t status = send_line(p, question);
    if (status == TRIB_OK)
        status = read_line(p, doing);
    if (status != TRIB_OK)
        return status;
    if (!trib_pmi_word(p->line, "cmd", word, sizeof(word)) || strcmp(word, answer) != 0)
        snprintf(why, sizeof(why), "the answer is not %s but \"%.60s\"", answer,
                 p->line);
    else if (trib_pmi_word(p->line, "rc", word, sizeof(word)) && strcmp(word, "0") != 0)
        snprintf(why, sizeof(why), "the launcher refuses: \"%.80s\"", p->line);
    else
        return TRIB_OK;
    for (char *c = why; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    return gone(p, doing, why);
}

static trib_status_t put(struct pmi *p, const char *space, const char *text)
{
    char question[TRIB_PMI_VALUE_BYTES + 512];

    snprintf(question, sizeof(question), "cmd=put kvsname=%s key=" KEY " value=%s\n",
             space, text);
    return ask(p, question, "put_result", "publish the rendezvous address");
}

static trib_status_t get(struct pmi *p, const char *space, char *text, size_t bytes)
{
    char question[512];

    snprintf(question, sizeof(question), "cmd=get kvsname=%s key=" KEY "\n", space);
    trib_status_t status = ask(p, question, "get_result", "get the rendezvous address");
    if (status == TRIB_OK && !trib_pmi_word(p->line, "value", text, bytes))
        status = gone(p, "get the rendezvous address", "rank 0 has not published it");
    return status;
}

/* Reject values over the launcher's limits: it would truncate or drop them. */
static trib_status_t check_maxes(struct pmi *p, const char *text)
{
    char word[16];
    trib_status_t status =
        ask(p, "cmd=get_maxes\n", "maxes", "get the launcher's limits");

    if (status != TRIB_OK)
        return status;
    if (!trib_pmi_word(p->line, "vallen_max", word, sizeof(word)) ||
        strtol(word, NULL, 10) <= (long)strlen(text))
        return gone(p, "pass on the rendezvous address",
                    "the text is too long for the launcher");
    return TRIB_OK;
}

trib_status_t trib_pmi_pass(const struct trib_pmi_opts *opts, char *text, size_t bytes)
{
    struct pmi p = {.opts = opts, .deadline = trib_limit_deadline(opts->timeout_ms)};
    char space[257]; /* PMI allows 256 bytes */

    trib_status_t status = ask(&p, "cmd=init pmi_version=1 pmi_subversion=1\n",
                               "response_to_init", "greet the launcher");
    if (status == TRIB_OK)
        status = check_maxes(&p, opts->rank == 0 ? text : "");
    if (status == TRIB_OK)
        status = ask(&p, "cmd=get_my_kvsname\n", "my_kvsname", "find the job's space");
    if (status == TRIB_OK && !trib_pmi_word(p.line, "kvsname", space, sizeof(space)))
        status = gone(&p, "find the job's space", "the answer names none");
    if (status == TRIB_OK && opts->rank == 0)
        status = put(&p, space, text);
    if (status == TRIB_OK)
        status = ask(&p, "cmd=barrier_in\n", "barrier_out", "gather all ranks");
    if (status == TRIB_OK && opts->rank != 0)
        status = get(&p, space, text, bytes);
    return status;
}

trib_status_t trib_pmi_leave(const struct trib_pmi_opts *opts)
{
    struct pmi p = {.opts = opts, .deadline = trib_limit_deadline(opts->timeout_ms)};

    return ask(&p, "cmd=finalize\n", "finalize_ack", "say good-bye");
}

/* The launcher --------------------------------------------------------------------- */

static bool pmi_here(void)
{
    return trib_config_variable("PMI_FD") && trib_config_variable("PMI_RANK");
}

static trib_status_t pmi_detect(struct trib_launch *out, struct trib_error *err)
{
    trib_status_t status =
        trib_launch_number("PMI_RANK", TRIB_LAUNCH_RANKS_MAX - 1, &out->rank, err);

    if (status == TRIB_OK)
        status = trib_launch_number("PMI_SIZE", TRIB_LAUNCH_RANKS_MAX, &out->size, err);
    return status;
}

/* MPI_Finalize has closed the connection, and its descriptor number may have been
 * reused. */
static trib_status_t mpi_has_ended(const struct trib_boot_opts *opts, int rank)
{
    return trib_fail(
        opts->err, TRIB_ERR_BOOT,
        "rank %d cannot get the rendezvous address from mpiexec, as "
        "MPI_Finalize has closed the connection: call trib_init before that, or pass "
        "the text of trib_root_create to all ranks by MPI_Bcast",
        rank);
}

static trib_status_t pmi_meet(const struct trib_boot_opts *opts,
                              struct trib_launch *launch)
{
    struct trib_pmi_opts p = {.rank = launch->rank,
                              .timeout_ms = opts->cfg->boot_timeout_ms,
                              .err = opts->err,
                              .idle = opts->idle};
    char text[TRIB_PMI_VALUE_BYTES];

    trib_status_t status = trib_launch_number("PMI_FD", INT_MAX, &p.fd, opts->err);
    if (status == TRIB_OK && trib_mpi_query() == TRIB_MPI_ENDED)
        status = mpi_has_ended(opts, launch->rank);
    if (status == TRIB_OK && launch->rank == 0)
        status = trib_launch_offer(launch, opts->err);
    if (status != TRIB_OK)
        return status;
    snprintf(text, sizeof(text), "%s", launch->root);
    status = trib_pmi_pass(&p, text, sizeof(text));
    if (status == TRIB_OK && launch->rank != 0)
        status = trib_launch_accept(launch, text, "mpiexec", opts->err);
    launch->stays = true;
    return status;
}

/* Send the goodbye: mpiexec kills a job if a rank that has contacted it exits without
 * one. If MPI runs or ran here, the connection is not ours and MPI_Finalize sends the
 * goodbye. */
static void pmi_leave(void)
{
    struct trib_error err = {0};
    struct trib_pmi_opts p = {.timeout_ms = LEAVE_MS, .err = &err};

    if (trib_mpi_query() < TRIB_MPI_RUNS &&
        trib_launch_number("PMI_RANK", TRIB_LAUNCH_RANKS_MAX - 1, &p.rank, &err) ==
            TRIB_OK &&
        trib_launch_number("PMI_FD", INT_MAX, &p.fd, &err) == TRIB_OK)
        (void)trib_pmi_leave(&p);
}

const struct trib_launcher trib_launcher_pmi = {
    .name = "PMI",
    .detail = "mpiexec of MPICH, srun --mpi=pmi2: rank 0's address over PMI_FD",
    .here = pmi_here,
    .detect = pmi_detect,
    .meet = pmi_meet,
    .leave = pmi_leave,
};
