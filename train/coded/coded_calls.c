/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of <tributary/coded.h> except trib_coded_fit: the steps of a product. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "base/text.h"
#include "train/coded/coded_decode.h"
#include "train/coded/coded_state.h"

static _Thread_local char kept_sentence[sizeof(((struct trib_error *)0)->text)];

trib_status_t trib_coded_keep_sentence(trib_status_t status,
                                       const struct trib_error *err)
{
    if (status != TRIB_OK)
        snprintf(kept_sentence, sizeof(kept_sentence), "%s", trib_error_text(err));
    return status;
}

const char *trib_coded_error(const trib_coded_t *coded)
{
    return coded ? trib_error_text(&coded->err) : kept_sentence;
}

trib_status_t trib_coded_create(trib_comm_t *comm, const trib_coded_desc_t *desc,
                                trib_coded_t **coded_out)
{
    struct trib_error err = {0};
    trib_status_t st;

    if (comm && desc && coded_out)
        st = trib_coded_matrix_begin(comm, desc, NULL, &err, coded_out);
    else
        st = trib_fail(&err, TRIB_ERR_INVALID, "comm, desc or coded_out is NULL");
    return trib_coded_keep_sentence(st, &err);
}

trib_status_t trib_coded_move(trib_comm_t *comm, trib_coded_t **coded)
{
    struct trib_error err = {0};
    trib_status_t st;

    if (comm && coded)
        st = trib_coded_matrix_move(comm, NULL, &err, coded);
    else
        st = trib_fail(&err, TRIB_ERR_INVALID, "comm or coded is NULL");
    if (coded && *coded)
        (*coded)->err = err;
    return trib_coded_keep_sentence(st, &err);
}

/* Start a call of a matrix. */
static trib_status_t enter(trib_coded_t *c)
{
    trib_error_clear(&c->err);
    if (c->star)
        return TRIB_OK;
    return trib_fail(&c->err, TRIB_ERR_ABORTED,
                     "the last trib_coded_move failed: move the matrix to a "
                     "communicator, or free it");
}

/* Count a call that this rank does not make, because the other ranks count it too. */
static trib_status_t pass(trib_coded_t *c, trib_status_t st)
{
    if (c->star)
        trib_order_star_pass(c->star);
    return st;
}

static trib_status_t no_memory(trib_coded_t *c)
{
    return trib_fail(&c->err, TRIB_ERR_NO_MEMORY, "no memory for a product");
}

static bool make_results(trib_coded_t *c, size_t count)
{
    if (c->results_room < count) {
        double *more = realloc(c->results, count * sizeof(*more));
        if (!more)
            return false;
        c->results = more;
        c->results_room = count;
    }
    return true;
}

/* Rank 0 --------------------------------------------------------------------------- */

/* A product collected by rank 0. */
struct product {
    const void *order;
    size_t order_bytes;
    size_t each; /* doubles of an answer: per block, or of a whole gradient */
    bool mixes; /* the product is a gradient */
    trib_status_t (*compute)(trib_coded_t *c, const struct product *p, const float *in,
                             double *answer);
    trib_coded_fn fn;
    void *arg;
    size_t n_in;
};

/* Return the doubles of a rank's results; 0: it has no blocks, and its answer carries
 * no data. */
static size_t doubles_of(const trib_coded_t *c, const struct product *p, int rank)
{
    const size_t held = (size_t)trib_code_layout_held(&c->layout, rank);

    return p->mixes ? (held > 0) * p->each : held * p->each;
}

static size_t answer_bytes(const trib_coded_t *c, const struct product *p, int rank)
{
    const size_t doubles = doubles_of(c, p, rank);

    return (doubles ? doubles : 1) * sizeof(double);
}

static size_t place_of(const trib_coded_t *c, const struct product *p, int rank)
{
    return p->mixes ? (size_t)rank * p->each
                    : (size_t)trib_code_layout_first(&c->layout, rank) * p->each;
}

/* Return how many more answers are needed; 0: the answers suffice. */
static int needs(trib_coded_t *c, const struct product *p, double *weights)
{
    if (!p->mixes)
        return trib_code_layout_lacks(&c->layout, c->here);
    return trib_code_layout_weights(&c->layout, c->here, weights) ? 0 : 1;
}

static trib_status_t undecodable(trib_coded_t *c, const struct product *p, int lacking)
{
    const char *why;
    const int lost = trib_order_star_lost(c->star, &why);
    char sentence[400];

    if (lacking < 0)
        return no_memory(c);
    snprintf(
        sentence, sizeof(sentence),
        "%s of code %s cannot be decoded: %s%d more answer%s needed, and %d rank%s "
        "lost; the first: %.180s",
        p->mixes ? "a gradient" : "a product", c->choice.row->name,
        p->mixes ? "at least " : "", lacking, lacking == 1 ? " is" : "s are", lost,
        lost == 1 ? " is" : "s are", why);
    trib_order_star_fail(c->star, TRIB_ERR_PEER_LOST, sentence);
    return trib_fail(&c->err, TRIB_ERR_PEER_LOST, "%s", sentence);
}

static trib_status_t compute(trib_coded_t *c, const struct product *p, const float *in,
                             double *answer)
{
    if (c->work)
        c->work(c->work_arg, c->held.n_blocks);
    return p->compute(c, p, in, answer);
}

/* Collect answers until they suffice; *waited_out ranks have then answered. */
static trib_status_t collect(trib_coded_t *c, const struct product *p, double *weights,
                             int *waited_out)
{
    const void *data;
    int rank, lacking;

    *waited_out = 0;
    memset(c->here, 0, (size_t)c->ranks * sizeof(*c->here));
    if (doubles_of(c, p, 0)) {
        c->here[0] = true;
        ++*waited_out;
    }
    while ((lacking = needs(c, p, weights)) != 0) {
        if (lacking < 0 || !trib_order_star_next(c->star, &rank, &data))
            return undecodable(c, p, lacking);
        const size_t doubles = doubles_of(c, p, rank);
        if (!doubles)
            continue;
        memcpy(c->results + place_of(c, p, rank), data, doubles * sizeof(double));
        c->here[rank] = true;
        ++*waited_out;
    }
    return TRIB_OK;
}

static trib_status_t lead(trib_coded_t *c, const struct product *p, const float *in,
                          double *weights)
{
    const size_t n = p->mixes ? (size_t)c->ranks : (size_t)c->layout.n_blocks;
    int waited;

    if (!make_results(c, n * p->each))
        return no_memory(c);
    for (int r = 0; r < c->ranks; r++)
        c->answers[r] = answer_bytes(c, p, r);
    trib_status_t st =
        trib_order_star_give(c->star, p->order, p->order_bytes, c->answers, &c->err);
    if (st == TRIB_OK && doubles_of(c, p, 0))
        st = compute(c, p, in, c->results + place_of(c, p, 0));
    if (st == TRIB_OK)
        st = collect(c, p, weights, &waited);
    if (st != TRIB_OK)
        return st;
    c->stats.products++;
    c->stats.waited += (uint64_t)waited;
    return TRIB_OK;
}

/* The other ranks ------------------------------------------------------------------ */

static trib_status_t follow(trib_coded_t *c, const struct product *p)
{
    const size_t room = answer_bytes(c, p, c->rank);
    const void *order;
    size_t bytes;

    c->taken = NULL;
    const trib_status_t st = trib_order_star_take(c->star, &order, &bytes, &c->err);
    if (st == TRIB_INPROGRESS) {
        c->stats.late++;
        return TRIB_OK;
    }
    if (st != TRIB_OK)
        return st;
    if (bytes % sizeof(float) ||
        (!p->mixes && bytes != c->held.columns * sizeof(float)))
        return trib_fail(&c->err, TRIB_ERR_MISMATCH,
                         "rank 0 made a different call: its order has %zu bytes",
                         bytes);
    double *answer = trib_order_star_room(c->star, room);
    struct product own = *p;
    own.n_in = bytes / sizeof(float);
    c->taken = order;
    if (!answer)
        return no_memory(c);
    answer[0] = 0;
    const trib_status_t done = compute(c, &own, order, answer);
    if (done == TRIB_OK)
        trib_order_star_answer(c->star, room);
    c->stats.answered += done == TRIB_OK;
    return done;
}

/* Products ------------------------------------------------------------------------- */

static trib_status_t multiply_blocks(trib_coded_t *c, const struct product *p,
                                     const float *in, double *answer)
{
    for (int b = 0; b < c->held.n_blocks; b++)
        trib_coded_blocks_multiply(&c->held, b, in, answer + (size_t)b * p->each);
    return TRIB_OK;
}

trib_status_t trib_coded_multiply(trib_coded_t *c, const float *x, float *z)
{
    bool solved = false;

    if (!c)
        return TRIB_ERR_INVALID;
    const struct product p = {.order = x,
                              .order_bytes = c->held.columns * sizeof(float),
                              .each = c->held.rows,
                              .compute = multiply_blocks};
    trib_status_t st = enter(c);
    if (st == TRIB_OK && c->rank == 0 && (!x || !z))
        st = trib_fail(&c->err, TRIB_ERR_INVALID, "x or z is NULL on rank 0");
    if (st != TRIB_OK)
        return pass(c, st);
    if (c->rank != 0)
        return follow(c, &p);
    st = lead(c, &p, x, NULL);
    if (st == TRIB_OK &&
        !trib_coded_decode(&c->layout, c->here, c->results, c->held.rows, z, &solved))
        st = no_memory(c);
    c->stats.decoded += solved;
    return st;
}

/* Gradients ------------------------------------------------------------------------ */

static trib_status_t mix_gradients(trib_coded_t *c, const struct product *p,
                                   const float *in, double *answer)
{
    const struct trib_code_layout *l = &c->layout;
    const int first = trib_code_layout_first(l, c->rank);
    float *out = malloc(p->each * sizeof(*out));

    if (!out)
        return no_memory(c);
    for (size_t i = 0; i < p->each && c->held.n_blocks; i++)
        answer[i] = 0;
    for (int b = 0; b < c->held.n_blocks; b++) {
        const int part = l->id[first + b];
        const double factor = l->mix[c->rank * l->parts + part];
        memset(out, 0, p->each * sizeof(*out));
        p->fn(p->arg, part, c->held.blocks[b].part, in, out);
        for (size_t i = 0; i < p->each; i++)
            answer[i] += factor * (double)out[i];
    }
    free(out);
    return TRIB_OK;
}

static bool part_is_missing(const trib_coded_t *c)
{
    for (int r = 0; r < c->ranks; r++)
        if (!c->here[r] && trib_code_layout_held(&c->layout, r))
            return true;
    return false;
}

static void add_up(trib_coded_t *c, const struct product *p, const double *weights,
                   float *out)
{
    for (size_t i = 0; i < p->each; i++) {
        double sum = 0;
        for (int r = 0; r < c->ranks; r++)
            if (c->here[r] && weights[r] != 0)
                sum += weights[r] * c->results[(size_t)r * p->each + i];
        out[i] = (float)sum;
    }
}

static trib_status_t check_gradient(trib_coded_t *c, trib_coded_fn fn, size_t n_out)
{
    const trib_status_t st = enter(c);

    if (st != TRIB_OK)
        return st;
    if (!fn || !n_out)
        return trib_fail(&c->err, TRIB_ERR_INVALID, "fn is NULL, or n_out is 0");
    if (!c->layout.mix)
        return trib_fail(&c->err, TRIB_ERR_UNSUPPORTED,
                         "code %s stores sums of partitions, which have no gradient: "
                         "use code gradient, or trib_coded_multiply",
                         c->choice.row->name);
    return TRIB_OK;
}

trib_status_t trib_coded_gradient(trib_coded_t *c, trib_coded_fn fn, void *arg,
                                  const float *in, size_t n_in, float *out,
                                  size_t n_out)
{
    double weights[TRIB_CODE_RANKS_MAX];

    if (!c)
        return TRIB_ERR_INVALID;
    const struct product p = {.order = in,
                              .order_bytes = n_in * sizeof(float),
                              .each = n_out,
                              .mixes = true,
                              .compute = mix_gradients,
                              .fn = fn,
                              .arg = arg,
                              .n_in = n_in};
    trib_status_t st = check_gradient(c, fn, n_out);
    if (st == TRIB_OK && c->rank == 0 && (!in || !n_in || !out))
        st = trib_fail(&c->err, TRIB_ERR_INVALID,
                       "in or out is NULL on rank 0, or n_in is 0");
    if (st != TRIB_OK)
        return pass(c, st);
    if (c->rank != 0)
        return follow(c, &p);
    st = lead(c, &p, in, weights);
    if (st == TRIB_OK) {
        add_up(c, &p, weights, out);
        c->stats.decoded += part_is_missing(c);
    }
    return st;
}

trib_status_t trib_coded_settle(trib_coded_t *c)
{
    if (!c)
        return TRIB_ERR_INVALID;
    const trib_status_t st = enter(c);
    if (st == TRIB_OK)
        trib_order_star_skip(c->star);
    return st;
}

/* Statistics ----------------------------------------------------------------------- */

void trib_coded_add_stats(const trib_coded_t *c, trib_coded_stats_t *sum)
{
    const size_t n = c->held.rows * c->held.columns;
    const char *why;

    sum->fetched_bytes += c->held.fetched_bytes;
    sum->repaired_bytes += c->held.repaired_bytes;
    for (int b = 0; b < c->held.n_blocks; b++) {
        const struct trib_coded_block *block = &c->held.blocks[b];
        if (block->sum)
            sum->stored_bytes += n * (sizeof(double) + sizeof(float));
        else if (block->own_part)
            sum->stored_bytes += n * sizeof(float);
    }
    sum->products += c->stats.products;
    sum->waited += c->stats.waited;
    sum->answered += c->stats.answered;
    sum->decoded += c->stats.decoded;
    sum->late += c->stats.late;
    if (c->star && c->rank == 0 && !c->shares_star) {
        sum->late += trib_order_star_late(c->star);
        sum->lost += (uint64_t)trib_order_star_lost(c->star, &why);
    }
}

trib_status_t trib_coded_stats(trib_coded_t *c, trib_coded_stats_t *stats)
{
    static const struct trib_sized kind = {"trib_coded_stats_t",
                                           "TRIB_CODED_STATS_INIT", sizeof(*stats),
                                           TRIB_SIZED_UP_TO(trib_coded_stats_t, lost)};
    trib_coded_stats_t s = TRIB_CODED_STATS_INIT;

    if (!c)
        return TRIB_ERR_INVALID;
    trib_error_clear(&c->err);
    if (trib_sized_fits(&kind, stats, &c->err) != TRIB_OK)
        return TRIB_ERR_INVALID;
    trib_coded_add_stats(c, &s);
    trib_sized_give(&kind, &s, stats);
    return TRIB_OK;
}

static void explain_block(const trib_coded_t *c, int block, char *text, size_t bytes)
{
    const struct trib_code_layout *l = &c->layout;
    const char *comma = "";

    if (trib_code_layout_is_part(l, block)) {
        trib_text_append(text, bytes, " partition %d;", l->id[block]);
        return;
    }
    trib_text_append(text, bytes, " a sum of partitions");
    for (int p = 0; p < l->parts; p++)
        if (l->bytes[block * l->parts + p]) {
            trib_text_append(text, bytes, "%s %d", comma, p);
            comma = ",";
        }
    trib_text_append(text, bytes, ";");
}

trib_status_t trib_coded_explain(const trib_coded_t *c, char *text, size_t bytes)
{
    struct trib_code_quality q;

    if (!c || !text || !bytes)
        return TRIB_ERR_INVALID;
    const int first = trib_code_layout_first(&c->layout, c->rank);
    text[0] = '\0';
    if (!trib_code_layout_judge(&c->layout, &q))
        return TRIB_ERR_NO_MEMORY;
    trib_text_append(text, bytes, "%s: %d partitions in %d ranks; this rank has",
                     c->choice.row->name, c->layout.parts, c->ranks);
    for (int b = 0; b < c->held.n_blocks; b++)
        explain_block(c, first + b, text, bytes);
    trib_text_append(
        text, bytes,
        "%s tolerates the loss of any one rank in %.1f %% of the cases, of any two in "
        "%.1f %%; waits for %.2f answers more than %d",
        c->held.n_blocks ? "" : " nothing;", 100 * q.any_one, 100 * q.any_two, q.beyond,
        c->layout.parts);
    return TRIB_OK;
}
