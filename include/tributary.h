/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tributary: all-reduce and other collectives for gradients and other vectors.
 *
 *     #include <stdio.h>
 *     #include <tributary.h>
 *
 *     int main(void)
 *     {
 *         trib_comm_t *comm;
 *         if (trib_init(NULL, &comm) != TRIB_OK) {
 *             fprintf(stderr, "%s\n", trib_last_error(NULL));
 *             return 1;
 *         }
 *         float x[64];
 *         for (int i = 0; i < 64; i++)
 *             x[i] = trib_rank(comm);
 *         trib_status_t status = trib_allreduce(comm, NULL, x, 64, TRIB_F32, TRIB_SUM);
 *         if (status != TRIB_OK)
 *             fprintf(stderr, "%s\n", trib_last_error(comm));
 *         else if (trib_rank(comm) == 0)
 *             printf("%d ranks, sum of ranks %g\n", trib_size(comm), (double)x[0]);
 *         return trib_free_comm(comm) != TRIB_OK || status != TRIB_OK;
 *     }
 *
 *     cc sum.c $(pkg-config --cflags --libs tributary) -o sum && trib-run -n 4 -- ./sum
 */
#ifndef TRIBUTARY_H
#define TRIBUTARY_H

#include <tributary/coll.h>
#include <tributary/comm.h>
#include <tributary/doctor.h>
#include <tributary/elastic.h>
#include <tributary/group.h>
#include <tributary/info.h>
#include <tributary/send.h>
#include <tributary/neighbors.h>
#include <tributary/request.h>
#include <tributary/sparse.h>
#include <tributary/status.h>
#include <tributary/store.h>
#include <tributary/topology.h>
#include <tributary/types.h>

#endif
