/* SPDX-License-Identifier: BSD-3-Clause */
/* Made of the public headers by scripts/check-abi --freeze. */
#ifndef TESTS_ABI_FROZEN_H
#define TESTS_ABI_FROZEN_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TRIB_API __attribute__((visibility("default")))
#else
#define TRIB_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define TRIB_STATUS_MAP(X) \
    X(OK, 0, NONE, "success") \
    X(INPROGRESS, 1, NONE, "not finished yet") \
    X(ERR_INVALID, -1, OP, "invalid argument") \
    X(ERR_UNSUPPORTED, -2, OP, "not supported") \
    X(ERR_OVERLAP, -3, OP, "buffers overlap") \
    X(ERR_OVERFLOW, -4, OP, "size does not fit") \
    X(ERR_CODEC, -5, OP, "codec text or code words are not valid") \
    X(ERR_BUSY, -6, OP, "the object is in use") \
    X(ERR_NO_RESOURCE, -20, ENDPOINT, "no free slot, try again") \
    X(ERR_RANGE, -21, ENDPOINT, "address outside its region") \
    X(ERR_PEER_LOST, -22, COMM, "a peer is lost") \
    X(ERR_TIMEOUT, -40, COMM, "no progress before the deadline") \
    X(ERR_MISMATCH, -41, COMM, "ranks disagree") \
    X(ERR_ABORTED, -42, COMM, "the communicator has failed") \
    X(ERR_PROTOCOL, -43, COMM, "a received frame is not valid") \
    X(ERR_BOOT, -60, CONTEXT, "ranks could not find each other") \
    X(ERR_CONFIG, -61, CONTEXT, "a setting cannot be honoured") \
    X(ERR_NO_MEMORY, -62, CONTEXT, "out of memory") \
    X(ERR_SYSTEM, -63, CONTEXT, "a system call failed")

typedef enum trib_status {
#define TRIB_STATUS_ENUM(name, value, scope, text) TRIB_##name = value,
    TRIB_STATUS_MAP(TRIB_STATUS_ENUM)
#undef TRIB_STATUS_ENUM
} trib_status_t;

typedef enum trib_scope {
    TRIB_SCOPE_NONE,
    TRIB_SCOPE_OP,
    TRIB_SCOPE_ENDPOINT,
    TRIB_SCOPE_COMM,
    TRIB_SCOPE_CONTEXT,
} trib_scope_t;

TRIB_API const char *trib_status_str(trib_status_t status);

TRIB_API const char *trib_status_name(trib_status_t status);

TRIB_API trib_scope_t trib_status_scope(trib_status_t status);

#ifdef __cplusplus
}
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trib_comm trib_comm_t;
typedef struct trib_plan trib_plan_t;

typedef enum trib_dtype {
    TRIB_F32,
    TRIB_F64,
    TRIB_F16,
    TRIB_BF16,
    TRIB_I8,
    TRIB_I32,
    TRIB_I64,
    TRIB_DTYPE_COUNT,
} trib_dtype_t;

typedef enum trib_op {
    TRIB_SUM,
    TRIB_MEAN,
    TRIB_MIN,
    TRIB_MAX,
    TRIB_PROD,
    TRIB_MEDIAN,
    TRIB_TRIMMED_MEAN,
    TRIB_CLIPPED_MEAN,
    TRIB_OP_COUNT,
} trib_op_t;

typedef enum trib_coll {
    TRIB_ALLREDUCE,
    TRIB_REDUCE,
    TRIB_BROADCAST,
    TRIB_ALLGATHER,
    TRIB_REDUCE_SCATTER,
    TRIB_BARRIER,
    TRIB_COLL_COUNT,
} trib_coll_t;

TRIB_API size_t trib_dtype_size(trib_dtype_t dtype);

TRIB_API const char *trib_dtype_name(trib_dtype_t dtype);
TRIB_API const char *trib_op_name(trib_op_t op);
TRIB_API const char *trib_coll_name(trib_coll_t coll);

TRIB_API trib_status_t trib_dtype_parse(const char *name, trib_dtype_t *dtype_out);
TRIB_API trib_status_t trib_op_parse(const char *name, trib_op_t *op_out);
TRIB_API trib_status_t trib_coll_parse(const char *name, trib_coll_t *coll_out);

#ifdef __cplusplus
}
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum trib_log_level {
    TRIB_LOG_ERROR,
    TRIB_LOG_WARN,
    TRIB_LOG_INFO,
    TRIB_LOG_DEBUG,
} trib_log_level_t;

typedef void (*trib_log_fn)(void *arg, trib_log_level_t level, const char *line);

typedef struct trib_opts {
    size_t size;
    int rank_plus_1;
    int ranks;
    const char *root;
    const char *config;
    trib_log_fn log;
    void *log_arg;
} trib_opts_t;

#define TRIB_OPTS_INIT {sizeof(trib_opts_t), 0, 0, NULL, NULL, NULL, NULL}

TRIB_API trib_status_t trib_init(const trib_opts_t *opts, trib_comm_t **comm_out);

TRIB_API trib_status_t trib_split(trib_comm_t *comm, int color, int key,
                                  trib_comm_t **comm_out);

TRIB_API trib_status_t trib_free_comm(trib_comm_t *comm);

TRIB_API int trib_rank(const trib_comm_t *comm);
TRIB_API int trib_size(const trib_comm_t *comm);

TRIB_API const char *trib_last_error(const trib_comm_t *comm);

TRIB_API trib_status_t trib_alloc(trib_comm_t *comm, size_t bytes, void **ptr_out);
TRIB_API trib_status_t trib_free(trib_comm_t *comm, void *ptr);

TRIB_API trib_status_t trib_register(trib_comm_t *comm, void *ptr, size_t bytes);
TRIB_API trib_status_t trib_deregister(trib_comm_t *comm, void *ptr);

TRIB_API trib_status_t trib_register_dmabuf(trib_comm_t *comm, int fd, size_t offset,
                                            void *ptr, size_t bytes);

TRIB_API trib_status_t trib_progress(trib_comm_t *comm);

typedef struct trib_reach {
    size_t size;
    char transport[16];
    char why[240];
} trib_reach_t;

TRIB_API trib_status_t trib_reach(trib_comm_t *comm, int rank, trib_reach_t *reach);

typedef struct trib_stats {
    size_t size;
    uint64_t operations;
    uint64_t wire_bytes;
    uint64_t payload_bytes;
    uint64_t dense_bytes;
    uint64_t copied_bytes;
    uint64_t messages;
    uint64_t shared_bytes;
    uint64_t slot_bytes;
    uint64_t peers;
    uint64_t wait_ns;
    uint64_t encode_ns;
    uint64_t served;
} trib_stats_t;

TRIB_API trib_status_t trib_stats(const trib_comm_t *comm, trib_stats_t *stats);

typedef struct trib_local trib_local_t;

TRIB_API trib_status_t trib_local_create(int ranks, trib_local_t **local_out);

TRIB_API const char *trib_local_root(const trib_local_t *local);

TRIB_API void trib_local_set_pid(trib_local_t *local, int rank, int pid);

TRIB_API void trib_local_inherit(trib_local_t *local);

TRIB_API void trib_local_destroy(trib_local_t *local);

typedef struct trib_root trib_root_t;

TRIB_API trib_status_t trib_root_create(trib_root_t **root_out);

TRIB_API const char *trib_root_text(const trib_root_t *root);

TRIB_API void trib_root_destroy(trib_root_t *root);

#define TRIB_ROOT_TEXT_MAX 256

#ifdef __cplusplus
}
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum trib_feed {
    TRIB_FEED_WHOLE,
    TRIB_FEED_FORWARD,
    TRIB_FEED_BACKWARD,
} trib_feed_t;

#define TRIB_PLAN_NAME_MAX 63

typedef struct trib_desc {
    size_t size;
    const void *send;
    void *recv;
    size_t count;
    trib_dtype_t dtype;
    trib_op_t op;
    int root;
    const char *codec;
    const char *feedback;
    const char *algorithm;
    size_t chunk;
    trib_feed_t feed;
    const char *quorum;
    const char *name;
    uint64_t seed;
    double parameter;
} trib_desc_t;

#define TRIB_DESC_INIT \
    {sizeof(trib_desc_t), NULL, NULL, 0, TRIB_F32, TRIB_SUM, 0, NULL, NULL, NULL, \
     0, TRIB_FEED_WHOLE, NULL, NULL, 0, 0}

TRIB_API trib_status_t trib_allreduce(trib_comm_t *comm, const void *send, void *recv,
                                      size_t count, trib_dtype_t dtype, trib_op_t op);
TRIB_API trib_status_t trib_reduce(trib_comm_t *comm, const void *send, void *recv,
                                   size_t count, trib_dtype_t dtype, trib_op_t op,
                                   int root);
TRIB_API trib_status_t trib_broadcast(trib_comm_t *comm, void *buffer, size_t count,
                                      trib_dtype_t dtype, int root);
TRIB_API trib_status_t trib_allgather(trib_comm_t *comm, const void *send, void *recv,
                                      size_t count, trib_dtype_t dtype);
TRIB_API trib_status_t trib_reduce_scatter(trib_comm_t *comm, const void *send,
                                           void *recv, size_t count,
                                           trib_dtype_t dtype, trib_op_t op);
TRIB_API trib_status_t trib_barrier(trib_comm_t *comm);

#define TRIB_CODEC_ELEMENTS_MIN 1024

TRIB_API trib_status_t trib_allreduce_named(trib_comm_t *comm, const char *name,
                                            const void *send, void *recv, size_t count,
                                            trib_dtype_t dtype, trib_op_t op);

TRIB_API trib_status_t trib_plan_create(trib_comm_t *comm, trib_coll_t coll,
                                        const trib_desc_t *desc,
                                        trib_plan_t **plan_out);
TRIB_API trib_status_t trib_plan_allreduce(trib_comm_t *comm, const trib_desc_t *desc,
                                           trib_plan_t **plan_out);

TRIB_API trib_status_t trib_plan_start(trib_plan_t *plan);

TRIB_API trib_status_t trib_plan_start_with(trib_plan_t *plan, const void *send,
                                            void *recv);

TRIB_API trib_status_t trib_plan_ready(trib_plan_t *plan, size_t first, size_t count);

TRIB_API trib_status_t trib_plan_test(trib_plan_t *plan);

TRIB_API trib_status_t trib_plan_wait(trib_plan_t *plan);

TRIB_API trib_status_t trib_plan_free(trib_plan_t *plan);

TRIB_API trib_status_t trib_plan_explain(const trib_plan_t *plan, char *text,
                                         size_t bytes);

TRIB_API trib_status_t trib_plan_sent(trib_plan_t *plan, const unsigned char **mask_out,
                                      size_t *sent_out);

TRIB_API trib_status_t trib_plan_absent(trib_plan_t *plan, size_t *elements_out);

typedef struct trib_plan_stats {
    size_t size;
    uint64_t results;
    uint64_t elements;
    uint64_t zeros;
    uint64_t not_finite;
    double norm;
    double mean_norm;
    double largest;
    uint64_t not_finite_in_all;
} trib_plan_stats_t;

TRIB_API trib_status_t trib_plan_stats(trib_plan_t *plan, trib_plan_stats_t *stats);

TRIB_API trib_status_t trib_plan_state_save(trib_plan_t *plan, void *state,
                                            size_t bytes, size_t *bytes_out);

TRIB_API trib_status_t trib_plan_state_load(trib_plan_t *plan, const void *state,
                                            size_t bytes);

#ifdef __cplusplus
}
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum trib_verdict {
    TRIB_VERDICT_OK,
    TRIB_VERDICT_WARN,
    TRIB_VERDICT_FAIL,
} trib_verdict_t;

typedef struct trib_finding {
    trib_verdict_t verdict;
    const char *where;
    const char *topic;
    const char *text;
    const char *cure;
} trib_finding_t;

typedef void (*trib_finding_fn)(void *arg, const trib_finding_t *finding);

typedef struct trib_doctor_opts {
    size_t size;
    const trib_opts_t *join;
    const char *folder;
} trib_doctor_opts_t;

#define TRIB_DOCTOR_OPTS_INIT {sizeof(trib_doctor_opts_t), NULL, NULL}

TRIB_API trib_status_t trib_doctor(const trib_doctor_opts_t *opts, trib_finding_fn fn,
                                   void *arg, trib_verdict_t *worst_out);

#ifdef __cplusplus
}
#endif

#ifdef __cplusplus
extern "C" {
#endif

TRIB_API const char *trib_version(void);

typedef struct trib_item {
    const char *name;
    const char *value;
    const char *detail;
    const char *origin;
    const char *unit;
    const char *fault;
} trib_item_t;

typedef void (*trib_item_fn)(void *arg, const trib_item_t *item);

typedef enum trib_list {
    TRIB_LIST_TRANSPORTS,
    TRIB_LIST_ALGORITHMS,
    TRIB_LIST_CODECS,
    TRIB_LIST_CONFIG,
    TRIB_LIST_TOPOLOGY,
    TRIB_LIST_CPU,
    TRIB_LIST_BOOTS,
    TRIB_LIST_MEMORY,
} trib_list_t;

TRIB_API trib_status_t trib_list_each(trib_list_t list, trib_item_fn fn, void *arg);

TRIB_API trib_status_t trib_codec_check(const char *codec, char *text, size_t bytes);

typedef struct trib_codec_param {
    const char *row;
    const char *key;
    const char *value;
    const char *fallback;
    const char *range;
    const char *meaning;
} trib_codec_param_t;

typedef struct trib_codec_sheet {
    const char *row;
    const char *grammar;
    const char *detail;
    const char *text;
    const char *stages[4];
    int linear;
    int unbiased;
    int sparse;
    int feedback;
    int learns;
    double delta;
    const char *shared;

    double bytes;
    double bytes_most;
    const char *paper;
    const char *example;
    const trib_codec_param_t *params;
    size_t n_params;
    int vote;
    double error;
    double rounding;
    double least;
} trib_codec_sheet_t;

typedef void (*trib_codec_sheet_fn)(void *arg, const trib_codec_sheet_t *sheet);

TRIB_API trib_status_t trib_codec_describe(const char *codec, trib_codec_sheet_fn fn,
                                           void *arg);

TRIB_API trib_status_t trib_feedback_check(const char *feedback, const char *codec,
                                           char *text, size_t bytes);

#ifdef __cplusplus
}
#endif

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trib_topology_opts {
    size_t size;
    const char *xml;
    const char *racks;
    const char *format;
    int dot;
} trib_topology_opts_t;

#define TRIB_TOPOLOGY_OPTS_INIT \
    { \
        sizeof(trib_topology_opts_t), NULL, NULL, NULL, 0 \
    }

typedef void (*trib_line_fn)(void *arg, const char *line);

TRIB_API trib_status_t trib_topology_draw(const trib_topology_opts_t *opts,
                                          trib_line_fn fn, void *arg);

typedef struct trib_schedule_opts {
    size_t size;
    const char *algorithm;
    int ranks;
    size_t bytes;
    int ranks_per_host;
    int leaders;
    int dot;
    const char *service;
    const char *groups;
    const char *xml;
} trib_schedule_opts_t;

#define TRIB_SCHEDULE_OPTS_INIT \
    { \
        sizeof(trib_schedule_opts_t), NULL, 0, 0, 0, 0, 0, NULL, NULL, NULL \
    }

TRIB_API trib_status_t trib_schedule_draw(const trib_schedule_opts_t *opts,
                                          trib_line_fn fn, void *arg);

#ifdef __cplusplus
}
#endif

#endif
