/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/client/agg_comm.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agg/client/agg_tree.h"
#include "base/text.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/kinds/plan_sparse.h"
#include "comm/members/leave.h"
#include "comm/members/wireup.h"
#include "comm/plan/plan_make.h"
#include "comm/plan/plan_parts.h"
#include "compress/vectors/robust_op.h"
#include "pipeline/payload/check.h"
#include "pipeline/payload/partial.h"

/* Opening -------------------------------------------------------------------------- */

static bool list_peers(struct trib_agg_comm *c, const struct trib_agg_comm_opts *opts)
{
    const int size = opts->ranks + opts->aggregators;
    bool *is_peer = calloc((size_t)size, sizeof(*is_peer));
    const int n = is_peer ? trib_agg_tree_peers(c->tree, opts->ranks, opts->aggregators,
                                                opts->rank - opts->ranks, is_peer)
                          : -1;

    c->peers = n < 0 ? NULL : calloc((size_t)n + 1, sizeof(*c->peers));
    for (int r = 0; c->peers && r < size; r++)
        if (is_peer[r])
            c->peers[c->n_peers++] = r;
    free(is_peer);
    return c->peers;
}

static trib_status_t announce(struct trib_plan *plan, const trib_desc_t *desc,
                              bool leaving, uint32_t *number_out);
static void free_plan(struct trib_plan *plan);

static void free_agg_comm(struct trib_aggregators *a)
{
    struct trib_agg_comm *c = (struct trib_agg_comm *)a;

    if (!c)
        return;
    free(c->plans);
    free(c->peers);
    free(c->tree);
    free(a->hosts);
    free(c);
}

trib_status_t trib_agg_comm_open(const struct trib_config *cfg,
                                 const struct trib_log *log,
                                 const struct trib_agg_comm_opts *opts,
                                 const struct trib_exchange *x, struct trib_error *err,
                                 struct trib_comm **out)
{
    struct trib_comm *comm = calloc(1, sizeof(*comm));
    struct trib_agg_comm *c = calloc(1, sizeof(*c));
    bool is_aggregator = opts->rank >= opts->ranks;

    assert(opts->ranks > 0 && opts->aggregators > 0);
    assert(opts->rank >= 0 && opts->rank < opts->ranks + opts->aggregators);
    *out = NULL;
    if (c && is_aggregator)
        c->plans = calloc(TRIB_AGG_COMM_PLANS, sizeof(*c->plans));
    if (c && opts->tree)
        c->tree = trib_agg_tree_copy(opts->tree, opts->ranks);
    if (!comm || !c || (is_aggregator && !c->plans) || (opts->tree && !c->tree) ||
        (is_aggregator && !list_peers(c, opts))) {
        free_agg_comm(c ? &c->base : NULL);
        free(comm);
        return trib_fail(err, TRIB_ERR_NO_MEMORY,
                         "no memory for a communicator with aggregators");
    }
    c->base = (struct trib_aggregators){.n = opts->aggregators,
                                        .tree = c->tree,
                                        .announce = announce,
                                        .free_plan = free_plan,
                                        .free = free_agg_comm};
    c->announcer = opts->announcer;
    c->memory = opts->memory;
    c->quota = opts->quota;
    if (opts->guard) {
        c->guard = *opts->guard;
        comm->guard = &c->guard;
    }
    trib_comm_claim(comm);
    comm->cfg = *cfg;
    comm->met = opts->met;
    if (opts->secret)
        comm->secret = *opts->secret;
    comm->cfg.service[0] = 0; /* agg_comm itself is not offloaded */
    comm->log = *log;
    comm->idle = opts->idle;
    comm->aggregators = &c->base;
    snprintf(comm->label, sizeof(comm->label), is_aggregator ? "node%d" : "%d-service",
             opts->rank);
    trib_status_t st =
        trib_comm_wireup(comm, opts->rank, opts->ranks + opts->aggregators, x);
    if (st != TRIB_OK) {
        (void)trib_fail(err, st, "%s", trib_last_error(comm));
        trib_agg_comm_dispose(comm);
        return st;
    }
    trib_error_clear(&comm->err);
    *out = comm;
    return TRIB_OK;
}

void trib_agg_comm_dispose(struct trib_comm *comm)
{
    struct trib_agg_comm *c = trib_agg_comm_of(comm);

    if (comm->engine.head)
        trib_engine_fail(&comm->engine, TRIB_ERR_PEER_LOST,
                         "disconnected from the aggregators");
    for (uint32_t i = 0; c->plans && i < TRIB_AGG_COMM_PLANS; i++)
        trib_plan_destroy(c->plans[i]);
    free(c->plans);
    c->plans = NULL;
    trib_quota_give_mt(c->quota, c->values);
    trib_comm_dispose(comm);
}

/* Memory of an aggregator's plans -------------------------------------------------- */

static char *kib(uint64_t bytes, char text[24])
{
    return trib_size_format((bytes + 1023) / 1024 * 1024, text);
}

static trib_status_t refuse_memory(struct trib_plan *plan, uint64_t bytes,
                                   const struct trib_quota *in_the_way)
{
    static const char *const whose[] = {"a job", "all jobs of one user",
                                        "all jobs together"};
    const struct trib_quota *at = trib_agg_comm_of(plan->comm)->quota;
    char wanted[24], most[24], held[24];
    int level = 0;

    for (; at != in_the_way && level < 2; at = at->above)
        level++;
    return trib_comm_fail(
        plan->comm, TRIB_ERR_NO_RESOURCE,
        "%zu elements with codec %.60s need %s bytes; the limit of %s is %s bytes, "
        "and %s are in use",
        plan->run.desc.count, plan->codec ? trib_codec_info(plan->codec)->text : "none",
        kib(bytes, wanted), whose[level], kib(in_the_way->most, most),
        kib(trib_quota_held_mt(in_the_way), held));
}

/* Charge the plan's memory to the job's quota before allocating it. */
static trib_status_t charge(struct trib_plan *plan)
{
    struct trib_agg_comm *c = trib_agg_comm_of(plan->comm);
    uint64_t values;

    plan->charged =
        sizeof(*plan) + trib_run_bytes(&plan->comm->engine, &plan->run, &values);
    const struct trib_quota *in_the_way =
        trib_quota_take_mt(c->quota, plan->charged + values);
    if (in_the_way)
        return refuse_memory(plan, plan->charged + values, in_the_way);
    c->values += values;
    return TRIB_OK;
}

/* Announcing ----------------------------------------------------------------------- */

/* Return the bits of a double: their text is the same in every locale. */
static uint64_t bits_of(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* Format: coll=allreduce count=N dtype=f32 op=sum root=0 feed=0 chunk=0 leaving=0
 * [parameter=…] [check=…] [pairs=…] feedback=… quorum=… codec=… */
static int print(const struct trib_plan *plan, const trib_desc_t *d, bool leaving,
                 char *text, size_t bytes)
{
    const struct trib_run_desc *r = &plan->run.desc;
    const char *check = plan->comm->cfg.check;
    char more[80 + TRIB_CHECK_TEXT_MAX] = "";

    if (trib_robust_is(r->op.op))
        snprintf(more, sizeof(more), "parameter=%016" PRIx64 " ",
                 bits_of(d->parameter));
    if (r->check.finite || r->check.sum)
        trib_text_append(more, sizeof(more), "check=%s ", check);
    if (r->pairs)
        trib_text_append(more, sizeof(more), "pairs=%zu ", plan->most);
    return snprintf(
        text, bytes,
        "coll=%s count=%zu dtype=%s op=%s root=%d feed=%d chunk=%zu leaving=%d %s"
        "feedback=%s quorum=%s codec=%s",
        trib_coll_name(r->op.coll), d->count, trib_dtype_name(r->op.dtype),
        trib_op_name(r->op.op), r->op.root == TRIB_ROOT_NONE ? 0 : d->root,
        (int)r->op.feed, d->chunk, leaving, more,
        plan->codec ? r->feedback.text : "none", plan->quorum[0] ? plan->quorum : "all",
        plan->codec ? trib_codec_info(plan->codec)->text : "none");
}

/* Allocate a free number. Numbers of freed plans are reused as late as possible. */
static bool take_number(struct trib_agg_comm *c, uint32_t *out)
{
    for (uint32_t i = 0; i < TRIB_AGG_COMM_PLANS; i++) {
        const uint32_t n = (c->next + i) % TRIB_AGG_COMM_PLANS;
        if (c->taken[n])
            continue;
        c->taken[n] = true;
        c->next = (n + 1) % TRIB_AGG_COMM_PLANS;
        *out = n;
        return true;
    }
    return false;
}

static trib_status_t announce(struct trib_plan *plan, const trib_desc_t *desc,
                              bool leaving, uint32_t *number_out)
{
    struct trib_comm *comm = plan->comm;
    struct trib_agg_comm *c = trib_agg_comm_of(comm);
    char text[TRIB_AGG_COMM_TEXT_MAX];
    struct trib_error err = {0};
    trib_status_t st = TRIB_OK;

    if (trib_engine_is_aggregator(&comm->engine)) {
        *number_out = c->announced;
        return charge(plan);
    }
    if (print(plan, desc, leaving, text, sizeof(text)) >= (int)sizeof(text))
        return trib_comm_fail(
            comm, TRIB_ERR_UNSUPPORTED,
            "the texts of codec and feedback are too long for an aggregator: more "
            "than %d characters",
            TRIB_AGG_COMM_TEXT_MAX - 1);
    if (!take_number(c, number_out))
        return trib_comm_fail(comm, TRIB_ERR_NO_RESOURCE,
                              "%d plans are offloaded: free some (trib_plan_free)",
                              TRIB_AGG_COMM_PLANS);
    if (c->announcer.plan)
        st = c->announcer.plan(c->announcer.arg, *number_out, text, &err);
    if (st == TRIB_OK)
        return st;
    c->taken[*number_out] = false;
    return trib_comm_fail(comm, st, "%s", trib_error_text(&err));
}

static void free_plan(struct trib_plan *plan)
{
    struct trib_agg_comm *c = trib_agg_comm_of(plan->comm);
    struct trib_error err = {0};
    char text[32];

    if (trib_engine_is_aggregator(&plan->comm->engine)) {
        trib_quota_give_mt(c->quota, plan->charged);
        return;
    }
    if (!c->taken[plan->number])
        return;
    c->taken[plan->number] = false;
    if (!c->announcer.plan || plan->comm->engine.failed ||
        trib_comm_in_child(plan->comm)) /* a forked child frees only its copy */
        return;
    snprintf(text, sizeof(text), "freed=%" PRIu32 " ", plan->starts);
    /* on error agg_comm has failed */
    (void)c->announcer.plan(c->announcer.arg, plan->number, text, &err);
}

/* Plans of an aggregator ----------------------------------------------------------- */

/* Parse "name=value", up to the next blank; if `last`, up to the end of the text. */
static bool take_word(const char **at, const char *name, bool last, char *out,
                      size_t bytes)
{
    const size_t n = strlen(name);
    const char *p = *at;

    assert(bytes > 0);
    if (strncmp(p, name, n) != 0 || p[n] != '=')
        return false;
    p += n + 1;
    const size_t len = last ? strlen(p) : strcspn(p, " ");
    if (len >= bytes || (!last && p[len] != ' '))
        return false;
    memcpy(out, p, len);
    out[len] = 0;
    *at = p + len + !last;
    return true;
}

static bool take_number_of(const char **at, const char *name, uint64_t most,
                           uint64_t *out)
{
    char word[24], *end;

    if (!take_word(at, name, false, word, sizeof(word)) || word[0] < '0' ||
        word[0] > '9')
        return false;
    *out = strtoull(word, &end, 10);
    return !*end && *out <= most;
}

/* Parse "name=word", and find the index of the word in a list of n. */
static bool take_name(const char **at, const char *name, int n,
                      const char *(*name_of)(int), int *out)
{
    char word[32];

    if (!take_word(at, name, false, word, sizeof(word)))
        return false;
    for (int i = 0; i < n; i++) {
        if (strcmp(word, name_of(i)) != 0)
            continue;
        *out = i;
        return true;
    }
    return false;
}

static const char *coll_name(int i)
{
    return trib_coll_name((trib_coll_t)i);
}

static const char *dtype_name(int i)
{
    return trib_dtype_name((trib_dtype_t)i);
}

static const char *op_name(int i)
{
    return trib_op_name((trib_op_t)i);
}

/* Plan creation checks the range of the parameter. */
static bool take_parameter(const char **at, double *out)
{
    char word[17], *end;

    if (!take_word(at, "parameter", false, word, sizeof(word)) || strlen(word) != 16)
        return false;
    const uint64_t bits = strtoull(word, &end, 16);
    memcpy(out, &bits, sizeof(*out));
    return !*end;
}

/* A job without a check announces none. */
static bool take_check(const char **at, char out[TRIB_CHECK_TEXT_MAX])
{
    struct trib_check check;

    if (!take_word(at, "check", false, out, TRIB_CHECK_TEXT_MAX))
        snprintf(out, TRIB_CHECK_TEXT_MAX, "none");
    return trib_check_parse(out, NULL, &check) == TRIB_OK;
}

struct announcement {
    trib_desc_t desc;
    int coll;
    bool leaving;
    bool has_pairs; /* sums (index, value) pairs */
    uint64_t pairs; /* maximum number of pairs per rank; 0: unknown */
    char feedback[TRIB_AGG_COMM_TEXT_MAX];
    char quorum[TRIB_QUORUM_TEXT_MAX];
    char codec[TRIB_AGG_COMM_TEXT_MAX];
    char check[TRIB_CHECK_TEXT_MAX];
};

/* Parse "pairs=N", which is optional. */
static bool take_pairs(const char **at, struct announcement *a)
{
    a->has_pairs = strncmp(*at, "pairs=", 6) == 0;
    return !a->has_pairs || take_number_of(at, "pairs", SIZE_MAX, &a->pairs);
}

/* Return true if the plan can sum pairs: an all-reduce over all ranks, sum or mean,
 * without codec or quorum. */
static bool pairs_fit(const struct announcement *a)
{
    return a->coll == TRIB_ALLREDUCE && !a->leaving &&
           (a->desc.op == TRIB_SUM || a->desc.op == TRIB_MEAN) &&
           a->desc.dtype != TRIB_BOOL && a->desc.feed == TRIB_FEED_WHOLE &&
           strcmp(a->codec, "none") == 0 && strcmp(a->quorum, "all") == 0;
}

static bool parse(const char *text, struct announcement *a)
{
    uint64_t count, root, feed, chunk, leaving;
    int dtype, op;

    memset(a, 0, sizeof(*a));
    a->desc = (trib_desc_t)TRIB_DESC_INIT;
    if (!take_name(&text, "coll", TRIB_COLL_COUNT, coll_name, &a->coll) ||
        !take_number_of(&text, "count", SIZE_MAX, &count) ||
        !take_name(&text, "dtype", TRIB_DTYPE_COUNT, dtype_name, &dtype) ||
        !take_name(&text, "op", TRIB_OP_COUNT, op_name, &op) ||
        !take_number_of(&text, "root", INT32_MAX, &root) ||
        !take_number_of(&text, "feed", TRIB_FEED_BACKWARD, &feed) ||
        !take_number_of(&text, "chunk", SIZE_MAX, &chunk) ||
        !take_number_of(&text, "leaving", 1, &leaving) ||
        (trib_robust_is((trib_op_t)op) && !take_parameter(&text, &a->desc.parameter)) ||
        !take_check(&text, a->check) || !take_pairs(&text, a) ||
        !take_word(&text, "feedback", false, a->feedback, sizeof(a->feedback)) ||
        !take_word(&text, "quorum", false, a->quorum, sizeof(a->quorum)) ||
        !take_word(&text, "codec", true, a->codec, sizeof(a->codec)))
        return false;
    a->desc.count = (size_t)count;
    a->desc.dtype = (trib_dtype_t)dtype;
    a->desc.op = (trib_op_t)op;
    a->desc.root = (int)root;
    a->desc.feed = (trib_feed_t)feed;
    a->desc.chunk = (size_t)chunk;
    a->desc.codec = a->codec;
    a->desc.quorum = a->quorum;
    a->desc.feedback = strcmp(a->codec, "none") == 0 ? NULL : a->feedback;
    a->leaving = leaving;
    return !a->has_pairs || pairs_fit(a);
}

/* Mark the plan as freed by rank 0. It is destroyed after start number `starts`, which
 * other ranks may not have reached. */
static bool drop(struct trib_comm *comm, uint32_t number, uint32_t starts)
{
    struct trib_agg_comm *c = trib_agg_comm_of(comm);

    if (number >= TRIB_AGG_COMM_PLANS || !c->plans[number] || c->plans[number]->dropped)
        return false;
    c->plans[number]->dropped = true;
    c->plans[number]->last_start = starts;
    c->n_dropped++;
    return true;
}

trib_status_t trib_agg_comm_announced(struct trib_comm *comm, uint32_t number,
                                      const char *text)
{
    struct trib_agg_comm *c = trib_agg_comm_of(comm);
    struct announcement a;
    uint64_t starts;
    const char *rest = text;

    if (take_number_of(&rest, "freed", UINT32_MAX, &starts))
        return drop(comm, number, (uint32_t)starts)
                   ? TRIB_OK
                   : trib_comm_fail(
                         comm, TRIB_ERR_PROTOCOL,
                         "rank 0 freed plan %" PRIu32 ", which does not exist", number);
    if (number >= TRIB_AGG_COMM_PLANS || c->plans[number] || !parse(text, &a))
        return trib_comm_fail(comm, TRIB_ERR_PROTOCOL,
                              "rank 0 announced plan %" PRIu32
                              ": \"%.200s\", which is invalid",
                              number, text);
    /* A codec needs two copies of the agreements, the loss of its results, and the
     * encoded chunks and values of a round; a short vector has a single round. A quorum
     * keeps all results. */
    const bool kept = strcmp(a.codec, "none") != 0 || strcmp(a.quorum, "all") != 0;
    if (c->memory && kept && a.desc.count > c->memory / (5 * sizeof(float)))
        return trib_comm_fail(
            comm, TRIB_ERR_NO_RESOURCE,
            "a plan of %zu elements with codec %.60s may need more than %zu MiB, the "
            "limit of a plan",
            a.desc.count, a.codec, c->memory >> 20);
    /* A sum of pairs needs two copies of values and of positions. */
    const size_t longest =
        a.desc.count < TRIB_PAIRS_PIECE ? a.desc.count : TRIB_PAIRS_PIECE;
    if (c->memory && a.has_pairs && longest > c->memory / (4 * sizeof(double)))
        return trib_comm_fail(comm, TRIB_ERR_NO_RESOURCE,
                              "a sparse plan of %zu elements may need more than %zu "
                              "MiB, the limit of a plan",
                              a.desc.count, c->memory >> 20);
    assert(number < TRIB_AGG_COMM_PLANS && c->plans);
    c->announced = number;
    snprintf(comm->cfg.check, sizeof(comm->cfg.check), "%s", a.check);
    return a.has_pairs
               ? trib_sparse_make(comm, &a.desc, (size_t)a.pairs, &c->plans[number])
               : trib_plan_make(comm, (trib_coll_t)a.coll, &a.desc, a.leaving,
                                &c->plans[number]);
}

static bool is_done(const struct trib_plan *plan)
{
    const struct trib_run *run = &plan->run;

    return run->now.step >= plan->last_start && run->now.state != TRIB_RUN_QUEUED &&
           run->now.state != TRIB_RUN_ACTIVE && trib_quorum_idle(run);
}

static void destroy_dropped(struct trib_agg_comm *c)
{
    for (uint32_t i = 0; c->n_dropped && i < TRIB_AGG_COMM_PLANS; i++) {
        struct trib_plan *plan = c->plans[i];
        if (!plan || !plan->dropped || !is_done(plan))
            continue;
        trib_plan_destroy(plan);
        c->plans[i] = NULL;
        assert(c->n_dropped > 0);
        c->n_dropped--;
    }
}

/* Progress ------------------------------------------------------------------------- */

/* Return the first frame of the next operation, from any peer; NULL: none has
 * arrived. */
static const struct trib_entry *first_frame(struct trib_comm *comm, int *peer_out)
{
    struct trib_engine *e = &comm->engine;

    for (int i = 0; i < trib_agg_comm_of(comm)->n_peers; i++) {
        const int p = trib_agg_comm_of(comm)->peers[i];
        struct trib_link *l = &e->links[p];
        if (p == e->rank || !l->opened || l->lost || l->recv[TRIB_LANE_UP].skip)
            continue;
        const struct trib_entry *cell = trib_link_peek(l, &e->arena, TRIB_LANE_UP);
        if (!cell)
            continue;
        *peer_out = p;
        return cell;
    }
    return NULL;
}

/* Return a peer of the program that disconnected between operations; -1: none. */
static int left_peer(const struct trib_engine *e, const struct trib_program *p)
{
    for (uint32_t i = 0; i < p->n_neighbors; i++)
        if (e->links[p->neighbors[i].peer].lost)
            return p->neighbors[i].peer;
    return -1;
}

static bool start_next(struct trib_comm *comm)
{
    struct trib_engine *e = &comm->engine;
    struct trib_agg_comm *c = trib_agg_comm_of(comm);
    int peer;
    const struct trib_entry *cell = first_frame(comm, &peer);

    if (!cell)
        return false;
    const struct trib_frame f = cell->frame;
    struct trib_plan *plan = c->plans[trib_frame_plan(f.digest)];
    if (!plan)
        return false; /* the announcement, on another connection, has yet to arrive */
    if (plan->codec)
        trib_frame_take_stamp(&plan->run.now.frame, &f);
    struct trib_frame mine = plan->run.now.frame;
    mine.seq = e->seq + 1;
    if (!trib_frame_same(&mine, &f)) {
        char text[400];
        trib_status_t st =
            trib_frame_check(&mine, &f, e->rank, peer, text, sizeof(text));
        trib_engine_fail(e, st, text);
        return false;
    }
    const int left = left_peer(e, &plan->run.program);
    if (left >= 0) {
        char text[200];
        snprintf(text, sizeof(text),
                 "rank %d (host %.64s, process %d) has disconnected, but other ranks "
                 "continue",
                 left, e->peers[left].host, e->peers[left].pid);
        trib_engine_fail(e, TRIB_ERR_PEER_LOST, text);
        return false;
    }
    trib_run_start(e, &plan->run, NULL, NULL);
    return true;
}

bool trib_agg_comm_step(struct trib_comm *comm)
{
    struct trib_engine *e = &comm->engine;
    bool moved = trib_engine_progress(e);

    assert(trib_engine_is_aggregator(e));
    if (!e->failed && !e->head) {
        destroy_dropped(trib_agg_comm_of(comm));
        moved |= start_next(comm);
    }
    if (moved)
        trib_engine_awake(e);
    else
        (void)trib_engine_check(e);
    return moved;
}
