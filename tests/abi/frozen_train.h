/* SPDX-License-Identifier: BSD-3-Clause */
/* Made of the public headers by scripts/check-abi --freeze. */
#ifndef TESTS_ABI_FROZEN_TRAIN_H
#define TESTS_ABI_FROZEN_TRAIN_H

#include "tests/abi/frozen.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trib_trainer trib_trainer_t;

typedef struct trib_part {
    size_t size;
    const char *name;
    size_t count;
    int dims;
    const char *codec;
    const char *feedback;
} trib_part_t;

#define TRIB_PART_INIT \
    { \
        sizeof(trib_part_t), NULL, 0, 0, NULL, NULL \
    }

typedef void (*trib_update_fn)(void *arg, float *params, const float *gradient,
                               size_t first, size_t count, double rate);

typedef struct trib_trainer_desc {
    size_t size;
    float *params;
    size_t count;
    const trib_part_t *parts;
    size_t n_parts;
    const char *strategy;
    const char *optimizer;
    trib_update_fn update;
    void *update_arg;
    const char *rate;
    const char *codec;
    const char *feedback;
    trib_feed_t feed;
    uint64_t seed;
} trib_trainer_desc_t;

#define TRIB_TRAINER_DESC_INIT \
    { \
        sizeof(trib_trainer_desc_t), NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL, \
            NULL, NULL, TRIB_FEED_WHOLE, 0 \
    }

typedef struct trib_step {
    size_t size;
    uint64_t number;
    const float *params;
    float *gradient;
    double rate;
} trib_step_t;

#define TRIB_STEP_INIT \
    { \
        sizeof(trib_step_t), 0, NULL, NULL, 0 \
    }

TRIB_API trib_status_t trib_trainer_create(trib_comm_t *comm,
                                           const trib_trainer_desc_t *desc,
                                           trib_trainer_t **trainer_out);

TRIB_API trib_status_t trib_trainer_begin(trib_trainer_t *trainer, trib_step_t *step);

TRIB_API trib_status_t trib_trainer_ready(trib_trainer_t *trainer, size_t first,
                                          size_t count);

TRIB_API trib_status_t trib_trainer_end(trib_trainer_t *trainer, double loss);

TRIB_API trib_status_t trib_trainer_settle(trib_trainer_t *trainer, float *params_out);

TRIB_API trib_status_t trib_trainer_save(trib_trainer_t *trainer, void *state,
                                         size_t bytes, size_t *bytes_out);

TRIB_API trib_status_t trib_trainer_load(trib_trainer_t *trainer, const void *state,
                                         size_t bytes);

TRIB_API trib_status_t trib_trainer_move(trib_trainer_t *trainer, trib_comm_t *comm);

typedef struct trib_trainer_stats {
    size_t size;
    uint64_t steps;
    uint64_t rounds;
    uint64_t dense_bytes;
    uint64_t wire_bytes;
    uint64_t compute_ns;
    uint64_t wait_ns;
    uint64_t update_ns;
    uint64_t stale;
    uint64_t moves;
    double weight;
    double weight_under_way;
    double lost_weight;
} trib_trainer_stats_t;

TRIB_API trib_status_t trib_trainer_stats(trib_trainer_t *trainer,
                                          trib_trainer_stats_t *stats);

TRIB_API trib_status_t trib_trainer_explain(const trib_trainer_t *trainer, char *text,
                                            size_t bytes);

typedef struct trib_estimate {
    size_t size;

    const char *algorithm;
    const char *codec;
    int ranks;
    size_t count;
    int width;
    double compute;
    double update;
    double start;
    double latency;
    double rate;
    double ratio;
    int agreements;
    double busy;
    double load;
    double crowd;
    double dense;

    double wire;
    double step;
    double gain;
    double cap;
} trib_estimate_t;

#define TRIB_ESTIMATE_INIT \
    { \
        sizeof(trib_estimate_t), NULL, NULL, 1, 0, 1, 0, 0, 0, 0, 1.25e8, 1, 0, 0, 0, \
            1, 0, 0, 0, 0, 0 \
    }

TRIB_API trib_status_t trib_estimate_step(trib_estimate_t *estimate);

TRIB_API trib_status_t trib_trainer_estimate(trib_trainer_t *trainer, size_t row,
                                             trib_estimate_t *estimate,
                                             int *chosen_out);

TRIB_API const char *trib_trainer_error(const trib_trainer_t *trainer);

TRIB_API trib_status_t trib_trainer_free(trib_trainer_t *trainer);

#ifdef __cplusplus
}
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trib_coded trib_coded_t;

typedef struct trib_coded_desc {
    size_t size;
    const char *code;
    const float *partition;
    size_t rows, columns;
    int partitions;
    uint64_t seed;
} trib_coded_desc_t;

#define TRIB_CODED_DESC_INIT \
    { \
        sizeof(trib_coded_desc_t), NULL, NULL, 0, 0, 0, 1 \
    }

TRIB_API trib_status_t trib_coded_create(trib_comm_t *comm,
                                         const trib_coded_desc_t *desc,
                                         trib_coded_t **coded_out);

TRIB_API trib_status_t trib_coded_multiply(trib_coded_t *coded, const float *x,
                                           float *z);

typedef void (*trib_coded_fn)(void *arg, int number, const float *partition,
                              const float *in, float *out);

TRIB_API trib_status_t trib_coded_gradient(trib_coded_t *coded, trib_coded_fn fn,
                                           void *arg, const float *in, size_t n_in,
                                           float *out, size_t n_out);

TRIB_API trib_status_t trib_coded_settle(trib_coded_t *coded);

TRIB_API trib_status_t trib_coded_move(trib_comm_t *comm, trib_coded_t **coded);

typedef struct trib_coded_stats {
    size_t size;
    uint64_t fetched_bytes;
    uint64_t repaired_bytes;
    uint64_t stored_bytes;
    uint64_t products;
    uint64_t waited;
    uint64_t decoded;
    uint64_t answered;
    uint64_t late;
    uint64_t lost;
} trib_coded_stats_t;

#define TRIB_CODED_STATS_INIT \
    { \
        sizeof(trib_coded_stats_t), 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

TRIB_API trib_status_t trib_coded_stats(trib_coded_t *coded, trib_coded_stats_t *stats);

TRIB_API trib_status_t trib_coded_explain(const trib_coded_t *coded, char *text,
                                          size_t bytes);

TRIB_API const char *trib_coded_error(const trib_coded_t *coded);

TRIB_API trib_status_t trib_coded_free(trib_coded_t *coded);

typedef struct trib_coded_step {
    size_t size;
    size_t step;
    const float *weights;
    const float *gradient;
    double loss;
} trib_coded_step_t;

typedef void (*trib_coded_step_fn)(void *arg, const trib_coded_step_t *step);

typedef void (*trib_coded_work_fn)(void *arg, size_t step, double work);

typedef struct trib_coded_fit_desc {
    size_t size;
    const char *loss;
    const char *code;
    const float *features;
    const float *labels;
    size_t rows, columns;
    int partitions;
    uint64_t seed;
    size_t steps;
    double rate;
    double decay;
    size_t meet;
    trib_listener_t *listener;
    trib_coded_step_fn step;
    void *step_arg;
    trib_coded_work_fn work;
} trib_coded_fit_desc_t;

#define TRIB_CODED_FIT_DESC_INIT \
    { \
        sizeof(trib_coded_fit_desc_t), NULL, NULL, NULL, NULL, 0, 0, 0, 1, 0, 0.1, 0, \
            0, NULL, NULL, NULL, NULL \
    }

TRIB_API trib_status_t trib_coded_fit(trib_comm_t **comm,
                                      const trib_coded_fit_desc_t *desc, float *weights,
                                      trib_coded_stats_t *stats);

#ifdef __cplusplus
}
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trib_replica trib_replica_t;

typedef struct trib_input {
    uint64_t first;
    size_t count;
    size_t sample_bytes;
    int pipeline, pipelines;
} trib_input_t;

typedef int (*trib_input_fn)(trib_replica_t *replica, const trib_input_t *input,
                             void *samples);

typedef int (*trib_step_fn)(trib_replica_t *replica, void *samples);

typedef int (*trib_replica_fn)(trib_replica_t *replica);

typedef int (*trib_gradient_fn)(trib_replica_t *replica, const float *params,
                                const void *samples, size_t count, float *gradient,
                                double *loss_out);

typedef int (*trib_map_fn)(trib_replica_t *replica, size_t item, void *out);

typedef struct trib_replicator_opts {
    size_t size;
    const char *kind;
    size_t batch;
    size_t sample_bytes;
    uint64_t steps;
    size_t state_bytes;
    trib_input_fn input;
    trib_step_fn step;
    trib_replica_fn start;
    trib_replica_fn finish;
    void *arg;
    trib_comm_t *comm;
} trib_replicator_opts_t;

#define TRIB_REPLICATOR_OPTS_INIT \
    { \
        sizeof(trib_replicator_opts_t), NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL, \
            NULL, NULL \
    }

TRIB_API trib_status_t trib_replicator_run(const trib_replicator_opts_t *opts);

TRIB_API const char *trib_replicator_error(void);

TRIB_API int trib_replica_id(const trib_replica_t *replica);

TRIB_API int trib_replica_count(const trib_replica_t *replica);

TRIB_API int trib_replica_in_sync(const trib_replica_t *replica);

TRIB_API int trib_replica_device(const trib_replica_t *replica);

TRIB_API int trib_replica_devices(const trib_replica_t *replica);

TRIB_API uint64_t trib_replica_step(const trib_replica_t *replica);

TRIB_API uint64_t trib_replica_steps(const trib_replica_t *replica);

TRIB_API size_t trib_replica_batch(const trib_replica_t *replica);

TRIB_API void *trib_replica_arg(const trib_replica_t *replica);

TRIB_API void *trib_replica_state(const trib_replica_t *replica);

TRIB_API int trib_replica_fail(trib_replica_t *replica, const char *format, ...);

TRIB_API trib_comm_t *trib_replica_comm(const trib_replica_t *replica);

TRIB_API trib_comm_t *trib_replica_model(const trib_replica_t *replica);

TRIB_API trib_status_t trib_replica_all_reduce(trib_replica_t *replica,
                                               const void *send, void *recv,
                                               size_t count, trib_dtype_t dtype,
                                               trib_op_t op);

TRIB_API trib_status_t trib_replica_all_gather(trib_replica_t *replica,
                                               const void *send, void *recv,
                                               size_t count, trib_dtype_t dtype);

TRIB_API trib_status_t trib_replica_broadcast(trib_replica_t *replica, void *value,
                                              size_t count, trib_dtype_t dtype,
                                              int source);

TRIB_API trib_status_t trib_replica_map_gather(trib_replica_t *replica, trib_map_fn map,
                                               size_t items, void *result, size_t count,
                                               trib_dtype_t dtype);

TRIB_API trib_status_t trib_replica_map_reduce(trib_replica_t *replica, trib_map_fn map,
                                               size_t items, void *result, size_t count,
                                               trib_dtype_t dtype, trib_op_t op);

TRIB_API trib_status_t trib_replica_trainer(trib_replica_t *replica,
                                            const trib_trainer_desc_t *desc,
                                            trib_trainer_t **trainer_out);

TRIB_API trib_status_t trib_replica_train(trib_replica_t *replica,
                                          trib_trainer_t *trainer,
                                          trib_gradient_fn gradient, double *loss_out);

TRIB_API const float *trib_replica_params(const trib_replica_t *replica,
                                          const trib_trainer_t *trainer);

#ifdef __cplusplus
}
#endif

#endif
