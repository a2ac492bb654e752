/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Schedules of an algorithm: each rank's steps, and the traffic on each link.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tributary/topology.h>

#include "agg/client/agg_tree.h"
#include "base/error.h"
#include "base/sized.h"
#include "collectives/collectives.h"
#include "comm/core/comm_setup.h"
#include "comm/core/communicator.h"
#include "comm/plan/plan_schedule.h"
#include "inspect/schedule_groups.h"

enum { RANKS_MOST = 1024, LINE_BYTES = 200 };

/* Messages from one rank to another in one round. */
struct link {
    uint32_t messages;
    uint64_t bytes[TRIB_LANES];
};

struct picture {
    const trib_schedule_opts_t *opts;
    const struct trib_algo *algo;
    struct trib_shape shape;
    int per_host;
    struct trib_drawn drawn;
    struct trib_tree_layout aggregators;
    int n; /* ranks, followed by aggregators */
    struct trib_schedule *lists; /* [n] */
    int *host_of; /* [n] each aggregator has its own host */
    struct link *links; /* [n] from one rank or aggregator to all */
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
    while (n > 0 && n < LINE_BYTES && line[n - 1] == ' ') /* of empty columns */
        line[--n] = '\0';
    p->fn(p->arg, line);
}

/* Find an algorithm by its name or a unique prefix. */
static const struct trib_algo *find_algo(const char *name)
{
    const struct trib_algo *found = trib_algo_find(name);
    int n = 0;

    if (found || !*name)
        return found;
    for (size_t i = 0; trib_algos[i]; i++) {
        if (strncmp(trib_algos[i]->name, name, strlen(name)) != 0)
            continue;
        found = trib_algos[i];
        n++;
    }
    return n == 1 ? found : NULL;
}

static trib_status_t check(const trib_schedule_opts_t *opts,
                           const struct trib_algo *algo, struct trib_error *err)
{
    if (!algo)
        return trib_settings_algorithm(opts->algorithm, err);
    if (opts->ranks < 1 || opts->ranks > RANKS_MOST)
        return trib_fail(err, TRIB_ERR_INVALID, "%d ranks: draw 1 to %d", opts->ranks,
                         RANKS_MOST);
    if (opts->ranks_per_host < 0 || opts->leaders < 0)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "%d ranks per host, %d leaders: both must be 0 or more",
                         opts->ranks_per_host, opts->leaders);
    if (opts->leaders && !algo->groups)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "leaders is %d, but algorithm %s has no leaders: omit it",
                         opts->leaders, algo->name);
    return TRIB_OK;
}

static trib_status_t make_groups(struct picture *p, struct trib_error *err)
{
    const int ranks = p->opts->ranks;
    trib_status_t st = trib_drawn_make(p->opts, p->per_host, err, &p->drawn);

    if (st != TRIB_OK)
        return st;
    p->shape.groups = &p->drawn.shape;
    for (int r = 0; r < p->n; r++)
        p->host_of[r] =
            r < ranks ? p->drawn.hosts.of_rank[r] : p->drawn.hosts.n + r - ranks;
    return TRIB_OK;
}

/* Return all-reduce, or else the algorithm's first collective. */
static trib_coll_t coll_of(const struct trib_algo *algo)
{
    int coll = TRIB_ALLREDUCE;

    if (!(algo->colls >> coll & 1))
        coll = __builtin_ctz(algo->colls);
    return (trib_coll_t)coll;
}

/* Place the aggregators of opts->service on the hosts given by per_host. */
static trib_status_t lay_aggregators(struct picture *p, struct trib_error *err)
{
    const int ranks = p->opts->ranks;
    struct trib_config cfg = {0};
    struct trib_log log;

    p->n = ranks;
    if (!p->opts->service)
        return TRIB_OK;
    if (strlen(p->opts->service) >= sizeof(cfg.service))
        return trib_fail(err, TRIB_ERR_INVALID,
                         "the list of aggregators has more than %zu bytes",
                         sizeof(cfg.service) - 1);
    snprintf(cfg.service, sizeof(cfg.service), "%s", p->opts->service);
    trib_log_init(&log, TRIB_LOG_WARN, NULL, NULL);
    char(*names)[16] = calloc((size_t)ranks, sizeof(*names));
    const char **hosts = calloc((size_t)ranks, sizeof(*hosts));
    trib_status_t st = names && hosts
                           ? TRIB_OK
                           : trib_fail(err, TRIB_ERR_NO_MEMORY,
                                       "no memory for the hosts of %d ranks", ranks);
    for (int r = 0; st == TRIB_OK && r < ranks; r++) {
        snprintf(names[r], sizeof(names[r]), "host%d", r / p->per_host);
        hosts[r] = names[r];
    }
    if (st == TRIB_OK)
        st = trib_tree_layout_make(&cfg, hosts, ranks, &log, err, &p->aggregators);
    free(hosts);
    free(names);
    p->n += p->aggregators.n;
    p->shape.aggregators = p->aggregators.n;
    p->shape.tree = p->aggregators.tree;
    return st;
}

static trib_status_t make_lists(struct picture *p, struct trib_error *err)
{
    p->lists = calloc((size_t)p->n, sizeof(*p->lists));
    p->links = calloc((size_t)p->n, sizeof(*p->links));
    p->shape.coll = coll_of(p->algo);
    p->shape.op = TRIB_SUM;
    p->shape.pairs = p->algo->merges;
    p->shape.size = p->opts->ranks;
    p->host_of = calloc((size_t)p->n, sizeof(*p->host_of));
    bool room = p->lists && p->links && p->host_of;
    trib_status_t st = room ? make_groups(p, err) : TRIB_OK;
    if (st != TRIB_OK)
        return st;
    if (room && !p->algo->can(&p->shape))
        return trib_fail(err, TRIB_ERR_UNSUPPORTED,
                         "algorithm %s does not support %s with %d rank%s %s",
                         p->algo->name, trib_coll_name(p->shape.coll), p->opts->ranks,
                         p->opts->ranks == 1 ? "" : "s",
                         p->opts->service ? "and aggregators" : "alone");
    for (int r = 0; room && r < p->n; r++) {
        p->shape.rank = r;
        room = p->algo->build(&p->shape, &p->lists[r]) == TRIB_OK;
    }
    return room ? TRIB_OK
                : trib_fail(err, TRIB_ERR_NO_MEMORY,
                            "no memory for the schedules of %d ranks", p->opts->ranks);
}

/* The first chunks are one byte larger if the division leaves a remainder. */
static uint64_t chunk_bytes(const struct picture *p, uint32_t c)
{
    uint64_t n = p->lists[0].n_chunks, bytes = p->opts->bytes;

    if (trib_coll_is_blocked(p->shape.coll))
        return bytes;
    return bytes / n + (c < bytes % n);
}

static void count_links(const struct picture *p, int rank)
{
    const struct trib_schedule *s = &p->lists[rank];

    for (int r = 0; r < p->n; r++)
        p->links[r] = (struct link){0};
    for (uint32_t i = 0; i < s->n_steps; i++) {
        struct link *link = &p->links[s->steps[i].peer];

        if (s->steps[i].op != TRIB_STEP_SEND)
            continue;
        link->messages++;
        link->bytes[s->steps[i].lane] += chunk_bytes(p, s->steps[i].chunk);
    }
}

/* "rank 3", "tribd 0": ranks and aggregators are numbered separately. */
static const char *name_of(const struct picture *p, uint32_t i, char name[20])
{
    const uint32_t ranks = (uint32_t)p->opts->ranks;

    snprintf(name, 20, "%s %" PRIu32, i < ranks ? "rank" : "tribd",
             i < ranks ? i : i - ranks);
    return name;
}

static void say_step(const struct picture *p, const struct trib_schedule *s, uint32_t i)
{
    static const char *const ops[] = {[TRIB_STEP_SEND] = "send",
                                      [TRIB_STEP_RECV_REDUCE] = "recv, sum",
                                      [TRIB_STEP_RECV_COPY] = "recv",
                                      [TRIB_STEP_SCALE] = "scale",
                                      [TRIB_STEP_COPY] = "copy"};
    const struct trib_step *step = &s->steps[i];
    bool send = step->op == TRIB_STEP_SEND;
    char name[20], peer[40] = "", after[24] = "";

    if (step->op < TRIB_STEP_SCALE)
        snprintf(peer, sizeof(peer), " %s %-9s %s", send ? "to  " : "from",
                 name_of(p, step->peer, name),
                 step->lane == TRIB_LANE_UP ? "up  " : "down");
    if (step->dep != TRIB_STEP_NO_DEP)
        snprintf(after, sizeof(after), "  after %" PRIu32, step->dep);
    say(p, "  %4" PRIu32 "  %-9s chunk %-4" PRIu32 "%s%s%s", i, ops[step->op],
        step->chunk, peer, after, step->flags & TRIB_STEP_FORWARD ? ", unchanged" : "");
}

/* Print one link per peer that r sends to. */
static void say_links(const struct picture *p, int r, uint64_t *all, uint64_t *far)
{
    char from[20], to[20];

    count_links(p, r);
    for (int i = 0; i < p->n; i++) {
        const struct link *link = &p->links[i];
        const uint64_t bytes = link->bytes[TRIB_LANE_UP] + link->bytes[TRIB_LANE_DOWN];
        const bool near = p->host_of[r] == p->host_of[i];

        *all += bytes;
        *far += near ? 0 : bytes;
        if (link->messages)
            say(p, "  %9s -> %-9s  %8" PRIu32 "  %14" PRIu64 "  %14" PRIu64 "%s",
                name_of(p, (uint32_t)r, from), name_of(p, (uint32_t)i, to),
                link->messages, link->bytes[TRIB_LANE_UP], link->bytes[TRIB_LANE_DOWN],
                near ? "" : "  to another host");
    }
}

static void draw_text(const struct picture *p)
{
    uint64_t far = 0, all = 0;
    char name[20];

    for (int r = 0; r < p->n; r++) {
        const struct trib_schedule *s = &p->lists[r];
        if (r < p->opts->ranks && p->opts->groups)
            say(p, "rank %d, host %d, group %d", r, p->host_of[r],
                p->drawn.groups.of_rank[r]);
        else if (r < p->opts->ranks)
            say(p, "rank %d, host %d", r, p->host_of[r]);
        else
            say(p, "%s, at %s", name_of(p, (uint32_t)r, name),
                p->aggregators.addresses[r - p->opts->ranks]);
        for (uint32_t i = 0; i < s->n_steps; i++)
            say_step(p, s, i);
    }
    say(p, "  %9s -> %-9s  %8s  %14s  %14s", "from", "to", "messages", "bytes up",
        "bytes down");
    for (int r = 0; r < p->n; r++)
        say_links(p, r, &all, &far);
    say(p, "sent: %" PRIu64 " bytes, of these %" PRIu64 " to other hosts", all, far);
}

static void say_nodes(const struct picture *p)
{
    char name[20];

    for (int r = 0; r < p->opts->ranks; r++) {
        if (r == 0 || p->host_of[r] != p->host_of[r - 1])
            say(p, "  subgraph cluster_%d { label=\"host %d\";", p->host_of[r],
                p->host_of[r]);
        say(p, "    %d;", r);
        if (r + 1 == p->opts->ranks || p->host_of[r] != p->host_of[r + 1])
            say(p, "  }");
    }
    for (int i = 0; i < p->aggregators.n; i++)
        say(p, "  %d [shape=box, label=\"%s\\n%s\"];", p->opts->ranks + i,
            name_of(p, (uint32_t)(p->opts->ranks + i), name),
            p->aggregators.addresses[i]);
}

static void draw_dot(const struct picture *p)
{
    say(p, "digraph schedule {");
    say(p, "  node [shape=circle];");
    say_nodes(p);
    for (int r = 0; r < p->n; r++) {
        count_links(p, r);
        for (int to = 0; to < p->n; to++)
            if (p->links[to].messages)
                say(p,
                    "  %d -> %d [label=\"up %" PRIu64 " B\\ndown %" PRIu64 " B\"%s];",
                    r, to, p->links[to].bytes[TRIB_LANE_UP],
                    p->links[to].bytes[TRIB_LANE_DOWN],
                    p->host_of[r] == p->host_of[to] ? "" : ", penwidth=2");
    }
    say(p, "}");
}

static const char *plural(int n)
{
    return n == 1 ? "" : "s";
}

/* Print the defaults used, and the kind of groups if these are not hosts. */
static void say_groups(const struct picture *p, const char *line)
{
    const struct trib_groups *groups = &p->drawn.groups;

    if (p->algo->groups && !p->opts->ranks_per_host && p->drawn.hosts.n > 1)
        say(p, "%s%d rank%s per host by default (--per-host)", line, p->per_host,
            plural(p->per_host));
    if (p->opts->groups)
        say(p, "%s%d group%s by %s, %d leader%s each", line, groups->n,
            plural(groups->n), groups->kind->name, p->drawn.shape.leaders,
            plural(p->drawn.shape.leaders));
}

static void draw(const struct picture *p)
{
    const char *line = p->opts->dot ? "// " : "";
    const int hosts = p->drawn.hosts.n;
    char aggregators[24] = "";

    if (p->opts->service)
        snprintf(aggregators, sizeof(aggregators), ", %d tribd", p->aggregators.n);
    say(p,
        "%s%s %s, %d rank%s on %d host%s%s, %zu bytes%s: %" PRIu32 " chunk%s per round",
        line, p->algo->name, trib_coll_name(p->shape.coll), p->opts->ranks,
        plural(p->opts->ranks), hosts, plural(hosts), aggregators, p->opts->bytes,
        trib_coll_is_blocked(p->shape.coll) ? " each" : "", p->lists[0].n_chunks,
        p->lists[0].n_chunks == 1 ? "" : "s");
    say_groups(p, line);
    if (p->opts->dot)
        draw_dot(p);
    else
        draw_text(p);
}

trib_status_t trib_schedule_draw(const trib_schedule_opts_t *opts, trib_line_fn fn,
                                 void *arg)
{
    static const struct trib_sized kind = {"trib_schedule_opts_t",
                                           "TRIB_SCHEDULE_OPTS_INIT", sizeof(*opts),
                                           TRIB_SIZED_UP_TO(trib_schedule_opts_t, xml)};
    trib_schedule_opts_t ours = TRIB_SCHEDULE_OPTS_INIT;
    struct trib_error err = {0};

    if (!opts || !fn)
        return TRIB_ERR_INVALID;
    if (trib_sized_take(&kind, opts, &ours, &err) != TRIB_OK) {
        trib_say_error(trib_error_text(&err));
        return TRIB_ERR_INVALID;
    }
    if (!ours.algorithm)
        return TRIB_ERR_INVALID;
    struct picture p = {
        .opts = &ours, .algo = find_algo(ours.algorithm), .fn = fn, .arg = arg};
    trib_status_t st = check(&ours, p.algo, &err);
    if (st == TRIB_OK)
        p.per_host = trib_drawn_per_host(&ours, p.algo->groups);
    if (st == TRIB_OK)
        st = lay_aggregators(&p, &err);
    if (st == TRIB_OK)
        st = make_lists(&p, &err);
    if (st == TRIB_OK)
        draw(&p);
    else
        trib_say_error(trib_error_text(&err));
    for (int r = 0; p.lists && r < p.n; r++)
        trib_schedule_free(&p.lists[r]);
    trib_tree_layout_free(&p.aggregators);
    free(p.lists);
    free(p.links);
    free(p.host_of);
    trib_drawn_free(&p.drawn);
    return st;
}
