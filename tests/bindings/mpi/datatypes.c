/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * datatypes - collectives on datatypes whose elements are sent in another order than in
 * memory, have gaps, or are dense but described indirectly. Each is sent as a datatype
 * and received as plain integers, and vice versa.
 *
 * It is an ordinary MPI program and does not use the library's API. Rank 0 prints
 * "wrong N"; the exit code is 1 if N is not 0.
 */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INTS = 6, SPAN = 16, RANKS_MOST = 8, VIEWS_MOST = 40 };

/* INTS integers in the order of a datatype, in memory of SPAN. */
struct view {
    const char *name;
    MPI_Datatype type;
    int count; /* elements of the type that hold INTS integers */
    int sends_only; /* it has an integer twice */
};

static int rank, ranks, wrong;
static MPI_Comm comm;
static struct view views[VIEWS_MOST];
static int n_views;

static void check(int good, const char *what, const struct view *a,
                  const struct view *b)
{
    if (!good && wrong++ < 20)
        fprintf(stderr, "rank %d: %s from %s to %s is wrong\n", rank, what, a->name,
                b->name);
}

static void add(const char *name, MPI_Datatype type, int count)
{
    if (type != MPI_INT)
        MPI_Type_commit(&type);
    views[n_views++] = (struct view){name, type, count, 0};
}

/* ---- datatypes ------------------------------------------------------------------- */

static MPI_Datatype reversed(void)
{
    const int lengths[INTS] = {1, 1, 1, 1, 1, 1}, places[INTS] = {5, 4, 3, 2, 1, 0};
    MPI_Datatype t;

    MPI_Type_indexed(INTS, lengths, places, MPI_INT, &t);
    return t;
}

static void add_permuted(void)
{
    const int lengths[3] = {2, 1, 3}, places[3] = {4, 0, 1};
    const int backwards[INTS] = {5, 4, 3, 2, 1, 0};
    const MPI_Aint far[3] = {16, 0, 4}, pairs[3] = {16, 8, 0}, shift = 20;
    const MPI_Datatype ints[3] = {MPI_INT, MPI_INT, MPI_INT};
    const int one = 1;
    MPI_Datatype a, b, c;

    MPI_Type_vector(3, 1, 2, MPI_INT, &a);
    MPI_Type_create_hvector(2, 1, sizeof(int), a, &b);
    add("a transposition", b, 1);
    add("reversed", reversed(), 1);
    a = reversed();
    MPI_Type_dup(a, &b);
    add("a copy of reversed", b, 1);
    MPI_Type_contiguous(1, a, &b);
    MPI_Type_create_resized(b, 0, INTS * sizeof(int), &c);
    add("resized reversed", c, 1);
    MPI_Type_create_struct(3, lengths, far, ints, &a);
    add("a struct out of order", a, 1);
    MPI_Type_indexed(3, lengths, places, MPI_INT, &a);
    add("indexed out of order", a, 1);
    MPI_Type_create_hindexed(3, lengths, far, MPI_INT, &a);
    add("hindexed out of order", a, 1);
    MPI_Type_create_indexed_block(INTS, 1, backwards, MPI_INT, &a);
    add("blocks backwards", a, 1);
    MPI_Type_create_hindexed_block(3, 2, pairs, MPI_INT, &a);
    add("pairs backwards", a, 1);
    MPI_Type_vector(INTS, 1, -1, MPI_INT, &a);
    MPI_Type_create_struct(1, &one, &shift, &a, &b);
    add("a vector of negative stride", b, 1);
    MPI_Type_vector(3, 1, -1, MPI_INT, &a);
    MPI_Type_create_hindexed(1, &one, &pairs[1], a, &b);
    add("two that are reversed", b, 2);
}

static void add_dense(void)
{
    const int lengths[3] = {1, 2, 3}, sizes[2] = {2, 3}, none[2] = {0, 0};
    const int dist[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
    const int dargs[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
    const int grid[2] = {1, 1};
    const MPI_Aint places[3] = {0, 4, 12};
    MPI_Datatype a, b;

    MPI_Type_contiguous(INTS, MPI_INT, &a);
    add("contiguous", a, 1);
    MPI_Type_vector(2, 3, 3, MPI_INT, &a);
    add("a vector without holes", a, 1);
    MPI_Type_create_hindexed(3, lengths, places, MPI_INT, &a);
    add("hindexed in order", a, 1);
    MPI_Type_create_resized(MPI_INT, 0, 8, &a);
    MPI_Type_create_hvector(INTS, 1, sizeof(int), a, &b);
    MPI_Type_create_resized(b, 0, INTS * sizeof(int), &a);
    add("wide integers put together", a, 1);
    MPI_Type_create_subarray(2, sizes, sizes, none, MPI_ORDER_FORTRAN, MPI_INT, &a);
    add("a whole array", a, 1);
    MPI_Type_create_darray(1, 0, 2, sizes, dist, dargs, grid, MPI_ORDER_C, MPI_INT, &a);
    add("a distributed array of one process", a, 1);
    if (MPI_Type_create_f90_integer(9, &a) == MPI_SUCCESS) {
        MPI_Type_contiguous(INTS / 2, a, &b);
        add("integers of Fortran 90", b, 2);
    }
}

static void add_apart(void)
{
    const int sizes[2] = {4, 4}, parts[2] = {2, 3}, begins[2] = {1, 1};
    const int lengths[4] = {1, 1, 1, 1}, twice[4] = {0, 0, 2, 3};
    MPI_Datatype a;

    MPI_Type_vector(INTS, 1, 2, MPI_INT, &a);
    add("every second", a, 1);
    MPI_Type_create_subarray(2, sizes, parts, begins, MPI_ORDER_C, MPI_INT, &a);
    add("a part of an array", a, 1);
    MPI_Type_indexed(3, lengths, twice, MPI_INT, &a);
    add("an integer twice", a, 2);
    views[n_views - 1].sends_only = 1;
}

#if MPI_VERSION >= 4
static void add_wide(void)
{
    const MPI_Count lengths[3] = {2, 1, 3}, places[3] = {4, 0, 1}, far[3] = {16, 0, 4};
    const MPI_Count sizes[2] = {2, 3}, none[2] = {0, 0};
    const MPI_Datatype ints[3] = {MPI_INT, MPI_INT, MPI_INT};
    MPI_Datatype a;

    MPI_Type_contiguous_c(INTS, MPI_INT, &a);
    add("contiguous_c", a, 1);
    MPI_Type_vector_c(3, 2, 2, MPI_INT, &a);
    add("vector_c", a, 1);
    MPI_Type_indexed_c(3, lengths, places, MPI_INT, &a);
    add("indexed_c out of order", a, 1);
    MPI_Type_create_struct_c(3, lengths, far, ints, &a);
    add("struct_c out of order", a, 1);
    MPI_Type_create_subarray_c(2, sizes, sizes, none, MPI_ORDER_C, MPI_INT, &a);
    add("a whole array_c", a, 1);
}
#endif

/* ---- blocks ---------------------------------------------------------------------- */

/* Memory of a block for each rank, by a view; the integers are in sending order. */
struct memory {
    const struct view *v;
    int at[RANKS_MOST * SPAN];
    int step; /* integers from one block to the next */
};

static void pack(const struct memory *m, int block, int out[INTS])
{
    int at = 0;
    MPI_Pack(m->at + block * m->step, m->v->count, m->v->type, out, INTS * sizeof(int),
             &at, MPI_COMM_SELF);
}

static void open_memory(struct memory *m, const struct view *v, int from)
{
    MPI_Aint lower, extent;

    MPI_Type_get_extent(v->type, &lower, &extent);
    m->v = v;
    m->step = (int)(extent / (MPI_Aint)sizeof(int)) * v->count;
    for (int i = 0; i < RANKS_MOST * SPAN; i++)
        m->at[i] = from < 0 ? -1 : 1000 * from + i;
}

/* Rank `from` sends this by the view as its block `block`. */
static void expected(const struct view *v, int from, int block, int out[INTS])
{
    struct memory m;

    open_memory(&m, v, from);
    pack(&m, block, out);
}

static int has(const struct memory *m, int at, int from, int block,
               const struct view *sent)
{
    int got[INTS], want[INTS];

    pack(m, at, got);
    expected(sent, from, block, want);
    return !memcmp(got, want, sizeof(got));
}

/* ---- collectives ----------------------------------------------------------------- */

#define OF(m) (m).v->count, (m).v->type

static void one_to_all(const struct view *a, const struct view *b, int root)
{
    struct memory x, y;
    MPI_Request request;

    open_memory(&x, a, rank);
    open_memory(&y, b, -1);
    if (rank == root)
        MPI_Bcast(x.at, OF(x), root, comm);
    else
        MPI_Bcast(y.at, OF(y), root, comm);
    check(rank == root || has(&y, 0, root, 0, a), "bcast", a, b);
    open_memory(&y, b, -1);
    MPI_Ibcast(rank == root ? x.at : y.at, rank == root ? a->count : b->count,
               rank == root ? a->type : b->type, root, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(rank == root || has(&y, 0, root, 0, a), "ibcast", a, b);
    open_memory(&y, b, -1);
    MPI_Scatter(x.at, OF(x), y.at, OF(y), root, comm);
    check(has(&y, 0, root, rank, a), "scatter", a, b);
    open_memory(&y, b, -1);
    MPI_Scatter(x.at, OF(x), rank == root ? MPI_IN_PLACE : y.at, OF(y), root, comm);
    check(rank == root || has(&y, 0, root, rank, a), "scatter in place", a, b);
}

static void to_one(const struct view *a, const struct view *b, int root)
{
    struct memory x, y;

    open_memory(&x, a, rank);
    open_memory(&y, b, -1);
    MPI_Gather(x.at, OF(x), y.at, OF(y), root, comm);
    for (int r = 0; rank == root && r < ranks; r++)
        check(has(&y, r, r, 0, a), "gather", a, b);
    open_memory(&y, b, rank);
    MPI_Gather(rank == root ? MPI_IN_PLACE : x.at, OF(x), y.at, OF(y), root, comm);
    for (int r = 0; rank == root && r < ranks; r++)
        check(r == root ? has(&y, r, r, r, b) : has(&y, r, r, 0, a), "gather in place",
              a, b);
}

static void all_to_all(const struct view *a, const struct view *b)
{
    struct memory x, y;

    open_memory(&x, a, rank);
    open_memory(&y, b, -1);
    MPI_Allgather(x.at, OF(x), y.at, OF(y), comm);
    for (int r = 0; r < ranks; r++)
        check(has(&y, r, r, 0, a), "allgather", a, b);
    open_memory(&y, b, -1);
    MPI_Alltoall(x.at, OF(x), y.at, OF(y), comm);
    for (int r = 0; r < ranks; r++)
        check(has(&y, r, r, rank, a), "alltoall", a, b);
    open_memory(&y, b, rank);
    MPI_Allgather(MPI_IN_PLACE, OF(x), y.at, OF(y), comm);
    for (int r = 0; r < ranks; r++)
        check(has(&y, r, r, r, b), "allgather in place", a, b);
    open_memory(&y, b, rank);
    MPI_Alltoall(MPI_IN_PLACE, OF(x), y.at, OF(y), comm);
    for (int r = 0; r < ranks; r++)
        check(has(&y, r, r, rank, b), "alltoall in place", a, b);
}

/* Blocks are in the reverse order of ranks, and rank 0 receives none. */
static void counted(const struct view *a, const struct view *b, int root)
{
    int of_x[RANKS_MOST], of_y[RANKS_MOST], places_x[RANKS_MOST], places_y[RANKS_MOST];
    struct memory x, y;

    open_memory(&x, a, rank);
    for (int r = 0; r < ranks; r++) {
        of_x[r] = r ? a->count : 0;
        of_y[r] = r ? b->count : 0;
        places_x[r] = (ranks - 1 - r) * a->count;
        places_y[r] = (ranks - 1 - r) * b->count;
    }
    open_memory(&y, b, -1);
    MPI_Allgatherv(x.at, of_x[rank], a->type, y.at, of_y, places_y, b->type, comm);
    for (int r = 1; r < ranks; r++)
        check(has(&y, ranks - 1 - r, r, 0, a), "allgatherv", a, b);
    open_memory(&y, b, -1);
    MPI_Gatherv(x.at, of_x[rank], a->type, y.at, of_y, places_y, b->type, root, comm);
    for (int r = 1; r < ranks && rank == root; r++)
        check(has(&y, ranks - 1 - r, r, 0, a), "gatherv", a, b);
    open_memory(&y, b, -1);
    MPI_Scatterv(x.at, of_x, places_x, a->type, y.at, of_y[rank], b->type, root, comm);
    check(!rank || has(&y, 0, root, ranks - 1 - rank, a), "scatterv", a, b);
    open_memory(&y, b, rank);
    MPI_Allgatherv(MPI_IN_PLACE, 0, a->type, y.at, of_y, places_y, b->type, comm);
    for (int r = 1; r < ranks; r++)
        check(has(&y, ranks - 1 - r, r, ranks - 1 - r, b), "allgatherv in place", a, b);
    for (int r = 0; r < ranks; r++)
        of_x[r] = rank ? a->count : 0;
    open_memory(&y, b, -1);
    MPI_Alltoallv(x.at, of_x, places_x, a->type, y.at, of_y, places_y, b->type, comm);
    for (int r = 1; r < ranks; r++)
        check(has(&y, ranks - 1 - r, r, ranks - 1 - rank, a), "alltoallv", a, b);
}

/* ---- reductions ------------------------------------------------------------------ */

static void add_all(void *in, void *out, int *n, MPI_Datatype *type)
{
    MPI_Aint lower, extent;

    MPI_Type_get_extent(*type, &lower, &extent);
    for (int i = 0; i < *n * (int)(extent / (MPI_Aint)sizeof(int)); i++)
        ((int *)out)[i] += ((int *)in)[i];
}

/* Datatypes with holes are left out: the operator may not touch a hole. */
static void reductions(const struct view *a)
{
    int got[INTS], want[INTS] = {0}, one[INTS], bytes;
    MPI_Aint lower, extent;
    struct memory x, y;
    MPI_Op op;

    MPI_Type_size(a->type, &bytes);
    MPI_Type_get_extent(a->type, &lower, &extent);
    if (bytes != extent)
        return;
    MPI_Op_create(add_all, 1, &op);
    open_memory(&x, a, rank);
    open_memory(&y, a, -1);
    for (int r = 0; r < ranks; r++) {
        expected(a, r, 0, one);
        for (int i = 0; i < INTS; i++)
            want[i] += one[i];
    }
    MPI_Allreduce(x.at, y.at, OF(x), op, comm);
    pack(&y, 0, got);
    check(!memcmp(got, want, sizeof(got)), "allreduce", a, a);
    MPI_Reduce(rank ? x.at : MPI_IN_PLACE, x.at, OF(x), op, 0, comm);
    pack(&x, 0, got);
    check(rank || !memcmp(got, want, sizeof(got)), "reduce in place", a, a);
    MPI_Op_free(&op);
}

/* Add the integers of adjacent elements. */
static void add_backwards(void *in, void *out, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++)
        ((int *)out)[-i] += ((int *)in)[-i];
}

static void backwards(void)
{
    enum { N = 1500 };
    static const struct view v = {"elements of a negative extent", MPI_INT, N, 0};
    int *x = malloc(N * sizeof(*x)), *y = malloc(N * sizeof(*y)), good = 1;
    MPI_Datatype t;
    MPI_Op op;

    MPI_Type_create_resized(MPI_INT, 0, -(MPI_Aint)sizeof(int), &t);
    MPI_Type_commit(&t);
    MPI_Op_create(add_backwards, 1, &op);
    for (int i = 0; i < N; i++)
        x[i] = i + rank;
    MPI_Allreduce(x + N - 1, y + N - 1, N, t, op, comm);
    for (int i = 0; i < N; i++)
        good &= y[i] == i * ranks + ranks * (ranks - 1) / 2;
    check(good, "allreduce", &v, &v);
    MPI_Op_free(&op);
    MPI_Type_free(&t);
    free(x);
    free(y);
}

struct padded {
    char before[6000];
    int x;
    char behind[6000];
};

/* Copy whole elements with the gaps between their bounds, as C++ does. */
static void take_larger(void *in, void *out, int *n, MPI_Datatype *type)
{
    const size_t at = offsetof(struct padded, x);
    struct padded *a = (struct padded *)((char *)in - at);
    struct padded *b = (struct padded *)((char *)out - at);

    (void)type;
    for (int i = 0; i < *n; i++) {
        const struct padded larger = a[i].x > b[i].x ? a[i] : b[i];
        a[i] = b[i] = larger;
    }
}

static void between_bounds(void)
{
    static const struct view v = {"integers with bounds around them", MPI_INT, 2, 0};
    struct padded *x = calloc(2, sizeof(*x)), *y = calloc(2, sizeof(*y));
    MPI_Datatype t;
    MPI_Op op;

    MPI_Type_create_resized(MPI_INT, -(MPI_Aint)offsetof(struct padded, x),
                            sizeof(struct padded), &t);
    MPI_Type_commit(&t);
    MPI_Op_create(take_larger, 1, &op);
    for (int i = 0; i < 2; i++)
        x[i].x = i + rank;
    MPI_Allreduce(&x->x, &y->x, 2, t, op, comm);
    check(y[0].x == ranks - 1 && y[1].x == ranks, "allreduce", &v, &v);
    MPI_Op_free(&op);
    MPI_Type_free(&t);
    free(x);
    free(y);
}

/* ---- handles and addresses ------------------------------------------------------- */

/* MPI gives the handle of a datatype that was freed to the next one. */
static void handles(void)
{
    static const struct view plain = {"integers", MPI_INT, INTS, 0};

    for (int i = 0; i < 40; i++) {
        struct view v = {"a datatype of a used handle", MPI_DATATYPE_NULL, 1, 0};
        if (i % 2)
            v.type = reversed();
        else
            MPI_Type_contiguous(INTS, MPI_INT, &v.type);
        MPI_Type_commit(&v.type);
        one_to_all(&v, &plain, i % ranks);
        MPI_Type_free(&v.type);
    }
}

static void bottom(void)
{
    static const struct view v = {"MPI_BOTTOM", MPI_INT, 1, 0};
    int x[2] = {rank == 0 ? 5 : 0, rank == 0 ? 6 : 0}, lengths[2] = {1, 1};
    MPI_Aint places[2];
    MPI_Datatype t;

    MPI_Get_address(&x[1], &places[0]);
    MPI_Get_address(&x[0], &places[1]);
    MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &t);
    MPI_Type_commit(&t);
    MPI_Bcast(MPI_BOTTOM, 1, t, 0, comm);
    check(x[0] == 5 && x[1] == 6, "bcast", &v, &v);
    MPI_Type_free(&t);
}

int main(int argc, char **argv)
{
    int total;

    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    add("integers", MPI_INT, INTS);
    add_permuted();
    add_dense();
    add_apart();
#if MPI_VERSION >= 4
    add_wide();
#endif
    for (int i = 0; i < n_views; i++)
        for (int k = 0; k < 2; k++) {
            const struct view *a = &views[k ? 0 : i], *b = &views[k ? i : 0];
            if (b->sends_only)
                continue;
            one_to_all(a, b, i % ranks);
            to_one(a, b, i % ranks);
            all_to_all(a, b);
            counted(a, b, i % ranks);
            reductions(b);
        }
    handles();
    bottom();
    backwards();
    between_bounds();
    MPI_Allreduce(&wrong, &total, 1, MPI_INT, MPI_SUM, comm);
    if (rank == 0)
        printf("wrong %d\n", total);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return total != 0;
}
