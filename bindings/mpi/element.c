/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/mpi/element.h"

#include <stdint.h>

#include "bindings/mpi/next.h"
#include "bindings/mpi/type_layout.h"

/* The form of a predefined datatype. */
enum form {
    NUMBERS,
    COMPLEX, /* sum only: reduced as twice as many numbers */
    BYTES, /* bitwise operators only */
    LETTERS, /* no operator */
    PAIRS, /* value and integer of equal size: minloc and maxloc only */
};

struct type_row {
    MPI_Datatype type;
    enum form form;
    trib_dtype_t dtype;
};

struct op_row {
    MPI_Op op;
    trib_op_t is;
    bool bits, pairs;
};

enum { TYPES_MOST = 96, OPS = 12 };

static struct {
    struct type_row types[TYPES_MOST];
    size_t n_types;
    struct op_row ops[OPS];
} table;

static void add(MPI_Datatype type, enum form form, trib_dtype_t dtype)
{
    if (type != MPI_DATATYPE_NULL && table.n_types < TYPES_MOST)
        table.types[table.n_types++] = (struct type_row){type, form, dtype};
}

static trib_dtype_t of_bytes(MPI_Count bytes, const trib_dtype_t of[4], bool *found)
{
    *found = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    return of[bytes == 8 ? 3 : bytes == 4 ? 2 : bytes == 2];
}

/* Add a type whose width depends on the compiler. */
static void add_sized(MPI_Datatype type, enum form form, const trib_dtype_t of[4])
{
    MPI_Count bytes;
    bool found;

    if (type == MPI_DATATYPE_NULL || tmpi_next.Type_size_x(type, &bytes) != MPI_SUCCESS)
        return;
    const trib_dtype_t dtype =
        of_bytes(form == COMPLEX || form == PAIRS ? bytes / 2 : bytes, of, &found);
    if (found)
        add(type, form, dtype);
}

static const trib_dtype_t signed_of[4] = {TRIB_I8, TRIB_I16, TRIB_I32, TRIB_I64};
static const trib_dtype_t unsigned_of[4] = {TRIB_U8, TRIB_U16, TRIB_U32, TRIB_U64};
static const trib_dtype_t float_of[4] = {TRIB_DTYPE_COUNT, TRIB_DTYPE_COUNT, TRIB_F32,
                                         TRIB_F64};

/* Ordered by frequency of use, because the search is linear. */
static void add_c(void)
{
    add(MPI_DOUBLE, NUMBERS, TRIB_F64);
    add(MPI_INT, NUMBERS, TRIB_I32);
    add(MPI_FLOAT, NUMBERS, TRIB_F32);
    add_sized(MPI_LONG, NUMBERS, signed_of);
    add_sized(MPI_LONG_LONG, NUMBERS, signed_of);
    add_sized(MPI_UNSIGNED, NUMBERS, unsigned_of);
    add_sized(MPI_UNSIGNED_LONG, NUMBERS, unsigned_of);
    add_sized(MPI_UNSIGNED_LONG_LONG, NUMBERS, unsigned_of);
    add(MPI_BYTE, BYTES, TRIB_U8);
    add(MPI_CHAR, LETTERS, TRIB_I8);
    add(MPI_SIGNED_CHAR, NUMBERS, TRIB_I8);
    add(MPI_UNSIGNED_CHAR, NUMBERS, TRIB_U8);
    add_sized(MPI_SHORT, NUMBERS, signed_of);
    add_sized(MPI_UNSIGNED_SHORT, NUMBERS, unsigned_of);
    add(MPI_INT8_T, NUMBERS, TRIB_I8);
    add(MPI_INT16_T, NUMBERS, TRIB_I16);
    add(MPI_INT32_T, NUMBERS, TRIB_I32);
    add(MPI_INT64_T, NUMBERS, TRIB_I64);
    add(MPI_UINT8_T, NUMBERS, TRIB_U8);
    add(MPI_UINT16_T, NUMBERS, TRIB_U16);
    add(MPI_UINT32_T, NUMBERS, TRIB_U32);
    add(MPI_UINT64_T, NUMBERS, TRIB_U64);
    add_sized(MPI_AINT, NUMBERS, signed_of);
    add_sized(MPI_COUNT, NUMBERS, signed_of);
    add_sized(MPI_OFFSET, NUMBERS, signed_of);
    add(MPI_C_FLOAT_COMPLEX, COMPLEX, TRIB_F32);
    add(MPI_C_DOUBLE_COMPLEX, COMPLEX, TRIB_F64);
    add(MPI_2INT, PAIRS, TRIB_I32);
    add(MPI_FLOAT_INT, PAIRS, TRIB_F32);
}

static void add_fortran(void)
{
    add_sized(MPI_DOUBLE_PRECISION, NUMBERS, float_of);
    add_sized(MPI_INTEGER, NUMBERS, signed_of);
    add_sized(MPI_REAL, NUMBERS, float_of);
    add_sized(MPI_DOUBLE_COMPLEX, COMPLEX, float_of);
    add_sized(MPI_COMPLEX, COMPLEX, float_of);
    add_sized(MPI_REAL4, NUMBERS, float_of);
    add_sized(MPI_REAL8, NUMBERS, float_of);
    add_sized(MPI_INTEGER1, NUMBERS, signed_of);
    add_sized(MPI_INTEGER2, NUMBERS, signed_of);
    add_sized(MPI_INTEGER4, NUMBERS, signed_of);
    add_sized(MPI_INTEGER8, NUMBERS, signed_of);
    add_sized(MPI_COMPLEX8, COMPLEX, float_of);
    add_sized(MPI_COMPLEX16, COMPLEX, float_of);
    add_sized(MPI_2INTEGER, PAIRS, signed_of);
    add(MPI_CHARACTER, LETTERS, TRIB_I8);
}

void tmpi_elements_begin(void)
{
    const struct op_row ops[OPS] = {
        {MPI_SUM, TRIB_SUM, false, false},      {MPI_MAX, TRIB_MAX, false, false},
        {MPI_MIN, TRIB_MIN, false, false},      {MPI_PROD, TRIB_PROD, false, false},
        {MPI_LAND, TRIB_LAND, false, false},    {MPI_LOR, TRIB_LOR, false, false},
        {MPI_LXOR, TRIB_LXOR, false, false},    {MPI_BAND, TRIB_BAND, true, false},
        {MPI_BOR, TRIB_BOR, true, false},       {MPI_BXOR, TRIB_BXOR, true, false},
        {MPI_MINLOC, TRIB_MINLOC, false, true}, {MPI_MAXLOC, TRIB_MAXLOC, false, true},
    };

    table.n_types = 0;
    for (size_t i = 0; i < OPS; i++)
        table.ops[i] = ops[i];
    add_c();
    add_fortran();
}

static const struct type_row *type_row(MPI_Datatype type)
{
    for (size_t i = 0; i < table.n_types; i++)
        if (table.types[i].type == type)
            return &table.types[i];
    return NULL;
}

static const struct op_row *op_row(MPI_Op op)
{
    for (size_t i = 0; i < OPS; i++)
        if (table.ops[i].op == op)
            return &table.ops[i];
    return NULL;
}

/* Return true if the library supports this operator on this form. */
static bool takes(const struct type_row *t, const struct op_row *o)
{
    switch (t->form) {
    case NUMBERS:
        return !o->pairs && trib_op_takes(o->is, t->dtype);
    case COMPLEX:
        return o->is == TRIB_SUM;
    case BYTES:
        return o->bits;
    case LETTERS:
        break;
    case PAIRS:
        return o->pairs;
    }
    return false;
}

/* Check with an all-reduce of 0 elements whether MPI accepts the operator and the type.
 * MPI_Reduce_local would report an error to the handler of MPI_COMM_WORLD. */
static bool mpi_accepts(MPI_Datatype type, MPI_Op op)
{
    char from, to;

    return tmpi_next.Allreduce(&from, &to, 0, type, op, tmpi_self_comm()) ==
           MPI_SUCCESS;
}

static enum tmpi_able find(MPI_Datatype type, MPI_Op op, struct tmpi_element *out)
{
    const struct type_row *t = type_row(type);
    const struct op_row *o = op_row(op);

    if (type == MPI_DATATYPE_NULL || op == MPI_OP_NULL || op == MPI_REPLACE ||
        op == MPI_NO_OP)
        return TMPI_UNABLE;
    if (!t || !o)
        return mpi_accepts(type, op) ? TMPI_GENERIC : TMPI_UNABLE;
    if (!takes(t, o)) /* the rest is invalid in MPI, except complex products */
        return t->form == COMPLEX && o->is == TRIB_PROD ? TMPI_GENERIC : TMPI_UNABLE;
    out->dtype = t->dtype;
    out->op = o->is;
    out->times = t->form == COMPLEX || t->form == PAIRS ? 2 : 1;
    return TMPI_ABLE;
}

/* Cache the newest call. Only predefined handles are cached: other handles may be freed
 * and reused. */
enum tmpi_able tmpi_element_of(MPI_Datatype type, MPI_Op op, struct tmpi_element *out)
{
    static _Thread_local struct {
        bool is_known;
        MPI_Datatype type;
        MPI_Op op;
        struct tmpi_element element;
    } newest;

    if (newest.is_known && newest.type == type && newest.op == op) {
        *out = newest.element;
        return TMPI_ABLE;
    }
    const enum tmpi_able able = find(type, op, out);
    if (able == TMPI_ABLE) {
        newest.is_known = true;
        newest.type = type;
        newest.op = op;
        newest.element = *out;
    }
    return able;
}

bool tmpi_element_bytes(MPI_Datatype type, MPI_Count *out)
{
    const struct type_row *t = type_row(type);

    if (t)
        *out = (MPI_Count)trib_dtype_size(t->dtype) *
               (t->form == COMPLEX || t->form == PAIRS ? 2 : 1);
    return t;
}
