/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/coded/coded_blocks.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <tributary/elastic.h>
#include <tributary/send.h>

#include "train/coded/gf_bytes.h"

enum { TAG = 0 };

/* Block `block` of `from` is sent to `to`, which adds it times `factor`. */
struct transfer {
    int from, to, block;
    uint8_t factor;
};

struct moving {
    struct trib_coded_blocks *held;
    trib_comm_t *comm;
    const struct trib_code_layout *had, *next;
    struct trib_error *err;
    int rank;
    int *source; /* [parts] the rank that sends each partition */
    const float **repaired; /* [parts] partitions repaired on this rank */
    struct trib_coded_block *blocks; /* blocks of next on this rank */
    bool *taken; /* [old blocks] reused in next */
    void *buffer; /* receive buffer of one partition */
    uint64_t fetched_bytes, repaired_bytes;
};

static size_t elements(const struct moving *m)
{
    return m->held->rows * m->held->columns;
}

static trib_status_t no_memory(struct moving *m)
{
    return trib_fail(m->err, TRIB_ERR_NO_MEMORY,
                     "no memory for a block of %zu rows and %zu columns", m->held->rows,
                     m->held->columns);
}

static trib_status_t taken(struct moving *m, trib_status_t st)
{
    return st == TRIB_OK ? TRIB_OK
                         : trib_fail(m->err, st, "%s", trib_last_error(m->comm));
}

/* Return the bytes of a block of `had` on this rank. */
static const void *bytes_of(const struct moving *m, int block)
{
    const int mine = block - trib_code_layout_first(m->had, m->rank);

    assert(m->had->holder[block] == m->rank && mine < m->held->n_blocks);
    const struct trib_coded_block *b = &m->held->blocks[mine];
    return b->part ? (const void *)b->part : b->bytes;
}

/* Return a partition held or repaired by this rank. */
static const float *part_of(const struct moving *m, int part)
{
    if (m->repaired[part])
        return m->repaired[part];
    for (int b = 0; b < m->had->n_blocks; b++)
        if (m->had->holder[b] == m->rank && m->had->id[b] == part)
            return bytes_of(m, b);
    return NULL;
}

/* Exchange ------------------------------------------------------------------------- */

typedef void (*add_fn)(struct moving *m, const struct transfer *t, const void *data,
                       void *arg);

/* A list of transfers of blocks or partitions. */
struct exchange {
    const struct transfer *transfers;
    int n;
    bool parts;
    add_fn add;
    void *arg;
    uint64_t *bytes;
};

static const void *data_of(const struct moving *m, const struct exchange *x,
                           const struct transfer *t)
{
    return x->parts ? (const void *)part_of(m, t->block) : bytes_of(m, t->block);
}

static trib_status_t receive(struct moving *m, const struct exchange *x)
{
    trib_status_t st = TRIB_OK;

    for (int i = 0; i < x->n && st == TRIB_OK; i++) {
        const struct transfer *t = &x->transfers[i];
        if (t->to != m->rank)
            continue;
        const void *data = m->buffer;
        if (t->from == m->rank) {
            data = data_of(m, x, t);
        } else {
            st = taken(m, trib_recv(m->comm, m->buffer, elements(m) * sizeof(float),
                                    TRIB_U8, t->from, TAG));
            *x->bytes += elements(m) * sizeof(float);
        }
        if (st == TRIB_OK)
            x->add(m, t, data, x->arg);
    }
    return st;
}

/* Post all sends before waiting, so that ranks cannot deadlock. */
static trib_status_t exchange(struct moving *m, const struct exchange *x)
{
    trib_request_t **sends = calloc((size_t)x->n + 1, sizeof(*sends));
    trib_status_t st = sends ? TRIB_OK : no_memory(m);

    for (int i = 0; i < x->n && st == TRIB_OK; i++) {
        const struct transfer *t = &x->transfers[i];
        if (t->from == m->rank && t->to != m->rank)
            st = taken(m, trib_isend(m->comm, data_of(m, x, t),
                                     elements(m) * sizeof(float), TRIB_U8, t->to, TAG,
                                     &sends[i]));
    }
    if (st == TRIB_OK)
        st = receive(m, x);
    for (int i = 0; i < x->n && sends; i++) {
        const trib_status_t sent = sends[i] ? trib_request_wait(sends[i]) : TRIB_OK;
        st = st == TRIB_OK ? taken(m, sent) : st;
        (void)trib_request_free(sends[i]);
    }
    free(sends);
    return st;
}

/* Repair --------------------------------------------------------------------------- */

/* List the surviving rows, partitions first because they are cheapest to combine. */
static int rows_left(const struct trib_code_layout *had, uint8_t *rows, int *blocks)
{
    int n = 0;

    for (int sums = 0; sums < 2; sums++)
        for (int b = 0; b < had->n_blocks; b++) {
            if (had->holder[b] < 0 || trib_code_layout_is_part(had, b) == (sums == 1))
                continue;
            memcpy(rows + (size_t)n * (size_t)had->parts,
                   had->bytes + (size_t)b * (size_t)had->parts, (size_t)had->parts);
            blocks[n++] = b;
        }
    return n;
}

static void add_bytes(struct moving *m, const struct transfer *t, const void *data,
                      void *arg)
{
    trib_gf_bytes_add(arg, t->factor, data, elements(m) * sizeof(float));
}

static trib_status_t lost_for_good(struct moving *m, int part)
{
    return trib_fail(
        m->err, TRIB_ERR_UNSUPPORTED,
        "partition %d is lost and cannot be restored from the remaining blocks: read "
        "its data again, and start again with trib_coded_create",
        part);
}

/* Surviving blocks of the matrix, and scratch memory to repair one partition. */
struct remains {
    uint8_t *rows; /* [n * parts] */
    int *blocks; /* [n] */
    uint8_t *factors; /* [n] */
    struct transfer *transfers; /* [n] */
    int n;
};

static bool remains_open(struct remains *r, const struct trib_code_layout *had)
{
    const size_t n = (size_t)had->n_blocks;

    *r = (struct remains){.n = 0};
    r->rows = malloc(n * (size_t)had->parts);
    r->blocks = malloc(n * sizeof(*r->blocks));
    r->factors = malloc(n);
    r->transfers = malloc(n * sizeof(*r->transfers));
    if (!r->rows || !r->blocks || !r->factors || !r->transfers)
        return false;
    r->n = rows_left(had, r->rows, r->blocks);
    return true;
}

static void remains_close(struct remains *r)
{
    free(r->rows);
    free(r->blocks);
    free(r->factors);
    free(r->transfers);
}

/* Repair one partition on the rank that will hold it. */
static trib_status_t repair(struct moving *m, int part, int to, struct remains *r)
{
    float *back = to == m->rank ? calloc(elements(m), sizeof(float)) : NULL;
    struct exchange x = {r->transfers, 0, false, add_bytes, back, &m->repaired_bytes};

    if (to == m->rank && !back)
        return no_memory(m);
    m->repaired[part] = back;
    m->source[part] = to;
    errno = 0;
    if (!trib_gf_bytes_combine(r->rows, r->n, m->had->parts, part, r->factors))
        return errno == ENOMEM ? no_memory(m) : lost_for_good(m, part);
    for (int i = 0; i < r->n; i++)
        if (r->factors[i])
            r->transfers[x.n++] = (struct transfer){m->had->holder[r->blocks[i]], to,
                                                    r->blocks[i], r->factors[i]};
    return exchange(m, &x);
}

static trib_status_t repair_all(struct moving *m)
{
    struct remains r;
    trib_status_t st = remains_open(&r, m->had) ? TRIB_OK : no_memory(m);

    for (int p = 0; p < m->had->parts && st == TRIB_OK; p++) {
        const int block = trib_code_layout_find(m->had, p);
        const int to = trib_code_layout_find(m->next, p);
        m->source[p] = block < 0 ? -1 : m->had->holder[block];
        if (block < 0)
            st = repair(m, p, m->next->holder[to], &r);
    }
    remains_close(&r);
    return st;
}

/* Encoding ------------------------------------------------------------------------- */

/* Return the block of `had` that is reused as a block of `next`; -1: it must be
 * made. */
static int kept(const struct moving *m, int block)
{
    const size_t parts = (size_t)m->had->parts;
    const double *real = m->next->real + (size_t)block * parts;
    const uint8_t *bytes = m->next->bytes + (size_t)block * parts;

    for (int b = 0; b < m->had->n_blocks; b++)
        if (m->had->holder[b] == m->next->holder[block] &&
            m->had->id[b] == m->next->id[block] &&
            memcmp(m->had->real + (size_t)b * parts, real, parts * sizeof(*real)) ==
                0 &&
            memcmp(m->had->bytes + (size_t)b * parts, bytes, parts) == 0)
            return b;
    return -1;
}

/* A block being made. Its row in next has the real factor of each transfer's
 * partition. */
struct encoding {
    int block; /* index in next */
    struct trib_coded_block *to;
};

static void encode(struct moving *m, const struct transfer *t, const void *data,
                   void *arg)
{
    const struct encoding *e = arg;
    const double factor = m->next->real[e->block * m->next->parts + t->block];
    const float *part = data;

    if (!e->to->sum) {
        memcpy(e->to->own_part, part, elements(m) * sizeof(*part));
        return;
    }
    for (size_t i = 0; i < elements(m); i++)
        e->to->sum[i] += factor * (double)part[i];
    trib_gf_bytes_add(e->to->bytes, t->factor, data, elements(m) * sizeof(*part));
}

static trib_status_t make_room(struct moving *m, int block, struct trib_coded_block *to)
{
    if (trib_code_layout_is_part(m->next, block)) {
        const bool here = m->repaired[m->next->id[block]] != NULL;
        to->own_part = here ? (float *)m->repaired[m->next->id[block]]
                            : malloc(elements(m) * sizeof(float));
        to->part = to->own_part;
        return to->part ? TRIB_OK : no_memory(m);
    }
    to->sum = calloc(elements(m), sizeof(*to->sum));
    to->bytes = calloc(elements(m), sizeof(float));
    return to->sum && to->bytes ? TRIB_OK : no_memory(m);
}

/* Make a block, in step with all other ranks. */
static trib_status_t make(struct moving *m, int block, struct transfer *t)
{
    const int to = m->next->holder[block], parts = m->next->parts;
    const int mine = block - trib_code_layout_first(m->next, m->rank);
    struct encoding e = {block, to == m->rank ? &m->blocks[mine] : NULL};
    struct exchange x = {t, 0, true, encode, &e, &m->fetched_bytes};
    const trib_status_t st = e.to ? make_room(m, block, e.to) : TRIB_OK;

    if (st != TRIB_OK)
        return st;
    for (int p = 0; p < parts; p++) {
        const uint8_t factor = m->next->bytes[block * parts + p];
        const bool back = trib_code_layout_is_part(m->next, block) &&
                          m->source[p] == to && trib_code_layout_find(m->had, p) < 0;
        if (factor && !back)
            t[x.n++] = (struct transfer){m->source[p], to, p, factor};
    }
    return exchange(m, &x);
}

static trib_status_t make_all(struct moving *m)
{
    const int first = trib_code_layout_first(m->next, m->rank);
    struct transfer *t = malloc((size_t)m->next->parts * sizeof(*t));
    trib_status_t st = t ? TRIB_OK : no_memory(m);

    for (int b = 0; b < m->next->n_blocks && st == TRIB_OK; b++) {
        const int old = kept(m, b);
        if (old < 0) {
            st = make(m, b, t);
        } else if (m->next->holder[b] == m->rank) {
            const int at = old - trib_code_layout_first(m->had, m->rank);
            m->blocks[b - first] = m->held->blocks[at];
            m->taken[at] = true;
        }
    }
    free(t);
    return st;
}

/* Moving --------------------------------------------------------------------------- */

static void block_free(struct trib_coded_block *b)
{
    free(b->own_part);
    free(b->sum);
    free(b->bytes);
    *b = (struct trib_coded_block){0};
}

/* Agree on success: old blocks are freed only when all ranks have their new blocks. */
static trib_status_t agree(struct moving *m, trib_status_t own)
{
    int32_t worst = own;

    const trib_status_t st =
        taken(m, trib_allreduce(m->comm, NULL, &worst, 1, TRIB_I32, TRIB_MIN));
    if (own != TRIB_OK || st != TRIB_OK || worst == TRIB_OK)
        return own != TRIB_OK ? own : st;
    return trib_fail(m->err, trib_status_of_peer(worst), "another rank has failed: %s",
                     trib_status_str((trib_status_t)worst));
}

static void commit(struct moving *m, int n)
{
    for (int i = 0; i < m->held->n_blocks; i++)
        if (!m->taken[i])
            block_free(&m->held->blocks[i]);
    free(m->held->blocks);
    m->held->blocks = m->blocks;
    m->held->n_blocks = n;
    m->held->fetched_bytes += m->fetched_bytes;
    m->held->repaired_bytes += m->repaired_bytes;
}

/* Free the new blocks without freeing memory that the old blocks use. */
static void give_up(struct moving *m, int n)
{
    for (int i = 0; i < n && m->blocks; i++) {
        bool old = false;
        for (int k = 0; k < m->held->n_blocks; k++)
            old |= m->taken[k] && (m->held->blocks[k].part
                                       ? m->held->blocks[k].part == m->blocks[i].part
                                       : m->held->blocks[k].sum == m->blocks[i].sum);
        for (int p = 0; p < m->had->parts && m->blocks[i].own_part; p++)
            if (m->repaired[p] == m->blocks[i].own_part)
                m->repaired[p] = NULL;
        if (!old)
            block_free(&m->blocks[i]);
    }
    for (int p = 0; p < m->had->parts && m->repaired; p++)
        free((void *)m->repaired[p]);
    free(m->blocks);
}

trib_status_t trib_coded_blocks_move(struct trib_coded_blocks *held, trib_comm_t *comm,
                                     const struct trib_code_layout *had,
                                     const struct trib_code_layout *next,
                                     struct trib_error *err)
{
    struct moving m = {.held = held,
                       .comm = comm,
                       .had = had,
                       .next = next,
                       .err = err,
                       .rank = trib_rank(comm)};
    const int n = trib_code_layout_held(next, m.rank);
    const size_t parts = (size_t)had->parts;

    m.source = calloc(parts, sizeof(*m.source));
    m.repaired = calloc(parts, sizeof(*m.repaired));
    m.blocks = calloc((size_t)n + 1, sizeof(*m.blocks));
    m.taken = calloc((size_t)held->n_blocks + 1, sizeof(*m.taken));
    m.buffer = malloc(elements(&m) * sizeof(float));
    trib_status_t st = m.source && m.repaired && m.blocks && m.taken && m.buffer
                           ? TRIB_OK
                           : no_memory(&m);
    st = agree(&m, st);
    if (st == TRIB_OK)
        st = repair_all(&m);
    if (st == TRIB_OK)
        st = make_all(&m);
    if (st == TRIB_ERR_NO_MEMORY) /* the other ranks wait for this rank's messages */
        (void)trib_comm_abort(comm, trib_error_text(err));
    st = agree(&m, st);
    if (st == TRIB_OK)
        commit(&m, n);
    else
        give_up(&m, n);
    free(m.source);
    free(m.repaired);
    free(m.taken);
    free(m.buffer);
    return st;
}

void trib_coded_blocks_destroy(struct trib_coded_blocks *held)
{
    for (int i = 0; i < held->n_blocks; i++)
        block_free(&held->blocks[i]);
    free(held->blocks);
    held->blocks = NULL;
    held->n_blocks = 0;
}

/* Products ------------------------------------------------------------------------- */

/* Four partial sums, so that additions do not depend on each other. */
static double dot_of_floats(const float *a, const float *x, size_t n)
{
    double sum[4] = {0};
    size_t i = 0;

    for (; i + 4 <= n; i += 4)
        for (size_t k = 0; k < 4; k++)
            sum[k] += (double)a[i + k] * (double)x[i + k];
    for (; i < n; i++)
        sum[0] += (double)a[i] * (double)x[i];
    return sum[0] + sum[1] + sum[2] + sum[3];
}

static double dot_of_doubles(const double *a, const float *x, size_t n)
{
    double sum[4] = {0};
    size_t i = 0;

    for (; i + 4 <= n; i += 4)
        for (size_t k = 0; k < 4; k++)
            sum[k] += a[i + k] * (double)x[i + k];
    for (; i < n; i++)
        sum[0] += a[i] * (double)x[i];
    return sum[0] + sum[1] + sum[2] + sum[3];
}

void trib_coded_blocks_multiply(const struct trib_coded_blocks *held, int block,
                                const float *x, double *y)
{
    const struct trib_coded_block *b = &held->blocks[block];
    const size_t n = held->columns;

    for (size_t i = 0; i < held->rows; i++)
        y[i] = b->sum ? dot_of_doubles(b->sum + i * n, x, n)
                      : dot_of_floats(b->part + i * n, x, n);
}
