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
    TRIB_U8,
    TRIB_I16,
    TRIB_U16,
    TRIB_U32,
    TRIB_U64,
    TRIB_BOOL,
    TRIB_F8_E4M3,
    TRIB_F8_E5M2,
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
    TRIB_BAND,
    TRIB_BOR,
    TRIB_BXOR,
    TRIB_LAND,
    TRIB_LOR,
    TRIB_LXOR,
    TRIB_MINLOC,
    TRIB_MAXLOC,
    TRIB_OP_COUNT,
} trib_op_t;

typedef enum trib_coll {
    TRIB_ALLREDUCE,
    TRIB_REDUCE,
    TRIB_BROADCAST,
    TRIB_ALLGATHER,
    TRIB_REDUCE_SCATTER,
    TRIB_BARRIER,
    TRIB_GATHER,
    TRIB_SCATTER,
    TRIB_ALLTOALL,
    TRIB_SCAN,
    TRIB_EXSCAN,
    TRIB_COLL_COUNT,
} trib_coll_t;

TRIB_API size_t trib_dtype_size(trib_dtype_t dtype);

TRIB_API const char *trib_dtype_name(trib_dtype_t dtype);
TRIB_API const char *trib_op_name(trib_op_t op);
TRIB_API const char *trib_coll_name(trib_coll_t coll);

TRIB_API int trib_op_takes(trib_op_t op, trib_dtype_t dtype);

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

typedef int (*trib_idle_fn)(void *arg);

typedef int (*trib_allgather_fn)(void *arg, const void *in, void *out, size_t bytes);

typedef enum trib_threads {
    TRIB_THREADS_ONE,
    TRIB_THREADS_MANY,
} trib_threads_t;

typedef struct trib_opts {
    size_t size;
    int rank_plus_1;
    int ranks;
    const char *root;
    const char *config;
    trib_log_fn log;
    void *log_arg;
    trib_idle_fn idle;
    void *idle_arg;
    trib_allgather_fn allgather;
    void *allgather_arg;
    trib_threads_t threads;
    int rewind;
} trib_opts_t;

#define TRIB_OPTS_INIT \
    { \
        sizeof(trib_opts_t), 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
            TRIB_THREADS_ONE, 0 \
    }

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

TRIB_API trib_status_t trib_root_create_at(const char *bind, trib_root_t **root_out);

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
    const size_t *send_counts;
    const size_t *send_offsets;
    const size_t *recv_counts;
    const size_t *recv_offsets;
    double prescale;
    double postscale;
    int weighted;
    int timeout_ms;
} trib_desc_t;

#define TRIB_DESC_INIT \
    { \
        sizeof(trib_desc_t), NULL, NULL, 0, TRIB_F32, TRIB_SUM, 0, NULL, NULL, NULL, \
            0, TRIB_FEED_WHOLE, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, 0, 0, 0, 0 \
    }

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
TRIB_API trib_status_t trib_gather(trib_comm_t *comm, const void *send, void *recv,
                                   size_t count, trib_dtype_t dtype, int root);
TRIB_API trib_status_t trib_scatter(trib_comm_t *comm, const void *send, void *recv,
                                    size_t count, trib_dtype_t dtype, int root);
TRIB_API trib_status_t trib_alltoall(trib_comm_t *comm, const void *send, void *recv,
                                     size_t count, trib_dtype_t dtype);

TRIB_API trib_status_t trib_scan(trib_comm_t *comm, const void *send, void *recv,
                                 size_t count, trib_dtype_t dtype, trib_op_t op);
TRIB_API trib_status_t trib_exscan(trib_comm_t *comm, const void *send, void *recv,
                                   size_t count, trib_dtype_t dtype, trib_op_t op);

TRIB_API trib_status_t trib_allgatherv(trib_comm_t *comm, const void *send, void *recv,
                                       const size_t *counts, const size_t *offsets,
                                       trib_dtype_t dtype);
TRIB_API trib_status_t trib_reduce_scatterv(trib_comm_t *comm, const void *send,
                                            void *recv, const size_t *counts,
                                            const size_t *offsets, trib_dtype_t dtype,
                                            trib_op_t op);
TRIB_API trib_status_t trib_gatherv(trib_comm_t *comm, const void *send, size_t count,
                                    void *recv, const size_t *counts,
                                    const size_t *offsets, trib_dtype_t dtype,
                                    int root);
TRIB_API trib_status_t trib_scatterv(trib_comm_t *comm, const void *send,
                                     const size_t *counts, const size_t *offsets,
                                     void *recv, size_t count, trib_dtype_t dtype,
                                     int root);
TRIB_API trib_status_t trib_alltoallv(trib_comm_t *comm, const void *send,
                                      const size_t *send_counts,
                                      const size_t *send_offsets, void *recv,
                                      const size_t *recv_counts,
                                      const size_t *recv_offsets, trib_dtype_t dtype);

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

TRIB_API trib_status_t trib_plan_set_scale(trib_plan_t *plan, double prescale,
                                           double postscale);

TRIB_API trib_status_t trib_plan_ready(trib_plan_t *plan, size_t first, size_t count);

TRIB_API trib_status_t trib_plan_test(trib_plan_t *plan);

TRIB_API trib_status_t trib_plan_wait(trib_plan_t *plan);

typedef void (*trib_done_fn)(void *arg, trib_status_t status);

TRIB_API trib_status_t trib_plan_notify(trib_plan_t *plan, trib_done_fn fn, void *arg);

TRIB_API trib_status_t trib_plan_fd(trib_plan_t *plan, int *fd_out);

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

TRIB_API trib_status_t trib_plan_residual_get(trib_plan_t *plan, size_t first,
                                              size_t count, float *residual);

TRIB_API trib_status_t trib_plan_residual_set(trib_plan_t *plan, size_t first,
                                              size_t count, const float *residual);

TRIB_API trib_status_t trib_plan_state_save(trib_plan_t *plan, void *state,
                                            size_t bytes, size_t *bytes_out);

TRIB_API trib_status_t trib_plan_state_load(trib_plan_t *plan, const void *state,
                                            size_t bytes);

TRIB_API trib_status_t trib_plan_state_load_from(trib_plan_t *plan,
                                                 const void *const *states,
                                                 const size_t *bytes, size_t n);

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

TRIB_API trib_status_t trib_comm_lost(trib_comm_t *comm, int *ranks, int cap,
                                      int *n_out);

TRIB_API trib_status_t trib_comm_shrink(trib_comm_t *comm, trib_comm_t **smaller_out);

typedef struct trib_listener trib_listener_t;

TRIB_API trib_status_t trib_listener_open(trib_comm_t *comm, const char *bind,
                                          trib_listener_t **listener_out);

TRIB_API const char *trib_listener_text(const trib_listener_t *listener);

TRIB_API int trib_listener_waiting(trib_listener_t *listener);

TRIB_API void trib_listener_close(trib_listener_t *listener);

TRIB_API trib_status_t trib_comm_grow(trib_comm_t *comm, trib_listener_t *listener,
                                      int most, trib_comm_t **bigger_out);

TRIB_API trib_status_t trib_join(const char *text, const trib_opts_t *opts,
                                 trib_comm_t **comm_out);

TRIB_API int trib_comm_members(const trib_comm_t *comm);

TRIB_API trib_status_t trib_comm_abort(trib_comm_t *comm, const char *why);

TRIB_API trib_status_t trib_plan_state_move(trib_plan_t *plan, trib_plan_t *from,
                                            uint64_t steps);

TRIB_API trib_status_t trib_plan_move(trib_comm_t *comm, trib_plan_t *from,
                                      const void *send, void *recv, uint64_t steps,
                                      trib_plan_t **plan_out);

TRIB_API trib_status_t trib_allreduce_named_move(trib_comm_t *comm, trib_comm_t *from,
                                                 const char *name, uint64_t steps);

TRIB_API uint64_t trib_hash(const void *bytes, size_t n, uint64_t before);

TRIB_API trib_status_t trib_comm_same(trib_comm_t *comm, uint64_t hash, int *ranks,
                                      int cap, int *n_out);

TRIB_API trib_status_t trib_comm_sync(trib_comm_t *comm, void *state, size_t bytes,
                                      int *n_out);

#ifdef __cplusplus
}
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trib_group trib_group_t;

#define TRIB_TENSOR_NAME_MAX 255

typedef struct trib_tensor {
    size_t size;
    const char *name;
    const void *send;
    void *recv;
    size_t count;
    trib_dtype_t dtype;
    int dims;
    int priority;
    const char *codec;
    const char *feedback;
} trib_tensor_t;

#define TRIB_TENSOR_INIT \
    {sizeof(trib_tensor_t), NULL, NULL, NULL, 0, TRIB_F32, 0, 0, NULL, NULL}

typedef struct trib_group_rule {
    size_t size;
    const char *name;
    size_t count_min;
    size_t count_max;
    int dims_min;
    int dims_max;
    const char *codec;
    const char *feedback;
} trib_group_rule_t;

#define TRIB_GROUP_RULE_INIT \
    {sizeof(trib_group_rule_t), NULL, 0, 0, 0, 0, NULL, NULL}

typedef void (*trib_group_fn)(void *arg, size_t tensor, trib_status_t status);

typedef struct trib_group_opts {
    size_t size;
    const char *name;
    trib_op_t op;
    double parameter;
    trib_feed_t feed;
    size_t bucket_bytes;
    size_t alone_bytes;
    unsigned cycle_us;
    const trib_group_rule_t *rules;
    size_t n_rules;
    const char *codec;
    const char *feedback;
    const char *algorithm;
    uint64_t seed;
    trib_group_fn done;
    void *arg;
    int timeout_ms;
    int reserved;
} trib_group_opts_t;

#define TRIB_GROUP_OPTS_INIT \
    { \
        sizeof(trib_group_opts_t), NULL, TRIB_SUM, 0, TRIB_FEED_WHOLE, 0, 0, 0, NULL, \
            0, NULL, NULL, NULL, 0, NULL, NULL, 0, 0 \
    }

TRIB_API trib_status_t trib_group_create(trib_comm_t *comm,
                                         const trib_tensor_t *tensors, size_t n,
                                         const trib_group_opts_t *opts,
                                         trib_group_t **group_out);

TRIB_API trib_status_t trib_group_start(trib_group_t *group);

TRIB_API trib_status_t trib_group_start_with(trib_group_t *group,
                                             const void *const *sends,
                                             void *const *recvs);

TRIB_API trib_status_t trib_group_ready(trib_group_t *group, size_t tensor);

TRIB_API trib_status_t trib_group_test(trib_group_t *group);

TRIB_API trib_status_t trib_group_test_tensor(trib_group_t *group, size_t tensor);

TRIB_API trib_status_t trib_group_wait(trib_group_t *group);

TRIB_API trib_status_t trib_group_wait_tensor(trib_group_t *group, size_t tensor);

TRIB_API trib_status_t trib_group_notify(trib_group_t *group, trib_done_fn fn,
                                         void *arg);

TRIB_API trib_status_t trib_group_fd(trib_group_t *group, int *fd_out);

typedef struct trib_group_stats {
    size_t size;
    uint64_t tensors;
    uint64_t buckets;
    uint64_t fused;
    uint64_t coded;
    uint64_t steps;
    uint64_t copied_bytes;
    uint64_t agreements;
    uint64_t overtaken;
} trib_group_stats_t;

TRIB_API trib_status_t trib_group_stats(const trib_group_t *group,
                                        trib_group_stats_t *stats);

TRIB_API trib_status_t trib_group_explain(const trib_group_t *group, char *text,
                                          size_t bytes);

TRIB_API trib_status_t trib_group_state_save(trib_group_t *group, void *state,
                                             size_t bytes, size_t *bytes_out);

TRIB_API trib_status_t trib_group_state_load(trib_group_t *group, const void *state,
                                             size_t bytes);

TRIB_API trib_status_t trib_group_state_move(trib_group_t *group, trib_group_t *from,
                                             uint64_t steps);

TRIB_API trib_status_t trib_group_move(trib_comm_t *comm, trib_group_t *from,
                                       const void *const *sends, void *const *recvs,
                                       uint64_t steps, trib_group_t **group_out);

TRIB_API trib_status_t trib_group_free(trib_group_t *group);

#ifdef __cplusplus
}
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define TRIB_VERSION_MAJOR 0
#define TRIB_VERSION_MINOR 1
#define TRIB_VERSION_PATCH 0

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
    const char *reserved[2];
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

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trib_request trib_request_t;

TRIB_API trib_status_t trib_iallreduce(trib_comm_t *comm, const void *send, void *recv,
                                       size_t count, trib_dtype_t dtype, trib_op_t op,
                                       trib_request_t **request_out);
TRIB_API trib_status_t trib_ireduce(trib_comm_t *comm, const void *send, void *recv,
                                    size_t count, trib_dtype_t dtype, trib_op_t op,
                                    int root, trib_request_t **request_out);
TRIB_API trib_status_t trib_ibroadcast(trib_comm_t *comm, void *buffer, size_t count,
                                       trib_dtype_t dtype, int root,
                                       trib_request_t **request_out);
TRIB_API trib_status_t trib_iallgather(trib_comm_t *comm, const void *send, void *recv,
                                       size_t count, trib_dtype_t dtype,
                                       trib_request_t **request_out);
TRIB_API trib_status_t trib_ireduce_scatter(trib_comm_t *comm, const void *send,
                                            void *recv, size_t count,
                                            trib_dtype_t dtype, trib_op_t op,
                                            trib_request_t **request_out);
TRIB_API trib_status_t trib_ibarrier(trib_comm_t *comm, trib_request_t **request_out);

TRIB_API trib_status_t trib_request_test(trib_request_t *request);

TRIB_API trib_status_t trib_request_wait(trib_request_t *request);

TRIB_API trib_status_t trib_request_free(trib_request_t *request);

#ifdef __cplusplus
}
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define TRIB_SEND_SHORT 4096

TRIB_API trib_status_t trib_plan_send(trib_comm_t *comm, const void *buffer,
                                      size_t count, trib_dtype_t dtype, int to, int tag,
                                      trib_plan_t **plan_out);
TRIB_API trib_status_t trib_plan_recv(trib_comm_t *comm, void *buffer, size_t count,
                                      trib_dtype_t dtype, int from, int tag,
                                      trib_plan_t **plan_out);

TRIB_API trib_status_t trib_send(trib_comm_t *comm, const void *buffer, size_t count,
                                 trib_dtype_t dtype, int to, int tag);
TRIB_API trib_status_t trib_recv(trib_comm_t *comm, void *buffer, size_t count,
                                 trib_dtype_t dtype, int from, int tag);

TRIB_API trib_status_t trib_isend(trib_comm_t *comm, const void *buffer, size_t count,
                                  trib_dtype_t dtype, int to, int tag,
                                  trib_request_t **request_out);
TRIB_API trib_status_t trib_irecv(trib_comm_t *comm, void *buffer, size_t count,
                                  trib_dtype_t dtype, int from, int tag,
                                  trib_request_t **request_out);

#ifdef __cplusplus
}
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trib_neighbors_desc {
    size_t size;
    size_t count;
    trib_dtype_t dtype;
    const int *peers;
    int n_peers;
    int late;
} trib_neighbors_desc_t;

#define TRIB_NEIGHBORS_DESC_INIT \
    { \
        sizeof(trib_neighbors_desc_t), 0, TRIB_F32, NULL, 0, 0 \
    }

typedef struct trib_neighbors {
    size_t size;
    const int *to;
    const double *shares;
    size_t n_to;
    const int *from;
    size_t n_from;
} trib_neighbors_t;

#define TRIB_NEIGHBORS_INIT \
    { \
        sizeof(trib_neighbors_t), NULL, NULL, 0, NULL, 0 \
    }

typedef struct trib_in_flight {
    size_t size;
    uint64_t steps;
    uint64_t given;
    uint64_t added;
    uint64_t unsent;
    uint64_t awaited;
    uint64_t arrived;
    double weight_given;
    double weight_added;
} trib_in_flight_t;

#define TRIB_IN_FLIGHT_INIT \
    { \
        sizeof(trib_in_flight_t), 0, 0, 0, 0, 0, 0, 0, 0 \
    }

TRIB_API trib_status_t trib_plan_neighbors(trib_comm_t *comm,
                                           const trib_neighbors_desc_t *desc,
                                           trib_plan_t **plan_out);

TRIB_API trib_status_t trib_plan_start_neighbors(trib_plan_t *plan,
                                                 const trib_neighbors_t *graph, void *x,
                                                 double *weight);

TRIB_API trib_status_t trib_plan_start_drain(trib_plan_t *plan, void *x,
                                             double *weight);

TRIB_API trib_status_t trib_plan_in_flight(trib_plan_t *plan, trib_in_flight_t *counts);

#ifdef __cplusplus
}
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trib_sparse_desc {
    size_t size;
    size_t length;
    trib_dtype_t dtype;
    trib_op_t op;
    size_t most;
    const char *algorithm;
    const char *name;
} trib_sparse_desc_t;

#define TRIB_SPARSE_DESC_INIT \
    { \
        sizeof(trib_sparse_desc_t), 0, TRIB_F32, TRIB_SUM, 0, NULL, NULL \
    }

TRIB_API trib_status_t trib_plan_sparse(trib_comm_t *comm,
                                        const trib_sparse_desc_t *desc,
                                        trib_plan_t **plan_out);

TRIB_API trib_status_t trib_plan_start_sparse(trib_plan_t *plan,
                                              const uint64_t *indices,
                                              const void *values, size_t count);

TRIB_API trib_status_t trib_plan_sparse_count(trib_plan_t *plan, size_t *count_out);

TRIB_API trib_status_t trib_plan_sparse_pairs(trib_plan_t *plan, uint64_t *indices,
                                              void *values, size_t room);

TRIB_API trib_status_t trib_plan_sparse_dense(trib_plan_t *plan, void *vector);

#ifdef __cplusplus
}
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trib_store trib_store_t;
typedef struct trib_vector trib_vector_t;

TRIB_API trib_status_t trib_store_open(trib_comm_t *comm, trib_store_t **store_out);

typedef struct trib_store_opts {
    size_t size;
    const char *key;
    uint64_t snapshot_pushes;
    double snapshot_s;
} trib_store_opts_t;

#define TRIB_STORE_OPTS_INIT \
    { \
        sizeof(trib_store_opts_t), NULL, 0, 0 \
    }

TRIB_API trib_status_t trib_store_open_with(trib_comm_t *comm,
                                            const trib_store_opts_t *opts,
                                            trib_store_t **store_out);

TRIB_API trib_status_t trib_store_free(trib_store_t *store);

TRIB_API const char *trib_store_error(const trib_store_t *store);

typedef struct trib_vector_desc {
    size_t size;
    const char *name;
    size_t count;
    trib_dtype_t dtype;
    int shards;
    const char *rule;
    const void *initial;
    const char *push_codec;
    const char *pull_codec;
} trib_vector_desc_t;

#define TRIB_VECTOR_DESC_INIT \
    { \
        sizeof(trib_vector_desc_t), NULL, 0, TRIB_F32, 0, NULL, NULL, NULL, NULL \
    }

TRIB_API trib_status_t trib_store_create(trib_store_t *store,
                                         const trib_vector_desc_t *desc,
                                         trib_vector_t **vector_out);

typedef struct trib_push_opts {
    size_t size;
    double rate;
    void *result;
    const char *codec;
    const uint64_t *indices;
    size_t count;
} trib_push_opts_t;

#define TRIB_PUSH_OPTS_INIT \
    { \
        sizeof(trib_push_opts_t), 0, NULL, NULL, NULL, 0 \
    }

TRIB_API trib_status_t trib_store_push(trib_vector_t *vector, const void *data,
                                       const trib_push_opts_t *opts,
                                       uint64_t *version_out);

typedef struct trib_pull_opts {
    size_t size;
    size_t first;
    size_t count;
    uint64_t at_least;
    int timeout_ms;
    const char *codec;
    const uint64_t *indices;
} trib_pull_opts_t;

#define TRIB_PULL_OPTS_INIT \
    { \
        sizeof(trib_pull_opts_t), 0, 0, 0, 0, NULL, NULL \
    }

TRIB_API trib_status_t trib_store_pull(trib_vector_t *vector, void *out,
                                       const trib_pull_opts_t *opts,
                                       uint64_t *version_out);

TRIB_API trib_status_t trib_store_wait(trib_vector_t *vector, uint64_t version,
                                       int timeout_ms, uint64_t *version_out);

TRIB_API trib_status_t trib_store_snapshot(trib_store_t *store, trib_vector_t *vector,
                                           uint64_t *version_out);

#define TRIB_RESTORE_SNAPSHOT (-1)

#define TRIB_RESTORE_LOST (-2)

TRIB_API trib_status_t trib_store_restore(trib_store_t *store, trib_vector_t *vector,
                                          int from, const void *copy,
                                          uint64_t *version_out);

#define TRIB_VERSION_NONE UINT64_MAX

typedef struct trib_vector_state {
    size_t size;
    uint64_t version;
    uint64_t saved;
    uint64_t pushes;
    int lost;
    int reserved;
} trib_vector_state_t;

#define TRIB_VECTOR_STATE_INIT \
    { \
        sizeof(trib_vector_state_t), 0, 0, 0, 0, 0 \
    }

TRIB_API trib_status_t trib_store_state(const trib_vector_t *vector,
                                        trib_vector_state_t *state);

TRIB_API trib_status_t trib_store_residual_get(trib_vector_t *vector, size_t first,
                                               size_t count, float *residual);

TRIB_API trib_status_t trib_store_residual_set(trib_vector_t *vector, size_t first,
                                               size_t count, const float *residual);

#define TRIB_STALE_ANY (-1)

TRIB_API trib_status_t trib_store_set_staleness(trib_store_t *store, int bound);

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
    int reserved;
} trib_topology_opts_t;

#define TRIB_TOPOLOGY_OPTS_INIT \
    { \
        sizeof(trib_topology_opts_t), NULL, NULL, NULL, 0, 0 \
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
