/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any text as the plans that rank 0 of a job announces to a node: the node has the plan
 * or an error message, and stays within the memory limit of a plan. A line is an
 * announcement; its first character is the number of the plan.
 */
#include <pthread.h>

#include "agg/client/agg_comm.h"
#include "base/error.h"
#include "boot/boot.h"
#include "comm/members/wireup.h"
#include "comm/plan/plan_make.h"
#include "tests/fuzz/reach.h"

enum { RANKS = 2, MEMORY = 8 << 20 };

unsigned fuzz_reached; /* inputs whose lines were all announcements */

/* The blobs of all three in one exchange. */
static struct {
    pthread_barrier_t all;
    uint8_t said[RANKS + 1][TRIB_BOOT_BLOB_MAX];
} meeting;

/* arg: the caller's entry in it. */
static trib_status_t meet(void *arg, const char *phase, const void *in, size_t bytes,
                          void *out)
{
    (void)phase;
    memcpy(arg, in, bytes);
    (void)pthread_barrier_wait(&meeting.all);
    for (size_t r = 0; r <= RANKS; r++)
        memcpy((uint8_t *)out + r * bytes, meeting.said[r], bytes);
    (void)pthread_barrier_wait(&meeting.all);
    return TRIB_OK;
}

static struct trib_comm *join(int rank)
{
    const struct trib_agg_comm_opts opts = {
        .rank = rank, .ranks = RANKS, .aggregators = 1, .memory = MEMORY};
    const struct trib_exchange x = {meet, meeting.said[rank]};
    struct trib_error err = {0};
    struct trib_config cfg;
    struct trib_comm *comm;
    struct trib_log log;

    trib_log_init(&log, TRIB_LOG_ERROR, fuzz_drop_line, NULL);
    need(trib_config_load(&cfg, "transport=shm", &log, &err) == TRIB_OK);
    need(trib_agg_comm_open(&cfg, &log, &opts, &x, &err, &comm) == TRIB_OK);
    return comm;
}

static struct trib_comm *node, *ranks[RANKS];

static void *be_rank(void *arg)
{
    struct trib_comm **comm = arg;

    *comm = join((int)(comm - ranks));
    return NULL;
}

static void close_all(void)
{
    trib_agg_comm_dispose(node);
    for (int r = 0; r < RANKS; r++)
        trib_agg_comm_dispose(ranks[r]);
}

/* Open ranks that the node connects to and that send nothing. */
static void open_all(void)
{
    pthread_t threads[RANKS];

    need(pthread_barrier_init(&meeting.all, NULL, RANKS + 1) == 0);
    for (int r = 0; r < RANKS; r++)
        need(pthread_create(&threads[r], NULL, be_rank, &ranks[r]) == 0);
    node = join(RANKS);
    for (int r = 0; r < RANKS; r++)
        need(pthread_join(threads[r], NULL) == 0);
    atexit(close_all);
}

static bool take(const char *line)
{
    struct trib_agg_comm *c = trib_agg_comm_of(node);
    const uint32_t number =
        (uint8_t)line[0] == 0xff ? UINT32_MAX : (uint8_t)line[0] % 16;
    const struct trib_plan *before =
        number < TRIB_AGG_COMM_PLANS ? c->plans[number] : NULL;

    trib_error_clear(&node->err);
    const trib_status_t st = trib_agg_comm_announced(node, number, line + 1);
    need(!node->engine.failed);
    if (st != TRIB_OK) {
        need(trib_last_error(node)[0] != '\0');
        need(number >= TRIB_AGG_COMM_PLANS || c->plans[number] == before);
    } else if (strncmp(line + 1, "freed=", 6) != 0) {
        need(!before && c->plans[number]);
    }
    return st == TRIB_OK;
}

static void forget_plans(void)
{
    struct trib_agg_comm *c = trib_agg_comm_of(node);

    for (uint32_t i = 0; i < TRIB_AGG_COMM_PLANS; i++) {
        trib_plan_destroy(c->plans[i]);
        c->plans[i] = NULL;
    }
    c->n_dropped = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *rest;
    bool all = size > 0;

    if (!text)
        return 0;
    if (!node)
        open_all();
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *line = strtok_r(text, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        char *exact = strdup(line); /* exact size, so that ASan detects reads past the
                                     * end */
        if (exact)
            all &= take(exact);
        free(exact);
        (void)trib_agg_comm_step(node);
    }
    fuzz_reached += all;
    forget_plans();
    free(text);
    return 0;
}
