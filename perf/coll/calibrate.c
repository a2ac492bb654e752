/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measure each pair of ranks in turn. In jobs of more than PAIRS_UP_TO ranks, measure
 * each rank with the next one. A measurement is an echo of 8 bytes, bursts of such
 * messages, and long vectors in both directions at once. The file gets the slowest
 * results.
 */
#include "perf/coll/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "perf/coll/arguments.h"
#include "perf/coll/operation.h"
#include "perf/coll/perf_ranks.h"
#include "perf/common/samples.h"
#include "perf/common/setters.h"
#include "tools/common/options.h"
#include "tools/common/ticker.h"

enum {
    PAIRS_UP_TO = 16, /* above this, only neighbours are measured */
    ECHOES = 300,
    BURST = 64,
    BURSTS = 20,
    LONG = 4 << 20, /* bytes */
    TAG = 77,
};

static const double ECHO_SECONDS = 0.1, LONG_SECONDS = 0.5;

struct args {
    struct perf_args each; /* first, for the setters of arguments.c */
    const char *out;
};

struct pair {
    double hop_us, message_us, wire_Bps;
};

struct rank {
    trib_comm_t *comm;
    int self, ranks;
    char *x, *y; /* [LONG] */
};

/* --- one pair --- */

static trib_status_t exchange(struct rank *r, int peer, size_t bytes)
{
    trib_request_t *got = NULL, *sent = NULL;
    trib_status_t st = trib_irecv(r->comm, r->y, bytes, TRIB_U8, peer, TAG, &got);

    if (st == TRIB_OK)
        st = trib_isend(r->comm, r->x, bytes, TRIB_U8, peer, TAG, &sent);
    if (st == TRIB_OK)
        st = trib_request_wait(sent);
    if (st == TRIB_OK)
        st = trib_request_wait(got);
    trib_request_free(sent);
    trib_request_free(got);
    return st;
}

/* The lower rank sends first; its first byte says whether this is the last echo. */
static trib_status_t echo(struct rank *r, int peer, double *hop_us)
{
    const double begin = perf_now();
    double least = HUGE_VAL;
    trib_status_t st = TRIB_OK;

    for (int i = 0; st == TRIB_OK; i++) {
        const double at = perf_now();
        const bool last = i >= ECHOES || at - begin > ECHO_SECONDS;
        if (r->self < peer) {
            r->x[0] = (char)last;
            st = trib_send(r->comm, r->x, 8, TRIB_U8, peer, TAG);
            if (st == TRIB_OK)
                st = trib_recv(r->comm, r->y, 8, TRIB_U8, peer, TAG);
            least = fmin(least, perf_now() - at);
        } else {
            st = trib_recv(r->comm, r->y, 8, TRIB_U8, peer, TAG);
            if (st == TRIB_OK)
                st = trib_send(r->comm, r->y, 8, TRIB_U8, peer, TAG);
        }
        if (r->self < peer ? last : r->y[0])
            break;
    }
    *hop_us = r->self < peer ? 1e6 * least / 2 : 0;
    return st;
}

static trib_status_t burst(struct rank *r, int peer)
{
    trib_request_t *of[BURST] = {NULL};
    trib_status_t st = TRIB_OK;
    int n = 0;

    for (; n < BURST && st == TRIB_OK; n++)
        st = r->self < peer
                 ? trib_isend(r->comm, r->x + 8 * n, 8, TRIB_U8, peer, TAG, &of[n])
                 : trib_irecv(r->comm, r->y + 8 * n, 8, TRIB_U8, peer, TAG, &of[n]);
    for (int i = 0; i < n; i++) {
        if (st == TRIB_OK)
            st = trib_request_wait(of[i]);
        trib_request_free(of[i]);
    }
    return st;
}

static trib_status_t bursts(struct rank *r, int peer, double *message_us)
{
    double least = HUGE_VAL;
    trib_status_t st = TRIB_OK;

    for (int i = 0; i < BURSTS && st == TRIB_OK; i++) {
        st = exchange(r, peer, 8);
        const double at = perf_now();
        if (st == TRIB_OK)
            st = burst(r, peer);
        least = fmin(least, perf_now() - at);
    }
    *message_us = 1e6 * least / BURST;
    return st;
}

/* The lower rank's first byte says whether this is the last exchange. */
static trib_status_t stream(struct rank *r, int peer, double *wire_Bps)
{
    const double begin = perf_now();
    double least = HUGE_VAL;
    trib_status_t st = exchange(r, peer, LONG); /* warm-up */

    for (int i = 0; st == TRIB_OK; i++) {
        const double at = perf_now();
        r->x[0] = (char)(i >= 30 || (i >= 2 && at - begin > LONG_SECONDS));
        st = exchange(r, peer, LONG);
        least = fmin(least, perf_now() - at);
        if (r->self < peer ? r->x[0] : r->y[0])
            break;
    }
    *wire_Bps = LONG / least;
    return st;
}

static trib_status_t measure_pair(struct rank *r, int peer, struct pair *out)
{
    trib_status_t st = echo(r, peer, &out->hop_us);

    if (st == TRIB_OK)
        st = bursts(r, peer, &out->message_us);
    return st == TRIB_OK ? stream(r, peer, &out->wire_Bps) : st;
}

/* --- all pairs --- */

/* Reduce to the slower end's values, on all ranks. */
static trib_status_t combine(struct rank *r, struct pair *p)
{
    double slow[] = {p->hop_us, p->message_us, p->wire_Bps > 0 ? 1 / p->wire_Bps : 0};
    const trib_status_t st = perf_combine(r->comm, TRIB_MAX, slow, 3);

    *p = (struct pair){slow[0], slow[1], slow[2] > 0 ? 1 / slow[2] : 0};
    return st;
}

static void slowest(struct pair *all, const struct pair *p)
{
    all->hop_us = fmax(all->hop_us, p->hop_us);
    all->message_us = fmax(all->message_us, p->message_us);
    all->wire_Bps = all->wire_Bps > 0 ? fmin(all->wire_Bps, p->wire_Bps) : p->wire_Bps;
}

static void print_row(const char *name, const struct pair *p)
{
    tool_ticker_hide();
    printf("%8s %9.2f %11.2f %9.3f\n", name, p->hop_us, p->message_us,
           p->wire_Bps * 1e-9);
    fflush(stdout);
}

static trib_status_t measure(struct rank *r, int a, int b, struct pair *all)
{
    struct pair p = {0};
    char name[32];
    trib_status_t st = trib_barrier(r->comm);

    if (st == TRIB_OK && (r->self == a || r->self == b))
        st = measure_pair(r, r->self == a ? b : a, &p);
    if (st == TRIB_OK)
        st = combine(r, &p);
    slowest(all, &p);
    snprintf(name, sizeof(name), "%d-%d", a, b);
    if (st == TRIB_OK && r->self == 0)
        print_row(name, &p);
    return st;
}

/* All pairs of a small job, else neighbours only. */
static size_t count_pairs(int ranks)
{
    const size_t n = (size_t)ranks;

    return ranks <= PAIRS_UP_TO ? n * (n - 1) / 2 : n - 1;
}

static trib_status_t measure_pairs(struct rank *r, struct pair *all)
{
    trib_status_t st = TRIB_OK;
    size_t done = 0;

    for (int a = 0; a < r->ranks; a++) {
        const int most = r->ranks <= PAIRS_UP_TO ? r->ranks : a + 2;
        for (int b = a + 1; b < most && b < r->ranks && st == TRIB_OK; b++) {
            tool_ticker_part(done++, count_pairs(r->ranks));
            st = measure(r, a, b, all);
        }
    }
    return st;
}

/* Rate of x += y from memory, counting the bytes of both operands. */
static double sum_rate(struct rank *r)
{
    const size_t n = LONG / sizeof(float);
    float *x = (void *)r->x;
    const float *y = (void *)r->y;
    double least = HUGE_VAL;

    memset(r->x, 0, LONG);
    memset(r->y, 0, LONG);
    for (int turn = 0; turn < 20; turn++) {
        const double at = perf_now();
        for (size_t i = 0; i < n; i++)
            x[i] += y[i];
        __asm__ volatile("" : : "r"(x) : "memory");
        least = fmin(least, perf_now() - at);
    }
    return 2.0 * LONG / least;
}

static void take_transport(void *arg, const trib_item_t *item)
{
    struct calibrate_link *link = arg;

    if (strcmp(item->name, "TRIB_TRANSPORT") == 0)
        snprintf(link->transport, sizeof(link->transport), "%s", item->value);
}

static bool shares_memory(const struct rank *r)
{
    for (int p = 0; p < r->ranks; p++) {
        trib_reach_t reach = {.size = sizeof(reach)};
        if (p == r->self || trib_reach(r->comm, p, &reach) != TRIB_OK)
            continue;
        if (strcmp(reach.transport, "shm") != 0)
            return false;
    }
    return true;
}

static trib_status_t calibrate(struct rank *r, struct calibrate_link *link)
{
    struct pair all = {0};
    double slow[1];

    link->ranks = r->ranks;
    for (int p = 0; p < r->ranks; p++)
        link->hosts |= trib_host_of(r->comm, p) != 0;
    trib_list_each(TRIB_LIST_CONFIG, take_transport, link);
    if (r->self == 0)
        printf("%8s %9s %11s %9s\n%8s %9s %11s %9s\n", "ranks", "hop", "message",
               "each way", "", "µs", "µs", "GB/s");
    if (r->self == 0)
        tool_ticker_begin("trib-perf calibrate: pairs of ranks");
    trib_status_t st = measure_pairs(r, &all);
    tool_ticker_end();
    if (st != TRIB_OK)
        return st;
    slow[0] = 1 / sum_rate(r);
    st = perf_combine(r->comm, TRIB_MAX, slow, 1);
    link->hop_us = all.hop_us;
    link->message_us = all.message_us;
    link->wire_Bps = all.wire_Bps;
    link->sum_Bps = 1 / slow[0];
    if (st == TRIB_OK && r->self == 0) {
        print_row("slowest", &all);
        printf("sums: %.1f GB/s\n", link->sum_Bps * 1e-9);
    }
    return st;
}

static int run_rank(const struct args *args, struct rank *r)
{
    struct calibrate_link link = {.ranks = 0};
    char why[600];

    if (r->ranks < 2 || shares_memory(r)) {
        if (r->self == 0)
            fprintf(stderr,
                    "trib-perf: calibrate measures a network, but these ranks share "
                    "none: start it on several hosts, or with TRIB_TRANSPORT=tcp.\n");
        return 2;
    }
    r->x = calloc(1, LONG);
    r->y = calloc(1, LONG);
    if (r->x == NULL || r->y == NULL) {
        fprintf(stderr, "trib-perf: no memory for %d bytes.\n", 2 * LONG);
        return 1;
    }
    if (calibrate(r, &link) != TRIB_OK) {
        fprintf(stderr, "trib-perf: rank %d: %s\n", r->self, trib_last_error(r->comm));
        return 1;
    }
    if (r->self != 0)
        return 0;
    if (!calibrate_write(args->out, &link, why, sizeof(why))) {
        fprintf(stderr, "trib-perf: %s\n", why);
        return 1;
    }
    printf("%s: for TRIB_TRANSPORT=%s %s. Set on all ranks: TRIB_CALIBRATION=%s\n",
           args->out, link.transport, link.hosts ? "between hosts" : "on one host",
           args->out);
    return 0;
}

static int run(const void *arg, trib_comm_t *comm)
{
    struct rank r = {.comm = comm, .self = trib_rank(comm), .ranks = trib_size(comm)};
    const int code = run_rank(arg, &r);

    free(r.x);
    free(r.y);
    return code;
}

/* --- command line --- */

#define AT(field) offsetof(struct args, field)

static const struct tool_option options[] = {
    PERF_RANKS_ROW(AT(each.ranks)),
    {"out", "FILE", tool_set_text, AT(out),
     .help = "file to write; rank 0 replaces this link in it "
             "[tributary-calibration.json]"},
    PERF_BIND_ROW(AT(each.bind)),
};

const struct tool_command calibrate_command = {
    .name = "trib-perf calibrate",
    .usage =
        "usage: trib-run -n RANKS -- trib-perf calibrate [OPTION]…\n"
        "\n"
        "Measures the network between the ranks, one second per pair: one-way "
        "latency of\n"
        "a short message (hop), cost per message of a burst (message), bytes/s in "
        "each\n"
        "direction, and how fast a rank sums. With the file in TRIB_CALIBRATION, "
        "auto\n"
        "chooses algorithms by these figures. They are valid for machines like this "
        "one\n"
        "and for this TRIB_TRANSPORT.\n",
    .ending = "example: TRIB_TRANSPORT=tcp trib-perf calibrate -n 2\n"
              "exit code: 0 done; 1 failed; 2 wrong arguments",
    .options = options,
    .n_options = sizeof(options) / sizeof(*options),
};

int calibrate_main(int argc, char **argv)
{
    struct args args = {.out = "tributary-calibration.json"};

    perf_args_init(&args.each, argc, argv);
    int code = tool_parse(&calibrate_command, argc - 1, argv + 1, &args, stderr);
    if (code < 0 && perf_launched_twice(args.each.ranks, args.each.bind, stderr))
        code = 2;
    if (code < 0)
        code = perf_ranks_run(&args.each, run, &args);
    perf_args_free(&args.each);
    return code;
}
