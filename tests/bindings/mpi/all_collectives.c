/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * all_collectives [COUNT]… - every collective that trib-mpi implements, with each
 * datatype and operator, in place and not. Results must match messages and
 * MPI_Reduce_local.
 *
 * It is an ordinary MPI program and does not use the library's API.
 *
 * Prints "wrong N" on rank 0; the exit code is 1 if N is not 0.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TYPES_MOST = 64, WIDEST = 32 };

static int rank, ranks, wrong;
static MPI_Comm comm;

static void check(int good, const char *what, const char *of, int count)
{
    if (good)
        return;
    if (wrong++ < 20)
        fprintf(stderr, "rank %d: %s of %d %s is wrong\n", rank, what, count, of);
}

/* ---- what should be: all contributions, by messages ------------------------------ */

static char *everyone(const void *mine, int count, MPI_Datatype type)
{
    MPI_Aint lower, extent;

    MPI_Type_get_extent(type, &lower, &extent);
    char *all = calloc((size_t)ranks * (size_t)count + 1, (size_t)extent + 16);
    for (int r = 0; r < ranks; r++) {
        char *at = all + (size_t)r * (size_t)count * (size_t)extent;
        MPI_Sendrecv(mine, count, type, r == rank ? rank : r, 7, at, count, type, r, 7,
                     comm, MPI_STATUS_IGNORE);
    }
    return all;
}

/* Of ranks `first` to `last`, in their order. */
static void reduced(char *all, int count, MPI_Datatype type, MPI_Op op, int first,
                    int last, void *out)
{
    MPI_Aint lower, extent;

    MPI_Type_get_extent(type, &lower, &extent);
    const size_t bytes = (size_t)count * (size_t)extent;
    memcpy(out, all + bytes * (size_t)last, bytes);
    for (int r = last - 1; r >= first; r--)
        MPI_Reduce_local(all + bytes * (size_t)r, out, count, type, op);
}

/* ---- datatypes ------------------------------------------------------------------- */

enum kind { INTEGERS, FORTRAN, REALS, COMPLEXES, LOGICALS, RAW, PLACES };

struct type {
    const char *name;
    MPI_Datatype type;
    enum kind kind;
};

static struct type types[TYPES_MOST];
static int n_types;

static void add(const char *name, MPI_Datatype type, enum kind kind)
{
    int size = 0;

    if (type == MPI_DATATYPE_NULL || MPI_Type_size(type, &size) || size > WIDEST)
        return;
    types[n_types++] = (struct type){name, type, kind};
}

#define ADD(type, kind) add(#type, type, kind)

static void add_types(void)
{
    ADD(MPI_INT, INTEGERS);
    ADD(MPI_LONG, INTEGERS);
    ADD(MPI_LONG_LONG, INTEGERS);
    ADD(MPI_SHORT, INTEGERS);
    ADD(MPI_SIGNED_CHAR, INTEGERS);
    ADD(MPI_UNSIGNED, INTEGERS);
    ADD(MPI_UNSIGNED_LONG, INTEGERS);
    ADD(MPI_UNSIGNED_SHORT, INTEGERS);
    ADD(MPI_UNSIGNED_CHAR, INTEGERS);
    ADD(MPI_INT8_T, INTEGERS);
    ADD(MPI_INT16_T, INTEGERS);
    ADD(MPI_INT32_T, INTEGERS);
    ADD(MPI_INT64_T, INTEGERS);
    ADD(MPI_UINT8_T, INTEGERS);
    ADD(MPI_UINT16_T, INTEGERS);
    ADD(MPI_UINT32_T, INTEGERS);
    ADD(MPI_UINT64_T, INTEGERS);
    ADD(MPI_AINT, INTEGERS);
    ADD(MPI_OFFSET, INTEGERS);
    ADD(MPI_COUNT, INTEGERS);
    ADD(MPI_INTEGER, FORTRAN);
    ADD(MPI_FLOAT, REALS);
    ADD(MPI_DOUBLE, REALS);
    ADD(MPI_REAL, REALS);
    ADD(MPI_DOUBLE_PRECISION, REALS);
    ADD(MPI_LONG_DOUBLE, REALS);
    ADD(MPI_C_FLOAT_COMPLEX, COMPLEXES);
    ADD(MPI_C_DOUBLE_COMPLEX, COMPLEXES);
    ADD(MPI_C_BOOL, LOGICALS);
    ADD(MPI_BYTE, RAW);
    ADD(MPI_2INT, PLACES);
    ADD(MPI_FLOAT_INT, PLACES);
    ADD(MPI_DOUBLE_INT, PLACES);
    ADD(MPI_LONG_INT, PLACES);
    ADD(MPI_SHORT_INT, PLACES);
}

static const struct op {
    const char *name;
    MPI_Op op;
    unsigned kinds; /* bits of enum kind */
} * ops;
static int n_ops;

static void add_ops(void)
{
    enum {
        F = 1 << FORTRAN,
        I = 1 << INTEGERS,
        R = 1 << REALS | F,
        C = 1 << COMPLEXES
    };
    static struct op all[12];
    const struct op known[12] = {
        {"sum", MPI_SUM, I | R | C},
        {"prod", MPI_PROD, I | R | C},
        {"min", MPI_MIN, I | R},
        {"max", MPI_MAX, I | R},
        {"land", MPI_LAND, I | 1 << LOGICALS},
        {"lor", MPI_LOR, I | 1 << LOGICALS},
        {"lxor", MPI_LXOR, I | 1 << LOGICALS},
        {"band", MPI_BAND, I | F | 1 << RAW},
        {"bor", MPI_BOR, I | F | 1 << RAW},
        {"bxor", MPI_BXOR, I | F | 1 << RAW},
        {"minloc", MPI_MINLOC, 1 << PLACES},
        {"maxloc", MPI_MAXLOC, 1 << PLACES},
    };

    memcpy(all, known, sizeof(all));
    ops = all;
    n_ops = 12;
}

/* Small whole numbers, so that sums and products of them are exact in every type. */
static void fill(void *out, int count, const struct type *t, unsigned seed)
{
    MPI_Aint lower, extent;
    int size;

    MPI_Type_get_extent(t->type, &lower, &extent);
    MPI_Type_size(t->type, &size);
    memset(out, 0, (size_t)count * (size_t)extent);
    for (int i = 0; i < count; i++) {
        const unsigned v = (seed * 2654435761u + (unsigned)i * 40503u) >> 13 & 3;
        char *at = (char *)out + (size_t)i * (size_t)extent;
        if (t->type == MPI_FLOAT || t->type == MPI_REAL ||
            t->type == MPI_C_FLOAT_COMPLEX || t->type == MPI_FLOAT_INT)
            *(float *)(void *)at = (float)v;
        else if (t->type == MPI_LONG_DOUBLE)
            *(long double *)(void *)at = v;
        else if (t->kind == REALS || t->kind == COMPLEXES || t->type == MPI_DOUBLE_INT)
            *(double *)(void *)at = v;
        else
            *at = (char)(t->kind == LOGICALS ? v & 1 : v);
        if (t->kind == PLACES) /* the integer is the last member of the element */
            memcpy(at + (extent == 16  ? 8
                         : extent == 8 ? 4
                                       : extent - 4),
                   &(int){(int)(seed & 7)}, sizeof(int));
    }
}

static int same(const void *a, const void *b, int count, const struct type *t)
{
    MPI_Aint lower, extent;
    int bytes = 0, at = 0;

    if (t->type == MPI_LONG_DOUBLE) { /* of 16 bytes 10 count */
        for (int i = 0; i < count; i++)
            if (((const long double *)a)[i] != ((const long double *)b)[i])
                return 0;
        return 1;
    }
    MPI_Type_get_extent(t->type, &lower, &extent);
    MPI_Pack_size(count, t->type, comm, &bytes);
    char *x = calloc(1, (size_t)bytes + 1), *y = calloc(1, (size_t)bytes + 1);
    MPI_Pack(a, count, t->type, x, bytes, &at, comm);
    at = 0;
    MPI_Pack(b, count, t->type, y, bytes, &at, comm);
    const int equal = !memcmp(x, y, (size_t)at);
    free(x), free(y);
    return equal;
}

/* ---- reductions ------------------------------------------------------------------ */

struct buffers {
    char *in, *out, *expected, *all;
    size_t room;
};

static void open_buffers(struct buffers *b, int count)
{
    b->room = (size_t)(count + 1) * (size_t)(ranks + 1) * WIDEST;
    b->in = calloc(1, b->room);
    b->out = calloc(1, b->room);
    b->expected = calloc(1, b->room);
}

static void close_buffers(struct buffers *b)
{
    free(b->in), free(b->out), free(b->expected);
}

static void reductions(struct buffers *b, int count, const struct type *t,
                       const struct op *o)
{
    const int root = ranks - 1;
    MPI_Aint lower, extent;

    MPI_Type_get_extent(t->type, &lower, &extent);
    const size_t bytes = (size_t)count * (size_t)extent;
    fill(b->in, count, t, (unsigned)rank + 1);
    b->all = everyone(b->in, count, t->type);
    reduced(b->all, count, t->type, o->op, 0, ranks - 1, b->expected);
    MPI_Allreduce(b->in, b->out, count, t->type, o->op, comm);
    check(same(b->out, b->expected, count, t), o->name, t->name, count);
    memcpy(b->out, b->in, bytes);
    MPI_Allreduce(MPI_IN_PLACE, b->out, count, t->type, o->op, comm);
    check(same(b->out, b->expected, count, t), "in place", t->name, count);
    memset(b->out, 0, bytes);
    MPI_Reduce(b->in, rank == root ? b->out : NULL, count, t->type, o->op, root, comm);
    check(rank != root || same(b->out, b->expected, count, t), "reduce", t->name,
          count);
    memcpy(b->out, b->in, bytes);
    MPI_Reduce(rank == root ? MPI_IN_PLACE : b->in, rank == root ? b->out : NULL, count,
               t->type, o->op, root, comm);
    check(rank != root || same(b->out, b->expected, count, t), "reduce in place",
          t->name, count);
    MPI_Request request;
    memset(b->out, 0, bytes);
    MPI_Iallreduce(b->in, b->out, count, t->type, o->op, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(same(b->out, b->expected, count, t), "iallreduce", t->name, count);
    reduced(b->all, count, t->type, o->op, 0, rank, b->expected);
    MPI_Scan(b->in, b->out, count, t->type, o->op, comm);
    check(same(b->out, b->expected, count, t), "scan", t->name, count);
    if (rank) {
        reduced(b->all, count, t->type, o->op, 0, rank - 1, b->expected);
        MPI_Exscan(b->in, b->out, count, t->type, o->op, comm);
        check(same(b->out, b->expected, count, t), "exscan", t->name, count);
    } else {
        MPI_Exscan(b->in, b->out, count, t->type, o->op, comm);
    }
    free(b->all);
}

/* Of a sum: blocks of one length, and block r of r + 1 elements. */
static void scattered(struct buffers *b, int count, const struct type *t)
{
    MPI_Aint lower, extent;
    int total = 0, before = 0, counts[64];

    MPI_Type_get_extent(t->type, &lower, &extent);
    fill(b->in, count * ranks, t, (unsigned)rank + 1);
    b->all = everyone(b->in, count * ranks, t->type);
    reduced(b->all, count * ranks, t->type, MPI_SUM, 0, ranks - 1, b->expected);
    const char *block = b->expected + (size_t)(rank * count) * (size_t)extent;
    MPI_Reduce_scatter_block(b->in, b->out, count, t->type, MPI_SUM, comm);
    check(same(b->out, block, count, t), "reduce_scatter_block", t->name, count);
    memcpy(b->out, b->in, (size_t)(count * ranks) * (size_t)extent);
    MPI_Reduce_scatter_block(MPI_IN_PLACE, b->out, count, t->type, MPI_SUM, comm);
    check(same(b->out, block, count, t), "reduce_scatter_block in place", t->name,
          count);
    for (int r = 0; r < ranks; r++) {
        counts[r] = r < count ? r : count;
        before += r < rank ? counts[r] : 0;
        total += counts[r];
    }
    block = b->expected + (size_t)before * (size_t)extent;
    MPI_Reduce_scatter(b->in, b->out, counts, t->type, MPI_SUM, comm);
    check(same(b->out, block, counts[rank], t), "reduce_scatter", t->name,
          counts[rank]);
    memcpy(b->out, b->in, (size_t)total * (size_t)extent);
    MPI_Reduce_scatter(MPI_IN_PLACE, b->out, counts, t->type, MPI_SUM, comm);
    check(same(b->out, block, counts[rank], t), "reduce_scatter in place", t->name,
          counts[rank]);
    free(b->all);
}

/* b - a: neither commutative nor the same in another order. */
static void matrices(void *in, void *both, int *len, MPI_Datatype *type)
{
    const double *x = in;
    double *y = both;

    (void)type;
    for (int i = 0; i < *len; i++, x += 4, y += 4) {
        const double z[4] = {x[0] * y[0] + x[1] * y[2], x[0] * y[1] + x[1] * y[3],
                             x[2] * y[0] + x[3] * y[2], x[2] * y[1] + x[3] * y[3]};
        memcpy(y, z, sizeof(z));
    }
}

static void own_operator(int count)
{
    MPI_Datatype matrix;
    MPI_Op times;
    double *in = calloc((size_t)count, 32), *out = calloc((size_t)count, 32);
    double *expected = calloc((size_t)count, 32);
    const struct type t = {"matrices", MPI_DOUBLE, REALS};

    MPI_Type_contiguous(4, MPI_DOUBLE, &matrix);
    MPI_Type_commit(&matrix);
    MPI_Op_create(matrices, 0, &times);
    for (int i = 0; i < 4 * count; i++)
        in[i] = (i * 7 + rank * 3) % 5 - 2;
    char *all = everyone(in, count, matrix);
    reduced(all, count, matrix, times, 0, ranks - 1, expected);
    MPI_Allreduce(in, out, count, matrix, times, comm);
    check(same(out, expected, 4 * count, &t), "own operator", t.name, count);
    MPI_Reduce(in, out, count, matrix, times, 0, comm);
    check(rank || same(out, expected, 4 * count, &t), "own operator, reduce", t.name,
          count);
    MPI_Op_free(&times);
    MPI_Type_free(&matrix);
    free(in), free(out), free(expected), free(all);
}

/* ---- blocks that move ------------------------------------------------------------ */

/* A column of a matrix on even ranks, a vector on odd ones: one signature. */
static void columns(int count)
{
    const int root = ranks > 1;
    double *matrix = calloc((size_t)count, 3 * sizeof(*matrix));
    MPI_Datatype column;
    MPI_Request request;

    MPI_Type_vector(count, 1, 3, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    for (int turn = 0; turn < 2; turn++) {
        const int strided = (rank + turn) % 2, stride = strided ? 3 : 1;
        memset(matrix, 0, (size_t)count * 3 * sizeof(*matrix));
        for (int i = 0; rank == root && i < count; i++)
            matrix[i * stride] = i + turn + 1;
        if (turn) {
            MPI_Ibcast(matrix, strided ? 1 : count, strided ? column : MPI_DOUBLE, root,
                       comm, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Bcast(matrix, strided ? 1 : count, strided ? column : MPI_DOUBLE, root,
                      comm);
        }
        int good = 1;
        for (int i = 0; i < count; i++)
            good &= matrix[i * stride] == i + turn + 1 &&
                    (!strided || (matrix[3 * i + 1] == 0 && matrix[3 * i + 2] == 0));
        check(good, "broadcast", "columns and vectors", count);
    }
    MPI_Type_free(&column);
    free(matrix);
}

/* Element i of the block that rank `from` has for rank `to`. */
static int element(int from, int to, int i)
{
    return from * 1000003 + to * 1009 + i;
}

/* Every other int of memory, as a datatype with holes. */
static MPI_Datatype spaced(void)
{
    MPI_Datatype one, resized;

    MPI_Type_contiguous(1, MPI_INT, &one);
    MPI_Type_create_resized(one, 0, 2 * sizeof(int), &resized);
    MPI_Type_commit(&resized);
    MPI_Type_free(&one);
    return resized;
}

struct view { /* of memory as ints, with or without holes */
    MPI_Datatype type;
    int stride;
};

static int is_block(const int *x, struct view v, int from, int to, int count)
{
    int good = 1;

    for (int i = 0; i < count; i++)
        good &= x[i * v.stride] == element(from, to, i);
    return good;
}

static void set_block(int *x, struct view v, int from, int to, int count)
{
    for (int i = 0; i < count; i++)
        x[i * v.stride] = element(from, to, i);
}

static void moves(int count, struct view in, struct view out)
{
    const int root = ranks / 2;
    const size_t room = (size_t)(count + 1) * (size_t)ranks * 2;
    int *x = calloc(room, sizeof(int)), *y = calloc(room, sizeof(int));
    int good = 1;

    set_block(x, in, rank, 0, count);
    MPI_Allgather(x, count, in.type, y, count, out.type, comm);
    for (int r = 0; r < ranks; r++)
        good &= is_block(y + r * count * out.stride, out, r, 0, count);
    check(good, "allgather", "ints", count);
    memset(y, 0, room * sizeof(int));
    set_block(y + rank * count * out.stride, out, rank, 0, count);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, y, count, out.type, comm);
    for (int r = 0; r < ranks; r++)
        good &= is_block(y + r * count * out.stride, out, r, 0, count);
    check(good, "allgather in place", "ints", count);
    memset(y, 0, room * sizeof(int));
    set_block(y + rank * count * out.stride, out, rank, 0, count);
    if (rank == root)
        MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, y, count, out.type, root, comm);
    else
        MPI_Gather(x, count, in.type, NULL, 0, MPI_DATATYPE_NULL, root, comm);
    for (int r = 0; rank == root && r < ranks; r++)
        good &= is_block(y + r * count * out.stride, out, r, 0, count);
    check(good, "gather", "ints", count);
    memset(y, 0, room * sizeof(int));
    for (int r = 0; r < ranks; r++)
        set_block(x + r * count * in.stride, in, rank, r, count);
    MPI_Scatter(x, count, in.type, y, count, out.type, root, comm);
    check(is_block(y, out, root, rank, count), "scatter", "ints", count);
    MPI_Alltoall(x, count, in.type, y, count, out.type, comm);
    for (int r = 0; r < ranks; r++)
        good &= is_block(y + r * count * out.stride, out, r, rank, count);
    check(good, "alltoall", "ints", count);
    for (int r = 0; r < ranks; r++)
        set_block(y + r * count * out.stride, out, rank, r, count);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, y, count, out.type, comm);
    for (int r = 0; r < ranks; r++)
        good &= is_block(y + r * count * out.stride, out, r, rank, count);
    check(good, "alltoall in place", "ints", count);
    free(x), free(y);
}

/* Block r has `r % (count + 1)` elements; blocks do not overlap and are in reverse
 * order. */
static void counted_moves(int count, struct view in, struct view out)
{
    const int root = ranks / 2, own = rank % (count + 1);
    const size_t room = (size_t)(count + 1) * (size_t)(ranks + 1) * 2;
    int *x = calloc(room, sizeof(int)), *y = calloc(room, sizeof(int));
    int counts[64], places[64], mine[64], where[64], good = 1;

    for (int r = 0; r < ranks; r++) {
        counts[r] = r % (count + 1);
        places[r] = (ranks - 1 - r) * count;
        mine[r] = own;
        where[r] = r * count;
    }
    set_block(x, in, rank, 0, own);
    MPI_Allgatherv(x, own, in.type, y, counts, places, out.type, comm);
    for (int r = 0; r < ranks; r++)
        good &= is_block(y + places[r] * out.stride, out, r, 0, counts[r]);
    check(good, "allgatherv", "ints", count);
    memset(y, 0, room * sizeof(int));
    MPI_Gatherv(own ? x : NULL, own, in.type, y, counts, places, out.type, root, comm);
    for (int r = 0; rank == root && r < ranks; r++)
        good &= is_block(y + places[r] * out.stride, out, r, 0, counts[r]);
    check(good, "gatherv", "ints", count);
    for (int r = 0; r < ranks; r++)
        set_block(x + places[r] * in.stride, in, rank, r, counts[r]);
    memset(y, 0, room * sizeof(int));
    MPI_Scatterv(x, counts, places, in.type, y, own, out.type, root, comm);
    check(is_block(y, out, root, rank, own), "scatterv", "ints", count);
    MPI_Alltoallv(x, counts, places, in.type, y, mine, where, out.type, comm);
    for (int r = 0; r < ranks; r++)
        good &= is_block(y + where[r] * out.stride, out, r, rank, own);
    check(good, "alltoallv", "ints", count);
    free(x), free(y);
}

#if MPI_VERSION >= 4
/* The same by counts of MPI_Count and places of MPI_Aint, one of them negative. */
static void wide_counts(int count, struct view in, struct view out)
{
    const int root = ranks - 1, own = rank % (count + 1);
    const size_t room = (size_t)(count + 1) * (size_t)(ranks + 1) * 2;
    int *x = calloc(room, sizeof(int)), *y = calloc(room, sizeof(int));
    int good = 1, before = 0;
    MPI_Count counts[64], mine[64];
    MPI_Aint places[64], where[64];

    for (int r = 0; r < ranks; r++) {
        counts[r] = r % (count + 1);
        places[r] = (ranks - 2 - r) * count;
        mine[r] = own;
        where[r] = r * count;
    }
    int *from = x + count * in.stride, *to = y + count * out.stride;
    set_block(x, in, rank, 0, own);
    MPI_Allgatherv_c(x, own, in.type, to, counts, places, out.type, comm);
    for (int r = 0; r < ranks; r++)
        good &= is_block(to + places[r] * out.stride, out, r, 0, (int)counts[r]);
    check(good, "allgatherv_c", "ints", count);
    memset(y, 0, room * sizeof(int));
    MPI_Gatherv_c(x, own, in.type, rank == root ? to : NULL,
                  rank == root ? counts : NULL, rank == root ? places : NULL, out.type,
                  root, comm);
    for (int r = 0; rank == root && r < ranks; r++)
        good &= is_block(to + places[r] * out.stride, out, r, 0, (int)counts[r]);
    check(good, "gatherv_c", "ints", count);
    for (int r = 0; r < ranks; r++)
        set_block(from + places[r] * in.stride, in, rank, r, (int)counts[r]);
    MPI_Scatterv_c(rank == root ? from : NULL, rank == root ? counts : NULL,
                   rank == root ? places : NULL, in.type, y, own, out.type, root, comm);
    check(is_block(y, out, root, rank, own), "scatterv_c", "ints", count);
    MPI_Alltoallv_c(from, counts, places, in.type, y, mine, where, out.type, comm);
    for (int r = 0; r < ranks; r++)
        good &= is_block(y + where[r] * out.stride, out, r, rank, own);
    check(good, "alltoallv_c", "ints", count);
    for (int i = 0; i < (int)room; i++)
        x[i] = rank + i;
    MPI_Reduce_scatter_c(x, y, counts, MPI_INT, MPI_SUM, comm);
    for (int r = 0; r < rank; r++)
        before += (int)counts[r];
    for (int i = 0; i < own; i++)
        good &= y[i] == ranks * (ranks - 1) / 2 + ranks * (before + i);
    check(good, "reduce_scatter_c", "ints", count);
    free(x), free(y);
}
#endif

/* ---- all of it ------------------------------------------------------------------- */

static void all_of(int count)
{
    struct buffers b;
    MPI_Request request;
    MPI_Datatype holes = spaced();
    const struct view views[2] = {{MPI_INT, 1}, {holes, 2}};

    open_buffers(&b, count);
    for (int i = 0; i < n_types; i++)
        for (int k = 0; k < n_ops; k++)
            if (ops[k].kinds >> types[i].kind & 1)
                reductions(&b, count, &types[i], &ops[k]);
    scattered(&b, count, &types[0]);
    scattered(&b, count, &(struct type){"MPI_DOUBLE", MPI_DOUBLE, REALS});
    own_operator(count);
    columns(count);
    for (int i = 0; i < 4; i++) {
        moves(count, views[i % 2], views[i / 2]);
        counted_moves(count, views[i % 2], views[i / 2]);
#if MPI_VERSION >= 4
        wide_counts(count, views[i % 2], views[i / 2]);
#endif
    }
    MPI_Ibarrier(comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(comm);
    MPI_Type_free(&holes);
    close_buffers(&b);
}

int main(int argc, char **argv)
{
    int total;

    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    add_types();
    add_ops();
    for (int i = 1; i < argc; i++)
        all_of(atoi(argv[i]));
    MPI_Allreduce(&wrong, &total, 1, MPI_INT, MPI_SUM, comm);
    if (rank == 0)
        printf("wrong %d\n", total);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return total != 0;
}
