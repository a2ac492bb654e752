/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions exported by the module. PMPI_X does the work; tools and MPI's Fortran
 * bindings call it. The module is loaded before a tool that the program links. MPI_X
 * therefore calls the tool's MPI_X, if there is one, which in turn calls PMPI_X. A tool
 * that is preloaded, or part of the program, comes before the module. */
#ifndef BINDINGS_MPI_ENTRY_H
#define BINDINGS_MPI_ENTRY_H

#include "bindings/mpi/attached.h"
#include "bindings/mpi/next.h"

#define TMPI_EXPORT __attribute__((visibility("default")))

#define TMPI_ENTRY(name, parameters, arguments, call) \
    TMPI_ENTRY_OF(MPI_##name, PMPI_##name, name, parameters, arguments, call)
#define TMPI_ENTRY_OF(mpi_name, pmpi_name, row, parameters, arguments, call) \
    static inline int do_##row parameters \
    { \
        return call; \
    } \
    TMPI_EXPORT int pmpi_name parameters \
    { \
        return do_##row arguments; \
    } \
    TMPI_EXPORT int mpi_name parameters \
    { \
        return tmpi_tool.row ? tmpi_tool.row arguments : do_##row arguments; \
    }

/* A function that the program's MPI may lack. A program that resolves it dynamically
 * finds the module's. */
#define TMPI_LATER(name, parameters, arguments, call) \
    TMPI_ENTRY(name, parameters, arguments, \
               tmpi_next.name ? call : tmpi_lacks("MPI_" #name))

/* A collective on `comm`. Calls that the module does not intercept go straight to MPI.
 * `arguments` is the parenthesised argument list. */
#define TMPI_INTERCEPT(kind, name, parameters, arguments, call) \
    static inline int intercept_##name parameters \
    { \
        const int error = tmpi_attached_error(comm); \
        return error != MPI_SUCCESS                 ? error \
               : tmpi_attached_is_inter(comm, kind) ? tmpi_next.name arguments \
                                                    : call; \
    } \
    TMPI_ENTRY(name, parameters, arguments, \
               tmpi_intercepts(kind) ? intercept_##name arguments \
                                     : tmpi_next.name arguments)

/* TMPI_WIDE: the variant with MPI_Count counts, if MPI has it. TMPI_BY_MPI: leave a
 * call to MPI, through that variant if `wide` is true. */
#if MPI_VERSION >= 4
#define TMPI_BY_MPI(name, wide, ints, counts) \
    ((wide) ? tmpi_next.name##_c counts : tmpi_next.name ints)
#define TMPI_WIDE(kind, name, parameters, arguments, call) \
    TMPI_INTERCEPT(kind, name##_c, parameters, arguments, call)
#else
#define TMPI_BY_MPI(name, wide, ints, counts) (tmpi_next.name ints)
#define TMPI_WIDE(kind, name, parameters, arguments, call)
#endif

#endif
