/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pipelines: one rank makes the samples of several ranks and scatters them.
 */
#include <stdlib.h>
#include <string.h>

#include "train/replicator/replica.h"

/* Choose the ranks of this rank's pipeline; NULL: this rank makes its own samples. */
static trib_status_t join(struct trib_replica *r)
{
    const struct trib_kind *kind = &r->of->kind;

    if (r->of->shape.ranks == 1)
        return TRIB_OK;
    if (kind->input == TRIB_INPUT_SINGLE) {
        r->pipeline = r->world;
        return TRIB_OK;
    }
    if (kind->input == TRIB_INPUT_WORKER && kind->threads > 1)
        return trib_fault_split(r, r->world, r->of->process, r->rank, &r->pipeline);
    r->pipeline = kind->devices > 1 ? r->model : NULL;
    return TRIB_OK;
}

/* The samples of replica q follow those of replica q - 1. All devices of a replica get
 * the same samples. */
static trib_status_t lay_out(struct trib_replica *r)
{
    const size_t n = (size_t)trib_size(r->pipeline);
    const size_t devices = (size_t)r->of->kind.devices;
    const size_t bytes = r->of->shape.batch * r->of->opts.sample_bytes;

    r->pipeline_samples = malloc(n / devices * bytes);
    r->pipeline_counts = calloc(2 * n, sizeof(size_t));
    if (!r->pipeline_samples || !r->pipeline_counts)
        return trib_fail(&r->err, TRIB_ERR_NO_MEMORY, "no memory for %zu samples",
                         n / devices * r->of->shape.batch);
    for (size_t q = 0; q < n; q++) {
        r->pipeline_counts[q] = bytes;
        r->pipeline_counts[n + q] = q / devices * bytes;
    }
    return TRIB_OK;
}

trib_status_t trib_pipeline_open(struct trib_replica *r)
{
    trib_status_t st = join(r);

    if (st != TRIB_OK)
        return st;
    r->samples = calloc(r->of->shape.batch, r->of->opts.sample_bytes);
    if (!r->samples)
        return trib_fail(&r->err, TRIB_ERR_NO_MEMORY, "no memory for %zu samples",
                         r->of->shape.batch);
    return r->pipeline && trib_rank(r->pipeline) == 0 ? lay_out(r) : TRIB_OK;
}

void trib_pipeline_close(struct trib_replica *r)
{
    free(r->samples);
    free(r->pipeline_samples);
    free(r->pipeline_counts);
}

/* Have the program make the samples of `replicas` replicas, starting at this one. */
static trib_status_t make(struct trib_replica *r, size_t replicas, void *samples)
{
    const struct trib_kind_shape *shape = &r->of->shape;
    const uint64_t batch = r->step * (uint64_t)shape->groups + (uint64_t)r->group;
    const uint64_t place = (uint64_t)(r->id - r->group * shape->in_sync);
    const trib_input_t input = {
        .first = batch * r->of->opts.batch + place * shape->batch,
        .count = replicas * shape->batch,
        .sample_bytes = r->of->opts.sample_bytes,
        .pipeline = r->id / (int)replicas,
        .pipelines = shape->replicas / (int)replicas,
    };
    const int code = r->of->opts.input(r, &input, samples);

    return code == 0 ? TRIB_OK : trib_fault_callback(r, "input", code);
}

trib_status_t trib_pipeline_fetch(struct trib_replica *r)
{
    const size_t bytes = r->of->shape.batch * r->of->opts.sample_bytes;

    if (!r->pipeline)
        return make(r, 1, r->samples);
    const size_t n = (size_t)trib_size(r->pipeline);

    if (r->pipeline_samples) {
        const trib_status_t st =
            make(r, n / (size_t)r->of->kind.devices, r->pipeline_samples);

        if (st != TRIB_OK)
            return st;
    }
    return trib_fault_comm(
        r, r->pipeline,
        trib_scatterv(r->pipeline, r->pipeline_samples, r->pipeline_counts,
                      r->pipeline_counts ? r->pipeline_counts + n : NULL, r->samples,
                      bytes, TRIB_U8, 0));
}
