/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Accessors, collectives and failures of a replica.
 */
#include "train/replicator/replica.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int trib_replica_id(const trib_replica_t *replica)
{
    return replica->id;
}

int trib_replica_count(const trib_replica_t *replica)
{
    return replica->of->shape.replicas;
}

int trib_replica_in_sync(const trib_replica_t *replica)
{
    return replica->of->shape.in_sync;
}

int trib_replica_device(const trib_replica_t *replica)
{
    return replica->device;
}

int trib_replica_devices(const trib_replica_t *replica)
{
    return replica->of->kind.devices;
}

uint64_t trib_replica_step(const trib_replica_t *replica)
{
    return replica->step;
}

uint64_t trib_replica_steps(const trib_replica_t *replica)
{
    return replica->of->shape.steps;
}

size_t trib_replica_batch(const trib_replica_t *replica)
{
    return replica->of->shape.batch;
}

void *trib_replica_arg(const trib_replica_t *replica)
{
    return replica->of->opts.arg;
}

void *trib_replica_state(const trib_replica_t *replica)
{
    return replica->state;
}

trib_comm_t *trib_replica_comm(const trib_replica_t *replica)
{
    return replica->sync;
}

trib_comm_t *trib_replica_model(const trib_replica_t *replica)
{
    return replica->model;
}

/* ---- failures -------------------------------------------------------------------- */

int trib_replica_fail(trib_replica_t *replica, const char *format, ...)
{
    char text[400];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    replica->own |= replica->err.status == TRIB_OK;
    trib_fail(&replica->err, TRIB_ERR_ABORTED, "%s", text);
    return -1;
}

trib_status_t trib_fault_comm(struct trib_replica *r, const trib_comm_t *comm,
                              trib_status_t status)
{
    return status < 0 ? trib_fail(&r->err, status, "%s", trib_last_error(comm))
                      : status;
}

trib_status_t trib_fault_split(struct trib_replica *r, trib_comm_t *of, int color,
                               int key, trib_comm_t **out)
{
    const trib_status_t st = trib_fault_comm(r, of, trib_split(of, color, key, out));

    if (st == TRIB_OK)
        r->made[r->n_made++] = *out;
    return st;
}

/* A failed communicator is the cause; the return code of the program's function is a
 * consequence. */
static trib_status_t check_comms(struct trib_replica *r)
{
    trib_comm_t *const comms[] = {r->sync, r->model, r->pipeline, r->all, r->world};

    for (size_t i = 0; i < sizeof(comms) / sizeof(comms[0]); i++) {
        const trib_status_t st = comms[i] ? trib_progress(comms[i]) : TRIB_OK;

        if (st < 0)
            return trib_fault_comm(r, comms[i], st);
    }
    return TRIB_OK;
}

trib_status_t trib_fault_callback(struct trib_replica *r, const char *function,
                                  int code)
{
    if (r->err.status != TRIB_OK)
        return r->err.status;
    if (check_comms(r) != TRIB_OK)
        return r->err.status;
    for (int i = 0; i < r->n_trainers; i++) {
        const char *text = trib_trainer_error(r->trainers[i].trainer);

        if (r->trainers[i].trainer && strcmp(text, trib_status_str(TRIB_OK)) != 0)
            trib_replica_fail(r, "%s", text);
    }
    trib_replica_fail(r, "its function \"%s\" returned %d", function, code);
    return r->err.status;
}

/* ---- collectives ----------------------------------------------------------------- */

trib_status_t trib_replica_all_reduce(trib_replica_t *replica, const void *send,
                                      void *recv, size_t count, trib_dtype_t dtype,
                                      trib_op_t op)
{
    return trib_fault_comm(replica, replica->sync,
                           trib_allreduce(replica->sync, send, recv, count, dtype, op));
}

trib_status_t trib_replica_all_gather(trib_replica_t *replica, const void *send,
                                      void *recv, size_t count, trib_dtype_t dtype)
{
    return trib_fault_comm(replica, replica->sync,
                           trib_allgather(replica->sync, send, recv, count, dtype));
}

trib_status_t trib_replica_broadcast(trib_replica_t *replica, void *value, size_t count,
                                     trib_dtype_t dtype, int source)
{
    return trib_fault_comm(replica, replica->sync,
                           trib_broadcast(replica->sync, value, count, dtype, source));
}
