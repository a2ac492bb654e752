/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The schedules of an algorithm: each rank's steps, and what goes over each link.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <tributary/topology.h>

#include "base/error.h"
#include "collectives/collectives.h"
#include "core/comm.h"
#include "topo/leaders.h"

enum { RANKS_MOST = 1024, LINE_BYTES = 200 };

/* What a rank sends to another in one round. */
struct link {
    uint32_t messages;
    uint64_t bytes[TRIB_LANES];
};

struct picture {
    const trib_schedule_opts_t *opts;
    const struct trib_algo *algo;
    struct trib_shape shape;
    struct trib_shape_groups groups;
    struct trib_schedule *lists; /* one a rank */
    int *of_rank;
    int *leader;
    struct link *links; /* of one rank, to all */
    trib_line_fn fn;
    void *arg;
};

static void say(const struct picture *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void say(const struct picture *p, const char *fmt, ...)
{
    char line[LINE_BYTES];
    va_list args;

    va_start(args, fmt);
    int n = vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    while (n > 0 && n < LINE_BYTES && line[n - 1] == ' ') /* of columns that are empty */
        line[--n] = '\0';
    p->fn(p->arg, line);
}

static trib_status_t check(const trib_schedule_opts_t *opts, const struct trib_algo *algo,
                           struct trib_error *err)
{
    if (!algo)
        return trib_settings_algorithm(opts->algorithm, err);
    if (opts->ranks < 1 || opts->ranks > RANKS_MOST)
        return trib_fail(err, TRIB_ERR_INVALID, "%d ranks: draw 1 to %d", opts->ranks,
                         RANKS_MOST);
    if (opts->ranks_per_host < 0 || opts->leaders < 0)
        return trib_fail(err, TRIB_ERR_INVALID, "%d ranks a host, %d leaders: 0 or more",
                         opts->ranks_per_host, opts->leaders);
    return TRIB_OK;
}

static int per_host(const trib_schedule_opts_t *opts)
{
    return opts->ranks_per_host && opts->ranks_per_host < opts->ranks ? opts->ranks_per_host
                                                                      : opts->ranks;
}

/* Hosts one behind the other; the last may have fewer ranks. */
static bool make_groups(struct picture *p)
{
    int ranks = p->opts->ranks, each = per_host(p->opts), hosts = (ranks + each - 1) / each;
    int smallest = ranks - (hosts - 1) * each;
    const struct trib_leaders_ask ask = {
        .groups = hosts, .smallest = smallest, .largest = each, .bytes = p->opts->bytes};
    int leaders = p->opts->leaders ? p->opts->leaders : trib_leaders_choose(&ask);

    leaders = leaders < smallest ? leaders : smallest;
    p->of_rank = calloc((size_t)ranks, sizeof(*p->of_rank));
    p->leader = calloc((size_t)ranks, sizeof(*p->leader));
    if (!p->of_rank || !p->leader)
        return false;
    for (int r = 0; r < ranks; r++)
        p->of_rank[r] = r / each;
    for (int i = 0; i < hosts * leaders; i++)
        p->leader[i] = i / leaders * each + i % leaders;
    p->groups = (struct trib_shape_groups){hosts, leaders, p->of_rank, p->leader};
    p->shape.groups = &p->groups;
    return true;
}

/* All-reduce, or what else it does. */
static trib_coll_t coll_of(const struct trib_algo *algo)
{
    int coll = TRIB_ALLREDUCE;

    if (!(algo->colls >> coll & 1))
        coll = __builtin_ctz(algo->colls);
    return (trib_coll_t)coll;
}

static trib_status_t make_lists(struct picture *p, struct trib_error *err)
{
    p->lists = calloc((size_t)p->opts->ranks, sizeof(*p->lists));
    p->links = calloc((size_t)p->opts->ranks, sizeof(*p->links));
    p->shape.coll = coll_of(p->algo);
    p->shape.op = TRIB_SUM;
    p->shape.size = p->opts->ranks;
    bool room = p->lists && p->links && make_groups(p);
    if (room && !p->algo->can(&p->shape))
        return trib_fail(err, TRIB_ERR_UNSUPPORTED,
                         "algorithm %s cannot do %s with %d ranks alone", p->algo->name,
                         trib_coll_name(p->shape.coll), p->opts->ranks);
    for (int r = 0; room && r < p->opts->ranks; r++) {
        p->shape.rank = r;
        room = p->algo->build(&p->shape, &p->lists[r]) == TRIB_OK;
    }
    return room ? TRIB_OK
                : trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for the schedules of %d ranks",
                            p->opts->ranks);
}

/* The first chunks are a byte larger, where it does not come out even. */
static uint64_t chunk_bytes(const struct picture *p, uint32_t c)
{
    uint64_t n = p->lists[0].n_chunks, bytes = p->opts->bytes;

    if (p->shape.coll == TRIB_ALLGATHER || p->shape.coll == TRIB_REDUCE_SCATTER)
        return bytes;
    return bytes / n + (c < bytes % n);
}

static void count_links(const struct picture *p, int rank)
{
    const struct trib_schedule *s = &p->lists[rank];

    for (int r = 0; r < p->opts->ranks; r++)
        p->links[r] = (struct link){0};
    for (uint32_t i = 0; i < s->n_steps; i++) {
        struct link *link = &p->links[s->steps[i].peer];

        if (s->steps[i].op != TRIB_STEP_SEND)
            continue;
        link->messages++;
        link->bytes[s->steps[i].lane] += chunk_bytes(p, s->steps[i].chunk);
    }
}

static void say_step(const struct picture *p, const struct trib_schedule *s, uint32_t i)
{
    static const char *const ops[] = {
        [TRIB_STEP_SEND] = "send", [TRIB_STEP_RECV_REDUCE] = "recv, sum",
        [TRIB_STEP_RECV_COPY] = "recv", [TRIB_STEP_SCALE] = "scale", [TRIB_STEP_COPY] = "copy"};
    const struct trib_step *step = &s->steps[i];
    bool send = step->op == TRIB_STEP_SEND;
    char peer[40] = "", after[24] = "";

    if (step->op < TRIB_STEP_SCALE)
        snprintf(peer, sizeof(peer), " %s rank %-4" PRIu32 " %s", send ? "to  " : "from",
                 step->peer, step->lane == TRIB_LANE_UP ? "up  " : "down");
    if (step->dep != TRIB_STEP_NO_DEP)
        snprintf(after, sizeof(after), "  after %" PRIu32, step->dep);
    say(p, "  %4" PRIu32 "  %-9s chunk %-4" PRIu32 "%s%s%s", i, ops[step->op], step->chunk, peer,
        after, step->flags & TRIB_STEP_FORWARD ? ", as it came" : "");
}

static void draw_text(const struct picture *p)
{
    uint64_t far = 0, all = 0;

    for (int r = 0; r < p->opts->ranks; r++) {
        const struct trib_schedule *s = &p->lists[r];
        say(p, "rank %d, host %d", r, p->of_rank[r]);
        for (uint32_t i = 0; i < s->n_steps; i++)
            say_step(p, s, i);
    }
    say(p, "links  %4s    %4s  %8s  %14s  %14s", "from", "to", "messages", "bytes up",
        "bytes down");
    for (int r = 0; r < p->opts->ranks; r++) {
        count_links(p, r);
        for (int to = 0; to < p->opts->ranks; to++) {
            const struct link *link = &p->links[to];
            uint64_t bytes = link->bytes[TRIB_LANE_UP] + link->bytes[TRIB_LANE_DOWN];

            all += bytes;
            far += p->of_rank[r] == p->of_rank[to] ? 0 : bytes;
            if (link->messages)
                say(p, "       %4d -> %4d  %8" PRIu32 "  %14" PRIu64 "  %14" PRIu64 "%s", r, to,
                    link->messages, link->bytes[TRIB_LANE_UP], link->bytes[TRIB_LANE_DOWN],
                    p->of_rank[r] == p->of_rank[to] ? "" : "  to another host");
        }
    }
    say(p, "sent: %" PRIu64 " bytes, of these %" PRIu64 " to other hosts", all, far);
}

static void draw_dot(const struct picture *p)
{
    say(p, "digraph schedule {");
    say(p, "  node [shape=circle];");
    for (int r = 0; r < p->opts->ranks; r++) {
        if (r == 0 || p->of_rank[r] != p->of_rank[r - 1])
            say(p, "  subgraph cluster_%d { label=\"host %d\";", p->of_rank[r], p->of_rank[r]);
        say(p, "    %d;", r);
        if (r + 1 == p->opts->ranks || p->of_rank[r] != p->of_rank[r + 1])
            say(p, "  }");
    }
    for (int r = 0; r < p->opts->ranks; r++) {
        count_links(p, r);
        for (int to = 0; to < p->opts->ranks; to++)
            if (p->links[to].messages)
                say(p, "  %d -> %d [label=\"up %" PRIu64 " B\\ndown %" PRIu64 " B\"%s];", r, to,
                    p->links[to].bytes[TRIB_LANE_UP], p->links[to].bytes[TRIB_LANE_DOWN],
                    p->of_rank[r] == p->of_rank[to] ? "" : ", penwidth=2");
    }
    say(p, "}");
}

static void draw(const struct picture *p)
{
    const char *line = p->opts->dot ? "// " : "";

    say(p, "%s%s %s, %d rank%s on %d host%s, %zu bytes%s: %" PRIu32 " chunk%s a round", line,
        p->algo->name, trib_coll_name(p->shape.coll), p->opts->ranks,
        p->opts->ranks == 1 ? "" : "s", p->groups.n, p->groups.n == 1 ? "" : "s",
        p->opts->bytes,
        p->shape.coll == TRIB_ALLGATHER || p->shape.coll == TRIB_REDUCE_SCATTER ? " each" : "",
        p->lists[0].n_chunks, p->lists[0].n_chunks == 1 ? "" : "s");
    if (p->opts->dot)
        draw_dot(p);
    else
        draw_text(p);
}

trib_status_t trib_schedule_draw(const trib_schedule_opts_t *opts, trib_line_fn fn, void *arg)
{
    struct trib_error err = {0};

    if (!opts || !fn || opts->size != sizeof(*opts) || !opts->algorithm)
        return TRIB_ERR_INVALID;
    struct picture p = {
        .opts = opts, .algo = trib_algo_find(opts->algorithm), .fn = fn, .arg = arg};
    trib_status_t st = check(opts, p.algo, &err);
    if (st == TRIB_OK)
        st = make_lists(&p, &err);
    if (st == TRIB_OK)
        draw(&p);
    else
        trib_say_error(trib_error_text(&err));
    for (int r = 0; p.lists && r < opts->ranks; r++)
        trib_schedule_free(&p.lists[r]);
    free(p.lists);
    free(p.links);
    free(p.of_rank);
    free(p.leader);
    return st;
}
