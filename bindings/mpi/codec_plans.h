/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans of all-reduces with TRIB_MPI_CODEC, one per length; the most recently used are
 * kept. */
#ifndef BINDINGS_MPI_CODEC_PLANS_H
#define BINDINGS_MPI_CODEC_PLANS_H

#include "bindings/mpi/attached.h"
#include "bindings/mpi/element.h"

enum { TMPI_CODEC_BYTES = 64 << 10 }; /* longer vectors are compressed */

/** tmpi_codec_applies - return true if the codec applies; equal on all ranks. */
static inline bool tmpi_codec_applies(const struct tmpi_element *e, size_t count)
{
    return tmpi_module.settings.codec && e->op == TRIB_SUM && e->dtype == TRIB_F32 &&
           count > TMPI_CODEC_BYTES / sizeof(float);
}

/** tmpi_codec_sum - trib_allreduce with the codec. */
trib_status_t tmpi_codec_sum(struct tmpi_attached *a, const void *send, void *recv,
                             size_t count);

/** tmpi_plans_free - free the plans, before the communicator is freed. */
void tmpi_plans_free(struct tmpi_attached *a);

#endif
