/* SPDX-License-Identifier: BSD-3-Clause */
/* Creation and moves of coded matrices. */
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "train/coded/coded_state.h"

/* Exchanged by the ranks before they encode. */
struct introduction {
    uint64_t rows, columns, seed, generation;
    int32_t status, parts, n_blocks;
    int32_t was; /* this rank in the old layout; -1: a newcomer */
    char code[TRIB_CODED_TEXT];
};

static trib_status_t check_ranks(int ranks, struct trib_error *err)
{
    if (ranks <= TRIB_CODE_RANKS_MAX)
        return TRIB_OK;
    return trib_fail(err, TRIB_ERR_UNSUPPORTED,
                     "a code has at most %d ranks, but there are %d: split the "
                     "communicator",
                     TRIB_CODE_RANKS_MAX, ranks);
}

static trib_status_t check_desc(trib_comm_t *comm, const trib_coded_desc_t *given,
                                trib_coded_desc_t *d, struct trib_error *err)
{
    static const struct trib_sized kind = {"trib_coded_desc_t", "TRIB_CODED_DESC_INIT",
                                           sizeof(*d),
                                           TRIB_SIZED_UP_TO(trib_coded_desc_t, seed)};
    const int ranks = trib_size(comm);
    struct trib_code_choice choice;

    if (trib_sized_take(&kind, given, d, err) != TRIB_OK)
        return TRIB_ERR_INVALID;
    if (d->code && strlen(d->code) >= TRIB_CODED_TEXT)
        return trib_fail(err, TRIB_ERR_INVALID, "code \"%.40s...\" is too long",
                         d->code);
    if (trib_code_parse(d->code, err, &choice) != TRIB_OK)
        return TRIB_ERR_INVALID;
    if (check_ranks(ranks, err) != TRIB_OK)
        return TRIB_ERR_UNSUPPORTED;
    if (d->partitions < 1 || !d->rows || !d->columns)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "%d partitions of %zu rows and %zu columns: there must be at "
                         "least 1 of each",
                         d->partitions, d->rows, d->columns);
    if (d->partitions > ranks)
        return trib_fail(err, TRIB_ERR_UNSUPPORTED,
                         "%d partitions need as many ranks, but there are %d",
                         d->partitions, ranks);
    if (d->rows > SIZE_MAX / sizeof(double) / d->columns / 2)
        return trib_fail(err, TRIB_ERR_OVERFLOW, "%zu rows of %zu columns are too many",
                         d->rows, d->columns);
    if (trib_rank(comm) < d->partitions && !d->partition)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "rank %d has one of the %d partitions, but it is NULL",
                         trib_rank(comm), d->partitions);
    return TRIB_OK;
}

static trib_coded_t *make(const trib_coded_desc_t *d, const char *code)
{
    trib_coded_t *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    strncpy(c->code, code ? code : "rlnc", sizeof(c->code) - 1);
    (void)trib_code_parse(c->code, NULL, &c->choice);
    c->seed = d->seed;
    c->held.rows = d->rows;
    c->held.columns = d->columns;
    c->stats.size = sizeof(c->stats);
    return c;
}

/* Make the initial layout: rank p holds partition p. */
static bool make_first(trib_coded_t *c, const trib_coded_desc_t *d, int rank, int ranks)
{
    if (!trib_code_layout_create(&c->layout, d->partitions, ranks, d->partitions,
                                 false))
        return false;
    for (int p = 0; p < d->partitions; p++)
        trib_code_layout_add_part(&c->layout, p, p);
    if (rank >= d->partitions)
        return true;
    c->held.blocks = calloc(1, sizeof(*c->held.blocks));
    if (!c->held.blocks)
        return false;
    c->held.blocks[0].part = d->partition;
    c->held.n_blocks = 1;
    return true;
}

/* Introductions -------------------------------------------------------------------- */

static void introduce(const trib_coded_t *c, trib_status_t status, bool first,
                      struct introduction *out)
{
    memset(out, 0, sizeof(*out));
    out->status = status;
    out->was = -1;
    if (!c)
        return;
    memcpy(out->code, c->code, sizeof(out->code));
    out->rows = c->held.rows;
    out->columns = c->held.columns;
    out->seed = c->seed;
    out->generation = c->generation;
    out->parts = c->layout.parts;
    out->n_blocks = c->layout.n_blocks;
    out->was = first ? -1 : c->rank;
}

static trib_status_t compare(const struct introduction *all, int ranks, int first,
                             struct trib_error *err)
{
    for (int r = 0; r < ranks; r++)
        if (all[r].status != TRIB_OK)
            return trib_fail(err, trib_status_of_peer(all[r].status),
                             "rank %d has failed: %s", r,
                             trib_status_str(trib_status_of_peer(all[r].status)));
    if (first == ranks)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "no rank of this communicator has the matrix to be moved");
    for (int r = 0; r < ranks; r++) {
        struct introduction like = all[first];
        like.was = all[r].was;
        if (all[r].rows && memcmp(&like, &all[r], sizeof(like)) != 0)
            return trib_fail(
                err, TRIB_ERR_MISMATCH,
                "rank %d has \"%s\", %d partitions of %llu x %llu, and rank "
                "%d has \"%s\", %d of %llu x %llu, or another seed",
                first, all[first].code, all[first].parts,
                (unsigned long long)all[first].rows,
                (unsigned long long)all[first].columns, r, all[r].code, all[r].parts,
                (unsigned long long)all[r].rows, (unsigned long long)all[r].columns);
    }
    return TRIB_OK;
}

/* Exchange and compare introductions; *first_out is the first rank that has the
 * matrix. */
static trib_status_t meet(trib_comm_t *comm, const struct introduction *own,
                          struct introduction **all_out, int *first_out,
                          struct trib_error *err)
{
    const int ranks = trib_size(comm);
    struct introduction *all = calloc((size_t)ranks, sizeof(*all));

    *all_out = all;
    *first_out = 0;
    if (!all) {
        (void)trib_comm_abort(comm, "no memory for a code");
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for %d ranks", ranks);
    }
    const trib_status_t st = trib_allgather(comm, own, all, sizeof(*own), TRIB_U8);
    if (st != TRIB_OK)
        return trib_fail(err, st, "%s", trib_last_error(comm));
    while (*first_out < ranks && !all[*first_out].rows)
        ++*first_out;
    return compare(all, ranks, *first_out, err);
}

/* Layouts -------------------------------------------------------------------------- */

static trib_status_t broadcast(trib_comm_t *comm, void *data, size_t bytes, int root,
                               struct trib_error *err)
{
    const trib_status_t st = trib_broadcast(comm, data, bytes, TRIB_U8, root);

    return st == TRIB_OK ? TRIB_OK : trib_fail(err, st, "%s", trib_last_error(comm));
}

/* Broadcast the old layout from a rank that has it, with the current rank numbers. */
static trib_status_t tell_layout(trib_comm_t *comm, const trib_coded_t *c,
                                 const struct introduction *all, int first,
                                 struct trib_code_layout *had, struct trib_error *err)
{
    const int ranks = trib_size(comm), n = all[first].n_blocks;
    const size_t room = (size_t)(n * all[first].parts);

    if (!trib_code_layout_create(had, all[first].parts, ranks, n, false)) {
        (void)trib_comm_abort(comm, "no memory for a code");
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for %d blocks", n);
    }
    had->n_blocks = n;
    if (c->layout.n_blocks == n) {
        memcpy(had->holder, c->layout.holder, (size_t)n * sizeof(int));
        memcpy(had->id, c->layout.id, (size_t)n * sizeof(int));
        memcpy(had->real, c->layout.real, room * sizeof(double));
        memcpy(had->bytes, c->layout.bytes, room);
    }
    trib_status_t st =
        broadcast(comm, had->holder, (size_t)n * sizeof(int), first, err);
    st = st ? st : broadcast(comm, had->id, (size_t)n * sizeof(int), first, err);
    st = st ? st : broadcast(comm, had->real, room * sizeof(double), first, err);
    st = st ? st : broadcast(comm, had->bytes, room, first, err);
    for (int b = 0; b < n && st == TRIB_OK; b++) {
        const int was = had->holder[b];
        had->holder[b] = -1;
        for (int r = 0; r < ranks; r++)
            if (all[r].was == was)
                had->holder[b] = r;
    }
    return st;
}

static bool make_room(trib_coded_t *c, int ranks)
{
    size_t *answers = calloc((size_t)ranks, sizeof(*answers));
    bool *here = calloc((size_t)ranks, sizeof(*here));

    if (!answers || !here) {
        free(answers);
        free(here);
        return false;
    }
    free(c->answers);
    free(c->here);
    c->answers = answers;
    c->here = here;
    return true;
}

/* Draw a layout, fetch its blocks, and switch the matrix to it. */
static trib_status_t take_layout(trib_comm_t *comm, trib_coded_t *c,
                                 struct trib_code_layout *had,
                                 struct trib_order_star *star, struct trib_error *err)
{
    struct trib_code_layout next = {0};
    struct trib_order_star *own = NULL;
    const int ranks = trib_size(comm);

    c->choice.seed = c->seed * 1000003 + c->generation;
    trib_status_t st =
        make_room(c, ranks)
            ? c->choice.row->ops->draw(&c->choice, had, &next, err)
            : trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for %d ranks", ranks);
    if (st == TRIB_ERR_NO_MEMORY) /* the other ranks would wait for this rank */
        (void)trib_comm_abort(comm, "no memory for a code");
    if (st == TRIB_OK && !star)
        st = trib_order_star_open(comm, err, &own);
    if (st == TRIB_OK)
        st = trib_coded_blocks_move(&c->held, comm, had, &next, err);
    if (st != TRIB_OK) {
        if (own && trib_rank(comm) == 0) /* another rank may not have noticed the
                                          * failure */
            trib_order_star_fail(own, st, trib_error_text(err));
        trib_order_star_close(own);
        trib_code_layout_destroy(&next);
        return st;
    }
    trib_code_layout_destroy(&c->layout);
    c->layout = next;
    c->star = star ? star : own;
    c->shares_star = star != NULL;
    c->rank = trib_rank(comm);
    c->ranks = ranks;
    c->generation++;
    return TRIB_OK;
}

static void close_star(trib_coded_t *c)
{
    if (!c->shares_star)
        trib_order_star_close(c->star);
    c->star = NULL;
}

trib_status_t trib_coded_matrix_begin(trib_comm_t *comm, const trib_coded_desc_t *desc,
                                      struct trib_order_star *star,
                                      struct trib_error *err, trib_coded_t **coded_out)
{
    trib_coded_desc_t d = TRIB_CODED_DESC_INIT;
    struct introduction own, *all = NULL;
    int first;

    *coded_out = NULL;
    trib_status_t st = check_desc(comm, desc, &d, err);
    trib_coded_t *c = st == TRIB_OK ? make(&d, d.code) : NULL;
    if (st == TRIB_OK && (!c || !make_first(c, &d, trib_rank(comm), trib_size(comm))))
        st = trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for a coded matrix");
    introduce(c, st, true, &own);
    const trib_status_t met = meet(comm, &own, &all, &first, err);
    st = st == TRIB_OK ? met : st;
    if (st == TRIB_OK)
        st = take_layout(comm, c, &c->layout, star, err);
    free(all);
    if (st == TRIB_OK)
        *coded_out = c;
    else
        (void)trib_coded_free(c);
    return st;
}

void trib_coded_own_partition(trib_coded_t *c, float *partition)
{
    for (int b = 0; b < c->held.n_blocks; b++) {
        if (!partition || c->held.blocks[b].part != partition)
            continue;
        c->held.blocks[b].own_part = partition;
        return;
    }
    free(partition);
}

trib_status_t trib_coded_matrix_move(trib_comm_t *comm, struct trib_order_star *star,
                                     struct trib_error *err, trib_coded_t **coded)
{
    struct introduction own, *all = NULL;
    struct trib_code_layout had = {0};
    trib_coded_t *c = *coded;
    int first;

    if (check_ranks(trib_size(comm), err) != TRIB_OK)
        return TRIB_ERR_UNSUPPORTED;
    if (c)
        close_star(c);
    introduce(c, TRIB_OK, false, &own);
    trib_status_t st = meet(comm, &own, &all, &first, err);
    if (st == TRIB_OK && !c) {
        const trib_coded_desc_t d = {.rows = all[first].rows,
                                     .columns = all[first].columns,
                                     .seed = all[first].seed};
        c = make(&d, all[first].code);
        if (c)
            c->generation = all[first].generation;
        else
            (void)trib_comm_abort(comm, "no memory for a coded matrix");
        st = c ? TRIB_OK : trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for a matrix");
    }
    if (st == TRIB_OK)
        st = tell_layout(comm, c, all, first, &had, err);
    if (st == TRIB_OK)
        st = take_layout(comm, c, &had, star, err);
    trib_code_layout_destroy(&had);
    free(all);
    if (st == TRIB_OK)
        *coded = c;
    else if (!*coded)
        (void)trib_coded_free(c);
    return st;
}

trib_status_t trib_coded_free(trib_coded_t *c)
{
    if (!c)
        return TRIB_OK;
    close_star(c);
    trib_coded_blocks_destroy(&c->held);
    trib_code_layout_destroy(&c->layout);
    free(c->answers);
    free(c->here);
    free(c->results);
    free(c);
    return TRIB_OK;
}
