/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans of all-reduces with TRIB_MPI_CODEC, one for each length: the newest few.
 */
#ifndef MPI_CODEC_PLANS_H
#define MPI_CODEC_PLANS_H

#include "mpi/attached.h"
#include "mpi/element.h"

enum { TMPI_CODEC_BYTES = 64 << 10 }; /* more than so much is compressed */

/** tmpi_codec_takes - is this sum one for the codec? Equal on all ranks. */
static inline bool tmpi_codec_takes(const struct tmpi_element *e, size_t count)
{
    return tmpi_module.settings.codec && e->op == TRIB_SUM && e->dtype == TRIB_F32 &&
           count > TMPI_CODEC_BYTES / sizeof(float);
}

/** tmpi_codec_sum - trib_allreduce by the codec. */
trib_status_t tmpi_codec_sum(struct tmpi_attached *a, const void *send, void *recv,
                             size_t count);

/** tmpi_plans_free - before the communicator. */
void tmpi_plans_free(struct tmpi_attached *a);

#endif
