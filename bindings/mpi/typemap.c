/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/mpi/typemap.h"

#include <stdlib.h>

#include "bindings/mpi/next.h"

enum {
    DEPTH_MOST = 64, /* nested constructors */
    TYPES_MOST = 4096, /* constructors of a type in total */
};

/* The arguments of a type's constructor. */
struct made {
    int combiner;
    bool is_wide; /* its numbers were MPI_Count, not int */
    MPI_Count n_numbers, n_types;
    MPI_Count *numbers; /* counts, then displacements, for int and for MPI_Count */
    MPI_Datatype *types;
};

/* Progress of the traversal. */
struct walk {
    int depth, types;
};

struct sizes {
    MPI_Count ints, addresses, counts, types;
};

static bool sizes_of(MPI_Datatype type, struct sizes *n, int *combiner_out)
{
#if MPI_VERSION >= 4
    if (tmpi_next.Type_get_envelope_c)
        return tmpi_next.Type_get_envelope_c(type, &n->ints, &n->addresses, &n->counts,
                                             &n->types, combiner_out) == MPI_SUCCESS;
#endif
    int ints, addresses, types;

    if (tmpi_next.Type_get_envelope(type, &ints, &addresses, &types, combiner_out) !=
        MPI_SUCCESS)
        return false;
    *n = (struct sizes){ints, addresses, 0, types};
    return true;
}

static int contents_of(MPI_Datatype type, const struct sizes *n, int *ints,
                       MPI_Aint *addresses, MPI_Count *counts, MPI_Datatype *types)
{
#if MPI_VERSION >= 4
    if (tmpi_next.Type_get_contents_c)
        return tmpi_next.Type_get_contents_c(type, n->ints, n->addresses, n->counts,
                                             n->types, ints, addresses, counts, types);
#endif
    (void)counts;
    return tmpi_next.Type_get_contents(type, (int)n->ints, (int)n->addresses,
                                       (int)n->types, ints, addresses, types);
}

static bool is_named(int combiner)
{
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
           combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

bool tmpi_type_is_named(MPI_Datatype type)
{
    struct sizes n;
    int combiner;

    return sizes_of(type, &n, &combiner) && is_named(combiner);
}

static void close_made(struct made *m)
{
    for (MPI_Count i = 0; i < m->n_types; i++)
        if (!tmpi_type_is_named(m->types[i]))
            tmpi_next.Type_free(&m->types[i]);
    free(m->numbers);
    free(m->types);
}

/* Read the contents: ints, addresses and counts, in this order, as one list of
 * numbers. */
static bool read_contents(struct made *m, MPI_Datatype type, const struct sizes *n)
{
    int *ints = malloc(((size_t)n->ints + 1) * sizeof(*ints));
    MPI_Aint *addresses = malloc(((size_t)n->addresses + 1) * sizeof(*addresses));

    m->n_numbers = n->ints + n->addresses + n->counts;
    m->numbers = malloc(((size_t)m->n_numbers + 1) * sizeof(*m->numbers));
    m->types = malloc(((size_t)n->types + 1) * sizeof(*m->types));
    const bool well =
        ints && addresses && m->numbers && m->types &&
        contents_of(type, n, ints, addresses, m->numbers + n->ints + n->addresses,
                    m->types) == MPI_SUCCESS;
    for (MPI_Count i = 0; well && i < n->ints; i++)
        m->numbers[i] = ints[i];
    for (MPI_Count i = 0; well && i < n->addresses; i++)
        m->numbers[n->ints + i] = addresses[i];
    m->n_types = well ? n->types : 0;
    free(ints);
    free(addresses);
    return well;
}

static bool extent_of(MPI_Datatype type, MPI_Count *out)
{
    MPI_Count lower;
    return tmpi_next.Type_get_extent_x(type, &lower, out) == MPI_SUCCESS;
}

/* Append `count` copies of a run, `extent` bytes apart, starting at `place`. Return
 * false if the result is not contiguous. */
static bool append(struct tmpi_run *whole, const struct tmpi_run *part,
                   MPI_Count extent, MPI_Count count, MPI_Count place)
{
    if (count <= 0 || part->bytes == 0)
        return true;
    if (count > 1 && extent != part->bytes)
        return false;
    if (whole->bytes == 0)
        whole->start = place + part->start;
    else if (place + part->start != whole->start + whole->bytes)
        return false;
    whole->bytes += count * part->bytes;
    return true;
}

static bool run_of(MPI_Datatype type, struct walk *w, struct tmpi_run *out);

static bool named_run(MPI_Datatype type, struct tmpi_run *out)
{
    MPI_Count extent;

    return tmpi_next.Type_size_x(type, &out->bytes) == MPI_SUCCESS &&
           tmpi_next.Type_get_true_extent_x(type, &out->start, &extent) ==
               MPI_SUCCESS &&
           (out->bytes == 0 || out->bytes == extent);
}

static bool struct_run(const struct made *m, struct walk *w, struct tmpi_run *out)
{
    const MPI_Count n = m->numbers[0];
    MPI_Count extent;

    for (MPI_Count i = 0; i < n; i++) {
        struct tmpi_run part = {0};
        if (!run_of(m->types[i], w, &part) || !extent_of(m->types[i], &extent) ||
            !append(out, &part, extent, m->numbers[1 + i], m->numbers[1 + n + i]))
            return false;
    }
    return true;
}

/* Accept a subarray that is the whole array, whose memory is the same in either order.
 * The number of dimensions precedes the sizes; in the wide form the order does, too. */
static bool subarray_run(const struct made *m, const struct tmpi_run *part,
                         MPI_Count extent, struct tmpi_run *out)
{
    const MPI_Count n = m->numbers[0];
    const MPI_Count *sizes = m->numbers + (m->is_wide ? 2 : 1);
    MPI_Count count = 1;

    for (MPI_Count i = 0; i < n; i++) {
        if (sizes[i] != sizes[n + i])
            return false;
        count *= sizes[i];
    }
    return append(out, part, extent, count, 0);
}

/* Constructors with one base type. */
static bool repeated_run(const struct made *m, const struct tmpi_run *part,
                         MPI_Count extent, struct tmpi_run *out)
{
    const MPI_Count *v = m->numbers, n = v[0];
    const bool in_bytes = m->combiner == MPI_COMBINER_HVECTOR ||
                          m->combiner == MPI_COMBINER_HINDEXED ||
                          m->combiner == MPI_COMBINER_HINDEXED_BLOCK;
    const MPI_Count unit = in_bytes ? 1 : extent;
    struct tmpi_run block = {0};
    bool well = true;

    switch (m->combiner) {
    case MPI_COMBINER_CONTIGUOUS:
        return append(out, part, extent, n, 0);
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
        return append(&block, part, extent, v[1], 0) &&
               append(out, &block, v[2] * unit, n, 0);
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
        for (MPI_Count i = 0; i < n && well; i++)
            well = append(out, part, extent, v[1 + i], v[1 + n + i] * unit);
        return well;
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK:
        for (MPI_Count i = 0; i < n && well; i++)
            well = append(out, part, extent, v[1], v[2 + i] * unit);
        return well;
    case MPI_COMBINER_SUBARRAY:
        return subarray_run(m, part, extent, out);
    default:
        return false;
    }
}

static bool made_run(const struct made *m, struct walk *w, struct tmpi_run *out)
{
    struct tmpi_run part = {0};
    MPI_Count extent;

    if (m->combiner == MPI_COMBINER_STRUCT)
        return struct_run(m, w, out);
    if (m->n_types != 1 || !run_of(m->types[0], w, &part))
        return false;
    if (m->combiner == MPI_COMBINER_DUP || m->combiner == MPI_COMBINER_RESIZED) {
        *out = part;
        return true;
    }
    return m->n_numbers > 0 && extent_of(m->types[0], &extent) &&
           repeated_run(m, &part, extent, out);
}

static bool run_of(MPI_Datatype type, struct walk *w, struct tmpi_run *out)
{
    struct made m = {0};
    struct sizes n;

    *out = (struct tmpi_run){0};
    if (++w->types > TYPES_MOST || w->depth >= DEPTH_MOST ||
        !sizes_of(type, &n, &m.combiner))
        return false;
    if (is_named(m.combiner))
        return named_run(type, out);
    m.is_wide = n.counts > 0;
    w->depth++;
    const bool well = read_contents(&m, type, &n) && made_run(&m, w, out);
    w->depth--;
    close_made(&m);
    return well;
}

bool tmpi_typemap_run(MPI_Datatype type, struct tmpi_run *out)
{
    struct walk w = {0};
    return run_of(type, &w, out);
}
