/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/coded/code_layout.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "train/coded/pivoted_qr.h"

bool trib_code_layout_create(struct trib_code_layout *l, int parts, int ranks, int room,
                             bool mixes)
{
    const size_t n = room > 0 ? (size_t)room : 1;

    assert(parts > 0 && ranks > 0);
    *l = (struct trib_code_layout){.parts = parts, .ranks = ranks, .room = room};
    l->holder = calloc(n, sizeof(*l->holder));
    l->id = calloc(n, sizeof(*l->id));
    l->real = calloc(n * (size_t)parts, sizeof(*l->real));
    l->bytes = calloc(n * (size_t)parts, sizeof(*l->bytes));
    l->mix = mixes ? calloc((size_t)(ranks * parts), sizeof(*l->mix)) : NULL;
    if (l->holder && l->id && l->real && l->bytes && (l->mix || !mixes))
        return true;
    trib_code_layout_destroy(l);
    return false;
}

void trib_code_layout_destroy(struct trib_code_layout *l)
{
    free(l->holder);
    free(l->id);
    free(l->real);
    free(l->bytes);
    free(l->mix);
    *l = (struct trib_code_layout){0};
}

int trib_code_layout_add(struct trib_code_layout *l, int holder, int id)
{
    assert(l->n_blocks < l->room);
    l->holder[l->n_blocks] = holder;
    l->id[l->n_blocks] = id;
    return l->n_blocks++;
}

int trib_code_layout_add_part(struct trib_code_layout *l, int holder, int part)
{
    const int block = trib_code_layout_add(l, holder, part);

    l->real[block * l->parts + part] = 1;
    l->bytes[block * l->parts + part] = 1;
    return block;
}

void trib_code_layout_copy_row(struct trib_code_layout *l, int to,
                               const struct trib_code_layout *from, int block)
{
    const size_t n = (size_t)l->parts;

    assert(l->parts == from->parts);
    memcpy(l->real + (size_t)to * n, from->real + (size_t)block * n,
           n * sizeof(*l->real));
    memcpy(l->bytes + (size_t)to * n, from->bytes + (size_t)block * n, n);
}

bool trib_code_layout_is_part(const struct trib_code_layout *l, int block)
{
    return l->id[block] < l->parts;
}

int trib_code_layout_find(const struct trib_code_layout *l, int part)
{
    for (int b = 0; b < l->n_blocks; b++)
        if (l->id[b] == part && l->holder[b] >= 0)
            return b;
    return -1;
}

int trib_code_layout_first(const struct trib_code_layout *l, int rank)
{
    int b = 0;

    while (b < l->n_blocks && l->holder[b] != rank)
        b++;
    return b;
}

int trib_code_layout_held(const struct trib_code_layout *l, int rank)
{
    int n = 0;

    for (int b = 0; b < l->n_blocks; b++)
        n += l->holder[b] == rank;
    return n;
}

/* Scratch memory of repeated decodability checks. */
struct judging {
    const struct trib_code_layout *l;
    bool *here; /* [ranks] */
    bool *found; /* [parts] */
    int *missing; /* [parts] */
    double *a, *scale, *b, *x;
    int *pivot;
};

static bool judging_open(struct judging *j, const struct trib_code_layout *l)
{
    const size_t parts = (size_t)l->parts, ranks = (size_t)l->ranks;
    const size_t most = parts > ranks ? parts : ranks;
    const size_t rows = (size_t)l->n_blocks > parts ? (size_t)l->n_blocks : parts;

    *j = (struct judging){.l = l};
    j->here = calloc(ranks, sizeof(*j->here));
    j->found = calloc(parts, sizeof(*j->found));
    j->missing = calloc(parts, sizeof(*j->missing));
    j->a = calloc(rows * most, sizeof(*j->a));
    j->scale = calloc(most, sizeof(*j->scale));
    j->b = calloc(rows, sizeof(*j->b));
    j->x = calloc(most, sizeof(*j->x));
    j->pivot = calloc(most, sizeof(*j->pivot));
    return j->here && j->found && j->missing && j->a && j->scale && j->b && j->x &&
           j->pivot;
}

static void judging_close(struct judging *j)
{
    free(j->here);
    free(j->found);
    free(j->missing);
    free(j->a);
    free(j->scale);
    free(j->b);
    free(j->x);
    free(j->pivot);
}

static int find_missing(struct judging *j, const bool *here)
{
    const struct trib_code_layout *l = j->l;
    int n = 0;

    memset(j->found, 0, (size_t)l->parts * sizeof(*j->found));
    for (int b = 0; b < l->n_blocks; b++)
        if (trib_code_layout_is_part(l, b) && l->holder[b] >= 0 && here[l->holder[b]])
            j->found[l->id[b]] = true;
    for (int p = 0; p < l->parts; p++)
        if (!j->found[p])
            j->missing[n++] = p;
    return n;
}

/* Sums decode the missing partitions if their columns for these are independent. */
static int lacks(struct judging *j, const bool *here)
{
    const struct trib_code_layout *l = j->l;
    const int n = find_missing(j, here);
    struct trib_pivoted_qr qr = {
        .columns = n, .a = j->a, .scale = j->scale, .pivot = j->pivot};

    for (int b = 0; b < l->n_blocks; b++) {
        if (trib_code_layout_is_part(l, b) || l->holder[b] < 0 || !here[l->holder[b]])
            continue;
        for (int i = 0; i < n; i++)
            j->a[qr.rows * n + i] = l->real[b * l->parts + j->missing[i]];
        qr.rows++;
    }
    return n - (n ? trib_pivoted_qr_factor(&qr) : 0);
}

int trib_code_layout_lacks(const struct trib_code_layout *l, const bool *here)
{
    struct judging j;
    int n = -1;

    if (judging_open(&j, l))
        n = lacks(&j, here);
    judging_close(&j);
    return n;
}

/* Solve sum of w[r] mix[r][p] = 1 for all partitions p. */
static bool weigh(struct judging *j, const bool *here, double *weights_out)
{
    const struct trib_code_layout *l = j->l;
    struct trib_pivoted_qr qr = {
        .rows = l->parts, .a = j->a, .scale = j->scale, .pivot = j->pivot};
    double rest = 0;
    int n = 0;

    for (int r = 0; r < l->ranks; r++)
        qr.columns += here[r];
    if (qr.columns == 0)
        return false;
    for (int r = 0; r < l->ranks; r++) {
        for (int p = 0; p < l->parts && here[r]; p++)
            j->a[p * qr.columns + n] = l->mix[r * l->parts + p];
        n += here[r];
    }
    for (int p = 0; p < l->parts; p++)
        j->b[p] = 1;
    trib_pivoted_qr_factor(&qr);
    trib_pivoted_qr_solve(&qr, j->b, 1, j->x);
    for (int p = qr.rank; p < l->parts; p++)
        rest += j->b[p] * j->b[p];
    n = 0;
    for (int r = 0; r < l->ranks; r++)
        weights_out[r] = here[r] ? j->x[n++] : 0;
    return sqrt(rest) < 1e-9 * l->parts;
}

bool trib_code_layout_weights(const struct trib_code_layout *l, const bool *here,
                              double *weights_out)
{
    struct judging j;

    assert(l->mix);
    const bool well = judging_open(&j, l) && weigh(&j, here, weights_out);
    judging_close(&j);
    return well;
}

/* Quality -------------------------------------------------------------------------- */

static bool suffices(struct judging *j, double *weights)
{
    return j->l->mix ? weigh(j, j->here, weights) : lacks(j, j->here) == 0;
}

/* Count tolerable losses of one and of two ranks. `holders` are the ranks with
 * blocks. */
static void judge_losses(struct judging *j, const int *holders, int n, double *weights,
                         struct trib_code_quality *out)
{
    int one = 0, two = 0;

    for (int i = 0; i < n; i++)
        j->here[holders[i]] = true;
    for (int a = 0; a < n; a++) {
        j->here[holders[a]] = false;
        one += suffices(j, weights);
        for (int b = a + 1; b < n; b++) {
            j->here[holders[b]] = false;
            two += suffices(j, weights);
            j->here[holders[b]] = true;
        }
        j->here[holders[a]] = true;
    }
    out->any_one = (double)one / n;
    out->any_two = n > 1 ? two / (0.5 * n * (n - 1)) : 0;
}

static void shuffle(int *order, int n, struct trib_rng rng)
{
    for (int i = n - 1; i > 0; i--) {
        const uint32_t draw = trib_rng_draw4(rng, (uint64_t)i).word[0];
        const int at = (int)(draw % (uint32_t)(i + 1)), swapped = order[i];
        order[i] = order[at];
        order[at] = swapped;
    }
}

/* Return how many ranks suffice when they answer in this order. Additional answers
 * never hurt, so a binary search works. */
static int wait_for(struct judging *j, const int *order, int n, double *weights)
{
    int too_few = 0, enough = n;

    while (enough - too_few > 1) {
        const int middle = (too_few + enough) / 2;
        memset(j->here, 0, (size_t)j->l->ranks * sizeof(*j->here));
        for (int i = 0; i < middle; i++)
            j->here[order[i]] = true;
        if (suffices(j, weights))
            enough = middle;
        else
            too_few = middle;
    }
    return enough;
}

bool trib_code_layout_judge(const struct trib_code_layout *l,
                            struct trib_code_quality *out)
{
    const int orders = l->ranks <= 32 ? 200 : 10;
    struct judging j;
    int *order = calloc((size_t)l->ranks, sizeof(*order));
    double *weights = calloc((size_t)l->ranks, sizeof(*weights));
    const bool well = judging_open(&j, l) && order && weights;
    double waited = 0;
    int n = 0;

    for (int r = 0; r < l->ranks && well; r++)
        if (trib_code_layout_held(l, r))
            order[n++] = r;
    if (well)
        judge_losses(&j, order, n, weights, out);
    for (int i = 0; i < orders && well; i++) {
        shuffle(order, n, (struct trib_rng){1, 0, (uint32_t)i});
        waited += wait_for(&j, order, n, weights) - l->parts;
    }
    out->beyond = waited / orders;
    judging_close(&j);
    free(order);
    free(weights);
    return well;
}
