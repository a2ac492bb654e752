/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/mpi/type_layout.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "bindings/mpi/element.h"
#include "bindings/mpi/next.h"
#include "bindings/mpi/typemap.h"

static struct {
    pthread_mutex_t lock; /* protects the attributes */
    atomic_uint freed; /* number of freed datatypes: validates `newest` */
    int keyval;
    MPI_Comm self_comm; /* this process only; returns errors */
} layouts = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Cache: the datatype of this thread's newest call. */
static _Thread_local struct {
    bool is_known;
    MPI_Datatype type;
    unsigned freed;
    struct tmpi_layout layout;
} newest;

/* Called by MPI when the datatype is freed. */
static int on_delete(MPI_Datatype type, int keyval, void *value, void *extra)
{
    (void)type, (void)keyval, (void)extra;
    free(value);
    atomic_fetch_add(&layouts.freed, 1);
    return MPI_SUCCESS;
}

void tmpi_layouts_begin(void)
{
    tmpi_next.Type_create_keyval(MPI_TYPE_NULL_COPY_FN, on_delete, &layouts.keyval,
                                 NULL);
    tmpi_next.Comm_dup(MPI_COMM_SELF, &layouts.self_comm);
    tmpi_next.Comm_set_errhandler(layouts.self_comm, MPI_ERRORS_RETURN);
}

void tmpi_layouts_end(void)
{
    tmpi_next.Type_free_keyval(&layouts.keyval);
    tmpi_next.Comm_free(&layouts.self_comm);
}

MPI_Comm tmpi_self_comm(void)
{
    return layouts.self_comm;
}

/* MPI has no such query, but it refuses to pack 0 elements of an uncommitted datatype.
 * Other functions would report an invalid handle to the handler of MPI_COMM_WORLD. */
static bool is_committed(MPI_Datatype type)
{
    char from[8] = {0}, to[8];
    int at = 0;

    return tmpi_next.Pack(from, 0, type, to, sizeof(to), &at, layouts.self_comm) ==
           MPI_SUCCESS;
}

static bool find(MPI_Datatype type, struct tmpi_layout *out)
{
    struct tmpi_run run;

    if (tmpi_next.Type_size_x(type, &out->size) != MPI_SUCCESS ||
        tmpi_next.Type_get_extent_x(type, &out->lower, &out->extent) != MPI_SUCCESS ||
        tmpi_next.Type_get_true_extent_x(type, &out->true_lower, &out->true_extent) !=
            MPI_SUCCESS)
        return false;
    out->dense = out->size > 0 && out->lower == 0 && out->extent == out->size &&
                 tmpi_typemap_run(type, &run) && run.start == 0 &&
                 run.bytes == out->size;
    return true;
}

static void remember(MPI_Datatype type, unsigned freed,
                     const struct tmpi_layout *layout)
{
    newest.is_known = true;
    newest.type = type;
    newest.freed = freed;
    newest.layout = *layout;
}

/* Keep the layout in an attribute of the datatype; return true on success. */
static bool keep(MPI_Datatype type, const struct tmpi_layout *layout)
{
    struct tmpi_layout *kept = malloc(sizeof(*kept));

    if (!kept)
        return false;
    *kept = *layout;
    if (tmpi_next.Type_set_attr(type, layouts.keyval, kept) == MPI_SUCCESS)
        return true;
    free(kept);
    return false;
}

/* Find the layout of a user-defined datatype, whose handle MPI may reuse after it is
 * freed. */
static bool find_once(MPI_Datatype type, struct tmpi_layout *out)
{
    const unsigned freed = atomic_load_explicit(&layouts.freed, memory_order_relaxed);
    struct tmpi_layout *kept = NULL;
    int is_kept = 0;

    pthread_mutex_lock(&layouts.lock);
    if (tmpi_next.Type_get_attr(type, layouts.keyval, &kept, &is_kept) != MPI_SUCCESS)
        is_kept = 0;
    if (is_kept)
        *out = *kept;
    const bool well = is_kept || find(type, out);
    if (well && (is_kept || keep(type, out)))
        remember(type, freed, out);
    pthread_mutex_unlock(&layouts.lock);
    return well;
}

bool tmpi_layout_of(MPI_Datatype type, struct tmpi_layout *out)
{
    const unsigned freed = atomic_load_explicit(&layouts.freed, memory_order_relaxed);
    MPI_Count bytes;

    if (newest.is_known && newest.type == type && newest.freed == freed) {
        *out = newest.layout;
        return true;
    }
    if (tmpi_element_bytes(type, &bytes)) {
        *out = (struct tmpi_layout){bytes, 0, bytes, 0, bytes, true};
        remember(type, freed, out);
        return true;
    }
    if (type == MPI_DATATYPE_NULL || !is_committed(type))
        return false;
    if (!tmpi_type_is_named(type))
        return find_once(type, out);
    const bool well = find(type, out);
    if (well)
        remember(type, freed, out);
    return well;
}
