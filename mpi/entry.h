/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions that the module exports. PMPI_X does the work: tools, and MPI in Fortran,
 * call it. MPI_X calls that of a tool which the program links, if there is one,
 * as the module is loaded before it; the tool then calls PMPI_X. A tool that is
 * preloaded, or part of the program, is called before the module.
 */
#ifndef MPI_ENTRY_H
#define MPI_ENTRY_H

#include "mpi/attached.h"
#include "mpi/next.h"

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

/* One that the MPI of the program may lack: a program that asks the linker for it finds
 * this module's. */
#define TMPI_LATER(name, parameters, arguments, call) \
    TMPI_ENTRY(name, parameters, arguments, \
               tmpi_next.name ? call : tmpi_lacks("MPI_" #name))

/* A collective on `comm`: where the module does not take it, MPI has it at once.
 * `arguments` is the function's argument list with its parentheses. */
#define TMPI_TAKEN(kind, name, parameters, arguments, call) \
    static inline int take_##name parameters \
    { \
        const int error = tmpi_attached_error(comm); \
        return error == MPI_SUCCESS ? call : error; \
    } \
    TMPI_ENTRY(name, parameters, arguments, \
               tmpi_takes(kind) ? take_##name arguments : tmpi_next.name arguments)

/* The same with counts of MPI_Count, where the MPI has it; and what hands such a call
 * to MPI, by the function with counts of int unless they are `wide`. */
#if MPI_VERSION >= 4
#define TMPI_BY_MPI(name, wide, ints, counts) \
    ((wide) ? tmpi_next.name##_c counts : tmpi_next.name ints)
#define TMPI_WIDE(kind, name, parameters, arguments, call) \
    TMPI_TAKEN(kind, name##_c, parameters, arguments, call)
#else
#define TMPI_BY_MPI(name, wide, ints, counts) (tmpi_next.name ints)
#define TMPI_WIDE(kind, name, parameters, arguments, call)
#endif

#endif
