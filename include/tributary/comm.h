/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators: membership, memory that peers can access, errors and statistics.
 *
 * Threads: only one thread at a time may use a communicator; the library's progress
 * thread does not count. Exception: any thread may call trib_plan_test and
 * trib_plan_wait at any time, but only one thread at a time for a given plan. With
 * TRIB_THREADS_MANY any thread may make any call. Communicators are independent of each
 * other.
 *
 * Structs that begin with their size gain new fields at the end, and enums gain values
 * before TRIB_…_COUNT, which is the count at the time of compilation. A program built
 * with an older header passes a smaller size and gets the defaults of the newer fields.
 * The library writes at most `size` bytes of a struct. A size larger than the
 * library's is accepted if all fields unknown to the library are 0.
 */
#ifndef TRIBUTARY_COMM_H
#define TRIBUTARY_COMM_H

#include <tributary/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum trib_log_level {
    TRIB_LOG_ERROR,
    TRIB_LOG_WARN,
    TRIB_LOG_INFO,
    TRIB_LOG_DEBUG,
} trib_log_level_t;

/* Receives one log line without a line feed. Threads of the library call the function
 * too, possibly at the same time as the caller's threads. */
typedef void (*trib_log_fn)(void *arg, trib_log_level_t level, const char *line);

/*
 * Idle callback. A thread that waits in a call on a communicator (also in trib_init)
 * calls it at least every 200 us while the system schedules that thread. Use it to
 * drive other progress, such as MPI's, or to end the wait (Ctrl-C).
 *
 * The callback runs only on the waiting thread; several waiting threads may call it
 * concurrently. The library holds no lock, except the communicator's while
 * trib_plan_create, trib_split or a first collective connects to a peer. The callback
 * must not use the communicator or objects created from it; it may use other
 * communicators.
 * returns  0 to keep waiting. Any other value ends the wait within 50 ms: the call
 *          returns TRIB_ERR_ABORTED, and the communicator has failed on this rank and
 *          on its peers, whose error messages name this rank
 */
typedef int (*trib_idle_fn)(void *arg);

/*
 * All-gather of the program, used as rendezvous: MPI_Allgather, a key-value store,
 * files. Only trib_init calls the function: three times in a row, with the same number
 * of bytes on all ranks, a few thousand. If a rank fails between two exchanges, the
 * next exchange informs the others.
 *
 * The exchanged bytes contain the secret of the job: keep them confidential. The
 * function decides how long to wait for a missing rank.
 * in       [bytes] of this rank
 * out      [ranks * bytes] of all ranks, in rank order
 * returns  0 on success. After any other value trib_init returns TRIB_ERR_BOOT and does
 *          not call the function again
 */
typedef int (*trib_allgather_fn)(void *arg, const void *in, void *out, size_t bytes);

/*
 * Threads that use a communicator.
 *
 * MANY: any thread may create, start, feed, test, wait for and free plans and requests,
 * and make every other call on the communicator, concurrently with other threads; a
 * waiting thread does not block the others. Only one thread at a time may use a given
 * plan, request, group or store, or a given name of trib_allreduce_named.
 * trib_last_error returns the message of the calling thread's last failed call.
 * Call trib_free_comm when no other thread is in a call.
 *
 * The order of operations remains the caller's responsibility: all ranks start the
 * operations of a communicator in the same order, whichever thread starts them. If
 * threads of a rank could overtake each other, start operations under a lock of the
 * program and wait without it. Or give each thread its own communicator (trib_split).
 * With TRIB_SERVICE, all ranks must also create and free plans in the same order; with
 * MANY, the service sums plans and trib_allreduce_named, and the ranks themselves sum
 * trib_allreduce.
 */
typedef enum trib_threads {
    TRIB_THREADS_ONE, /* one at a time: calls take no lock against other threads */
    TRIB_THREADS_MANY,
} trib_threads_t;

/*
 * Options of trib_init. Zero or NULL selects the configured value, from the first of:
 * TRIB_* environment, configuration file, launcher (mpirun, mpiexec, srun), default.
 */
typedef struct trib_opts {
    size_t size; /* sizeof(trib_opts_t) */
    int rank_plus_1; /* 0: from TRIB_RANK, or the launcher */
    int ranks; /* 0: from TRIB_SIZE, or the launcher; 1 if neither is set */
    const char *root; /* NULL: from TRIB_ROOT, or the launcher; "host:port",
                       * trib_root_text() or trib_local_root() */
    const char *config; /* settings "name=value,name=value" that override the rest */
    trib_log_fn log; /* NULL: standard error */
    void *log_arg;
    trib_idle_fn idle; /* NULL: none. trib_split inherits it */
    void *idle_arg;
    trib_allgather_fn allgather; /* NULL: rendezvous at root. Otherwise rank_plus_1 and
                                  * ranks identify this rank; no launcher is queried */
    void *allgather_arg;
    trib_threads_t threads; /* this and rewind: trib_split and trib_comm_shrink inherit
                             * them */
    int rewind; /* non-zero: a plan keeps the changes that its two newest starts made to
                 * the state of codec and feedback, so that trib_plan_state_move can
                 * undo them. Costs twice the memory of that state, and one copy of the
                 * state per start */
} trib_opts_t;

#define TRIB_OPTS_INIT \
    { \
        sizeof(trib_opts_t), 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
            TRIB_THREADS_ONE, 0 \
    }

/**
 * trib_init - join the job and create a communicator of all its ranks.
 *
 * opts     NULL for all defaults
 * owner    the caller frees *comm_out with trib_free_comm, on every rank
 * thread   any; blocks until all ranks have joined or boot_timeout_ms has passed
 * errors   TRIB_ERR_BOOT, TRIB_ERR_CONFIG, TRIB_ERR_MISMATCH, TRIB_ERR_PEER_LOST,
 *          TRIB_ERR_NO_MEMORY, TRIB_ERR_SYSTEM, TRIB_ERR_ABORTED (opts->idle);
 *          *comm_out is then NULL and trib_last_error(NULL) returns the message, in
 *          this thread
 */
TRIB_API trib_status_t trib_init(const trib_opts_t *opts, trib_comm_t **comm_out);

/**
 * trib_split - create a communicator of the ranks that pass the same color.
 *
 * color    negative: this rank joins no communicator and *comm_out becomes NULL
 * key      sort key of the ranks in the new communicator; equal keys keep their order
 * owner    the caller frees *comm_out with trib_free_comm, before or after comm
 * thread   collective over comm: every rank calls it, in the same order as other calls
 * errors   TRIB_ERR_INVALID, TRIB_ERR_NO_MEMORY; otherwise as trib_init
 */
TRIB_API trib_status_t trib_split(trib_comm_t *comm, int color, int key,
                                  trib_comm_t **comm_out);

/**
 * trib_free_comm - disconnect from the other ranks and free the communicator.
 *
 * Blocks until no peer depends on this rank, at most timeout_ms. Also frees memory of
 * trib_alloc. In a forked child the call frees only the child's copy and does not
 * notify the peers; a child may make no other call on its parent's communicator. NULL
 * is allowed.
 * errors   TRIB_ERR_BUSY: a plan of the communicator is not freed; nothing was changed
 */
TRIB_API trib_status_t trib_free_comm(trib_comm_t *comm);

/**
 * trib_try_free_comm - free the communicator without waiting for the other ranks.
 *
 * For finalisers and garbage collectors, which free communicators in a different order
 * on each rank. The first call notifies the peers; call it again, from time to time,
 * until it returns something other than TRIB_INPROGRESS. Operations that were started
 * before complete normally; start no others. trib_free_comm waits for the rest.
 *
 * The first call connects to the peers of a barrier unless an operation has already
 * done so; if this takes too long, call trib_barrier once, early. With TRIB_SERVICE the
 * call waits as trib_free_comm does.
 * errors   TRIB_INPROGRESS: a rank has not called this or trib_free_comm yet, or a
 *          request of this rank is not freed; TRIB_ERR_BUSY: as trib_free_comm. After
 *          TRIB_OK and all other errors, such as TRIB_ERR_PEER_LOST, comm is freed
 */
TRIB_API trib_status_t trib_try_free_comm(trib_comm_t *comm);

/** trib_rank, trib_size - return this rank's number (from 0) and the rank count. */
TRIB_API int trib_rank(const trib_comm_t *comm);
TRIB_API int trib_size(const trib_comm_t *comm);

/**
 * trib_last_error - return the message of the last failed call.
 *
 * The message gives the problem, its place and the remedy.
 * comm     NULL: of this thread's last call without a valid communicator: trib_init,
 *          trib_free_comm, trib_local_create, trib_root_create, trib_root_create_at,
 *          trib_list_each, trib_doctor, trib_topology_draw, trib_schedule_draw
 * owner    the library; valid until the next failing call on comm, or, with
 *          TRIB_THREADS_MANY, until this thread's next failing call on any communicator
 */
TRIB_API const char *trib_last_error(const trib_comm_t *comm);

/**
 * trib_alloc, trib_free - allocate or free memory that peers access without a copy.
 *
 * If one of several transports cannot register the memory, for example because locked
 * memory is limited, data for peers of that transport is copied through slots. A
 * warning then gives the reason and the remedy. The same happens within a host if
 * ulimit -f forbids shared memory of that size.
 *
 * bytes    at least 1; the result is aligned to 4096 bytes and zeroed
 * owner    the caller frees the memory with trib_free; trib_free_comm frees the rest
 * errors   TRIB_ERR_NO_MEMORY; with shm, from 64 MiB on, also if the host has less free
 *          memory. trib_free: TRIB_ERR_INVALID: not from trib_alloc; TRIB_ERR_BUSY: in
 *          use
 */
TRIB_API trib_status_t trib_alloc(trib_comm_t *comm, size_t bytes, void **ptr_out);
TRIB_API trib_status_t trib_free(trib_comm_t *comm, void *ptr);

/**
 * trib_register, trib_deregister - register memory that operations will use repeatedly.
 *
 * The memory must stay valid until trib_deregister. Transports based on writes (tcp,
 * verbs) send chunks of 16 KiB and more directly from this memory and write results
 * directly into it; messages from 128 KiB on, if both ranks have registered memory. tcp
 * does so without registration for buffers of operations of 256 KiB and more, and for
 * such messages. If one of several transports cannot register the memory, its data
 * is copied through slots, as with trib_alloc.
 *
 * Within load/store reach (shm), data is copied through slots as for any other memory.
 * Use trib_alloc, whose memory is registered too, for a path without copies.
 * errors   TRIB_ERR_INVALID, TRIB_ERR_NO_MEMORY; trib_deregister: TRIB_ERR_INVALID: not
 *          registered, TRIB_ERR_BUSY: in use
 */
TRIB_API trib_status_t trib_register(trib_comm_t *comm, void *ptr, size_t bytes);
TRIB_API trib_status_t trib_deregister(trib_comm_t *comm, void *ptr);

/**
 * trib_register_dmabuf - register memory that a device has exported as a dma-buf.
 *
 * fd       file descriptor of the dma-buf; may be closed after the call
 * offset   offset of this part in the dma-buf, in bytes
 * ptr      address at which `bytes` of the dma-buf are mapped into this process. The
 *          CPU computes the sums, so memory that it cannot access, such as the internal
 *          memory of a GPU, is rejected; copy from and to it, or export a mapping of it
 * errors   TRIB_ERR_INVALID: not open, not mapped, or offset and ptr differ within a
 *          page; TRIB_ERR_UNSUPPORTED: verbs, if the device, kernel or library lacks
 *          dma-buf. tcp and shm use the mapping
 * owner    the caller; call trib_deregister(comm, ptr) before munmap
 */
TRIB_API trib_status_t trib_register_dmabuf(trib_comm_t *comm, int fd, size_t offset,
                                            void *ptr, size_t bytes);

/**
 * trib_progress - drive started plans if the configuration sets progress=caller.
 *
 * Never blocks. Allowed, but unnecessary, with a progress thread. With progress=caller,
 * an unfinished plan advances only in calls on its own communicator. While a thread
 * waits on another communicator, call trib_progress from another thread or from the
 * idle callback of that communicator (trib_opts_t.idle). Finished plans need no calls.
 * errors   the error with which the communicator failed
 */
TRIB_API trib_status_t trib_progress(trib_comm_t *comm);

/* The path from this rank to another rank. */
typedef struct trib_reach {
    size_t size;        /* sizeof(trib_reach_t), set by the caller */
    char transport[16]; /* "shm", "tcp", …; "self"; "none" if the rank is unreachable */
    char why[240];      /* reason for this transport or for none; such as "same host" */
} trib_reach_t;

/**
 * trib_reach - report the transport used to reach a rank, and the reason.
 *
 * Connects to the rank if no earlier call has. An unreachable rank is not an error of
 * this call, and the communicator remains usable.
 * reach    size is set by the caller
 * errors   TRIB_ERR_INVALID; the error with which the communicator failed
 */
TRIB_API trib_status_t trib_reach(trib_comm_t *comm, int rank, trib_reach_t *reach);

/* Work and memory of a communicator. Counters only grow. */
typedef struct trib_stats {
    size_t size; /* sizeof(trib_stats_t), set by the caller */
    uint64_t operations; /* finished collectives */
    uint64_t wire_bytes; /* frames and payloads sent to peers, including those that
                          * peers read in place */
    uint64_t payload_bytes; /* payload part of wire_bytes */
    uint64_t dense_bytes; /* size of these payloads without a codec */
    uint64_t copied_bytes; /* copies other than by reductions and codecs: 0 if peers can
                            * access the buffers */
    uint64_t messages; /* frames sent */
    uint64_t shared_bytes; /* memory of this rank that is shared or pinned now: slots
                            * and trib_alloc; mapped memory of a peer counts there */
    uint64_t slot_bytes; /* part of shared_bytes in slots: edges * lanes * window *
                          * slot, see trib-info; between hosts also 1088 bytes per rank;
                          * and the slots of messages */
    uint64_t peers; /* ranks connected so far, because a collective of this rank needed
                     * them */
    uint64_t wait_ns; /* time spent in trib_plan_wait, except for its first polls, about
                       * a microsecond */
    uint64_t encode_ns; /* time in codecs, of all threads; 0 if only the dense path
                         * ran */
    uint64_t served; /* all-reduces summed by services, without those that the ranks
                      * repeated themselves */
    uint64_t input_bytes; /* part of payload_bytes for this rank's own vectors, without
                           * results: the encoded size of the gradients */
    uint64_t input_dense_bytes; /* the same part of dense_bytes */
} trib_stats_t;

/**
 * trib_stats - return the work done by a communicator and the memory it uses.
 *
 * stats    size is set by the caller
 * errors   TRIB_ERR_INVALID
 */
TRIB_API trib_status_t trib_stats(const trib_comm_t *comm, trib_stats_t *stats);

/*
 * Rendezvous for ranks of one host without a launcher. Create one and pass its text to
 * each rank (thread or process) as trib_opts_t.root, with its rank and the number of
 * ranks.
 */
typedef struct trib_local trib_local_t;

/**
 * trib_local_create - create a rendezvous for `ranks` ranks on this host.
 *
 * owner    the caller: trib_local_destroy
 * thread   any
 * errors   trib_last_error(NULL) returns the message: TRIB_ERR_INVALID,
 *          TRIB_ERR_NO_MEMORY, TRIB_ERR_SYSTEM (open files, ulimit -f, memfd_create)
 */
TRIB_API trib_status_t trib_local_create(int ranks, trib_local_t **local_out);
/**
 * trib_local_root - return the text of a rendezvous, for trib_opts_t.root or TRIB_ROOT.
 *
 * owner    the rendezvous; valid until trib_local_destroy
 */
TRIB_API const char *trib_local_root(const trib_local_t *local);
/**
 * trib_local_set_pid - name the process that will become `rank`.
 *
 * The other ranks can then detect its death before trib_init.
 */
TRIB_API void trib_local_set_pid(trib_local_t *local, int rank, int pid);
/**
 * trib_local_inherit - keep the rendezvous open across exec.
 *
 * Call it in a forked child before exec. Otherwise a rank opens the rendezvous through
 * /proc, which user and PID namespaces forbid (containers without root). Safe between
 * fork and exec.
 */
TRIB_API void trib_local_inherit(trib_local_t *local);
/**
 * trib_local_destroy - free a rendezvous when no rank is in trib_init any longer.
 *
 * NULL is allowed.
 */
TRIB_API void trib_local_destroy(trib_local_t *local);

/*
 * Rendezvous for ranks of any hosts without a launcher, if the program can pass a text
 * to all ranks (MPI_Bcast, a file, a key-value store). Rank 0 creates one; all ranks
 * pass its text to trib_init as trib_opts_t.root, with their rank and the number of
 * ranks.
 */
typedef struct trib_root trib_root_t;

/**
 * trib_root_create - create a rendezvous at a free port of this host, for rank 0.
 *
 * The port stays reserved until trib_root_destroy. The text contains the host name and
 * all addresses, "node7,10.0.0.1,10.1.0.1:4711#SECRET"; the other ranks try them in
 * parallel, so name resolution is not required. The part after '#' is a secret that
 * authenticates the ranks to each other; it is present if this host has libsodium. Pass
 * the text over a private channel and keep it confidential.
 *
 * owner    the caller: trib_root_destroy once trib_init has returned on rank 0
 * thread   any; does not block
 * errors   trib_last_error(NULL) returns the message: TRIB_ERR_SYSTEM: no free port;
 *          TRIB_ERR_NO_MEMORY; TRIB_ERR_INVALID: root_out is NULL
 */
TRIB_API trib_status_t trib_root_create(trib_root_t **root_out);
/**
 * trib_root_create_at - create a rendezvous at a chosen address or port range.
 *
 * For hosts with a firewall that passes only some ports, or with several networks, only
 * one of them reachable by all ranks. Several rendezvous in a range get different
 * ports.
 * bind     NULL or "": as trib_root_create. "host" or "host:port": the text contains
 *          only this host. It is a name that the other ranks can resolve, or an address
 *          of this host, and then rank 0 listens only there. ":7000", ":7000-7100",
 *          "host:7000-7100": the first of these ports that is free. Write an IPv6
 *          address in brackets: "[fd77::1]:7000"
 * owner    as trib_root_create
 * thread   any; does not block
 * errors   as trib_root_create; TRIB_ERR_INVALID: bind has none of these forms;
 *          TRIB_ERR_SYSTEM: the ports are in use, or this host does not have the
 *          address
 */
TRIB_API trib_status_t trib_root_create_at(const char *bind, trib_root_t **root_out);
/**
 * trib_root_text - return the text of a rendezvous, for trib_opts_t.root or TRIB_ROOT.
 *
 * The text is shorter than TRIB_ROOT_TEXT_MAX bytes.
 * owner    the rendezvous; valid until trib_root_destroy
 */
TRIB_API const char *trib_root_text(const trib_root_t *root);
/**
 * trib_root_destroy - release the port of a rendezvous and free it.
 *
 * NULL is allowed.
 */
TRIB_API void trib_root_destroy(trib_root_t *root);

/* Buffer size for trib_root_text() with its terminating zero, for broadcasts; also the
 * limit of TRIB_ROOT. */
#define TRIB_ROOT_TEXT_MAX 256

#ifdef __cplusplus
}
#endif

#endif
