/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators: who takes part, memory that peers can reach, errors.
 *
 * Threads: a communicator may be used by one thread at a time; its own progress
 * thread does not count. But trib_plan_test and trib_plan_wait may be called by any
 * thread at any time, those of one plan by one thread at a time. With TRIB_THREADS_MANY
 * all calls may. Two communicators know nothing of each other.
 *
 * Structs that begin with their size grow at their end, and enums before their last
 * name, TRIB_…_COUNT, whose number is that of the header. A program that was built with
 * the header of an older release gives a smaller size, and has the defaults of what
 * came later; the library fills no more of a struct than the size says. A larger size
 * than the library's is taken where all that the library does not know is 0.
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

/* Receives a finished line without a line feed. The library's threads call it too,
 * perhaps at the same time as the caller's. */
typedef void (*trib_log_fn)(void *arg, trib_log_level_t level, const char *line);

/*
 * The library calls this function in a thread that waits in a call of a communicator,
 * trib_init among them: at least every 200 us, as long as the system gives the thread a
 * core. So a program goes on with what needs it meanwhile (the progress of MPI), or
 * ends the wait (Ctrl-C).
 *
 * It runs on the thread that waits, never on another one; several threads that wait
 * call it side by side. No lock of the library is held, except that of the communicator
 * while trib_plan_create, trib_split or a first collective connects to a peer. It must
 * not call the communicator, nor what was made of it, and may call others.
 * returns  0: go on. All else ends the wait, within 50 ms: the call gives
 *          TRIB_ERR_ABORTED, the communicator has failed, and so it has on the peers,
 *          whose sentence names this rank
 */
typedef int (*trib_idle_fn)(void *arg);

/*
 * An exchange of the program's by which the ranks meet: MPI_Allgather, a key-value
 * store, files. trib_init alone calls it, three times and one after the other, on all
 * ranks with the same number of bytes, a few thousand. Where one rank cannot go on, the
 * others learn of it in the next exchange.
 *
 * It carries the secret of the job: strangers must not read it. How long it waits for a
 * rank that does not come is its own affair.
 * in       [bytes] of this rank
 * out      [ranks * bytes] of all, by rank
 * returns  0: well. All else: trib_init gives TRIB_ERR_BOOT, and calls it no more
 */
typedef int (*trib_allgather_fn)(void *arg, const void *in, void *out, size_t bytes);

/*
 * The threads that use a communicator.
 *
 * MANY: any thread may make, start, feed, test, wait for and free plans and requests,
 * and call all else of the communicator, while others do; a thread that waits keeps no
 * other one out. A plan, request, group or store is for one thread at a time, and
 * so are the calls of one name (trib_allreduce_named). trib_last_error is the sentence
 * of the last call that failed in the calling thread. trib_free_comm comes when no
 * other thread is in a call.
 *
 * The order of operations stays the caller's matter: all ranks start, and call,
 * operations of one communicator in the same order, whatever thread does it. Where
 * threads of a rank could overtake each other, they start under a lock of the program
 * and wait without it, or each has a communicator of its own (trib_split). With
 * TRIB_SERVICE they make and free plans in the same order, too; with MANY the service
 * sums plans and trib_allreduce_named, and the ranks themselves trib_allreduce.
 */
typedef enum trib_threads {
    TRIB_THREADS_ONE, /* at a time: no call takes a lock for others */
    TRIB_THREADS_MANY,
} trib_threads_t;

/*
 * Options of trib_init. Zero or NULL means: as the configuration says
 * (TRIB_* environment, then its file, then mpirun, mpiexec or srun, then the default).
 */
typedef struct trib_opts {
    size_t size; /* sizeof(trib_opts_t) */
    int rank_plus_1; /* 0: from TRIB_RANK, or the launcher */
    int ranks; /* 0: from TRIB_SIZE, or the launcher; 1 where nobody says */
    const char *root; /* NULL: from TRIB_ROOT, or the launcher; "host:port",
                       * trib_root_text() or trib_local_root() */
    const char *config; /* settings "name=value,name=value" that override the rest */
    trib_log_fn log; /* NULL: standard error */
    void *log_arg;
    trib_idle_fn idle; /* NULL: nothing is called. trib_split hands it on */
    void *idle_arg;
    trib_allgather_fn allgather; /* NULL: the ranks meet at root. Else rank_plus_1 and
                                  * ranks say who this is, and no launcher is asked */
    void *allgather_arg;
    trib_threads_t threads; /* trib_split and trib_comm_shrink hand it on, as rewind */
    int rewind; /* not 0: a plan keeps what its two newest starts have changed of the
                 * state of its codec and feedback, so that trib_plan_state_move can go
                 * back. Costs twice the memory of that state, and a copy of it in each
                 * start */
} trib_opts_t;

#define TRIB_OPTS_INIT \
    { \
        sizeof(trib_opts_t), 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
            TRIB_THREADS_ONE, 0 \
    }

/**
 * trib_init - join the other ranks and make a communicator of them all.
 *
 * opts     NULL for all defaults
 * owner    the caller frees *comm_out with trib_free_comm, on every rank
 * thread   any; blocks until all ranks have joined or boot_timeout_ms has passed
 * errors   TRIB_ERR_BOOT, TRIB_ERR_CONFIG, TRIB_ERR_MISMATCH, TRIB_ERR_PEER_LOST,
 *          TRIB_ERR_NO_MEMORY, TRIB_ERR_SYSTEM, TRIB_ERR_ABORTED (opts->idle);
 *          *comm_out is then NULL and trib_last_error(NULL) is the sentence, of this
 *          thread
 */
TRIB_API trib_status_t trib_init(const trib_opts_t *opts, trib_comm_t **comm_out);

/**
 * trib_split - make a communicator of the ranks that give the same color.
 *
 * color    negative: take part in none, *comm_out becomes NULL
 * key      orders the ranks of the new communicator; equal keys keep their order
 * owner    the caller frees *comm_out with trib_free_comm, before or after comm
 * thread   collective over comm: every rank calls it, in the same order as other calls
 * errors   TRIB_ERR_INVALID, TRIB_ERR_NO_MEMORY; as trib_init otherwise
 */
TRIB_API trib_status_t trib_split(trib_comm_t *comm, int color, int key,
                                  trib_comm_t **comm_out);

/**
 * trib_free_comm - leave the other ranks, and free the communicator.
 *
 * Waits until the peers need this rank no more, at most timeout_ms. Memory of
 * trib_alloc is freed with it. In a forked child it frees the child's copy, and nobody
 * hears of it; that is all that a child may do with its parent's communicator. NULL is
 * allowed.
 * errors   TRIB_ERR_BUSY, and nothing happened: a plan of the communicator is not freed
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
 * It connects to the peers of a barrier first if no operation has; call trib_barrier
 * once, early, where even that is too long. With TRIB_SERVICE it waits as
 * trib_free_comm does.
 * errors   TRIB_INPROGRESS: a rank has not called this or trib_free_comm yet, or a
 *          request of this rank is not freed; TRIB_ERR_BUSY: as trib_free_comm. After
 *          TRIB_OK and all other errors, such as TRIB_ERR_PEER_LOST, comm is freed
 */
TRIB_API trib_status_t trib_try_free_comm(trib_comm_t *comm);

/** trib_rank, trib_size - the number of this rank, from 0 on; how many there are. */
TRIB_API int trib_rank(const trib_comm_t *comm);
TRIB_API int trib_size(const trib_comm_t *comm);

/**
 * trib_last_error - the sentence of the last failed call: what was wrong, where, the
 * cure.
 *
 * comm     NULL: of the last call of this thread that has no communicator to ask, or
 *          may have none any more: trib_init, trib_free_comm, trib_local_create,
 *          trib_root_create, trib_root_create_at,
 *          trib_list_each, trib_doctor, trib_topology_draw, trib_schedule_draw
 * owner    the library; valid until the next failing call on comm, with
 *          TRIB_THREADS_MANY of this thread on any communicator
 */
TRIB_API const char *trib_last_error(const trib_comm_t *comm);

/**
 * trib_alloc, trib_free - memory that the peers reach without a copy.
 *
 * Where one of several transports cannot register it, for want of locked memory say, it
 * goes through slots to the peers of that one, and a warning says why and what to do.
 * So it does within a host where ulimit -f bars shared memory of that size.
 *
 * bytes    at least 1; the result is aligned to 4096 bytes and zero
 * owner    free it with trib_free, at the latest trib_free_comm does
 * errors   TRIB_ERR_NO_MEMORY; shm from 64 MiB on also where this host has less free
 *          now. trib_free: TRIB_ERR_INVALID: not of trib_alloc; TRIB_ERR_BUSY: in use
 */
TRIB_API trib_status_t trib_alloc(trib_comm_t *comm, size_t bytes, void **ptr_out);
TRIB_API trib_status_t trib_free(trib_comm_t *comm, void *ptr);

/**
 * trib_register, trib_deregister - tell the library of memory that will be used often.
 *
 * It must stay valid until trib_deregister. Peers that are reached by writes (tcp,
 * verbs) get chunks of 16 KiB and more straight out of it, and write results straight
 * into it. tcp does so by itself with the buffers of operations of 256 KiB and more.
 * Memory that one of several transports cannot register goes through slots, as with
 * trib_alloc.
 *
 * Within load/store reach (shm) it goes through slots, as any other memory does: for a
 * path without copies there take trib_alloc, which is registered, too.
 * errors   TRIB_ERR_INVALID, TRIB_ERR_NO_MEMORY; trib_deregister: TRIB_ERR_INVALID: not
 *          registered, TRIB_ERR_BUSY: in use
 */
TRIB_API trib_status_t trib_register(trib_comm_t *comm, void *ptr, size_t bytes);
TRIB_API trib_status_t trib_deregister(trib_comm_t *comm, void *ptr);

/**
 * trib_register_dmabuf - trib_register for memory that a device has exported.
 *
 * fd       of the dma-buf; may be closed afterwards
 * offset   of this part in the dma-buf, in bytes
 * ptr      where this part is mapped into this process, `bytes` of it: the processor
 *          makes the sums, so what it cannot reach, such as the inner memory of a GPU,
 *          is refused; copy from and to it, or export a mapping of it
 * errors   TRIB_ERR_INVALID: not open, not mapped, offset and ptr differ within a page;
 *          TRIB_ERR_UNSUPPORTED: verbs on a device, kernel or library without dma-buf.
 *          tcp and shm use the mapping
 * owner    the caller; trib_deregister(comm, ptr) comes before munmap
 */
TRIB_API trib_status_t trib_register_dmabuf(trib_comm_t *comm, int fd, size_t offset,
                                            void *ptr, size_t bytes);

/**
 * trib_progress - drive started plans, where the configuration says progress=caller.
 *
 * Never blocks. Allowed, and needless, with a progress thread. With progress=caller a
 * plan that was started and has not ended moves in calls of its own communicator alone:
 * who waits in another one has another thread call this meanwhile, or the idle function
 * of the other one (trib_opts_t.idle). What has ended needs no more calls.
 * errors   what ended the communicator
 */
TRIB_API trib_status_t trib_progress(trib_comm_t *comm);

/* The path from this rank to another one. */
typedef struct trib_reach {
    size_t size;        /* sizeof(trib_reach_t), set by the caller */
    char transport[16]; /* "shm", "tcp", …; "self"; "none" where nothing reaches it */
    char why[240];      /* why by that, or why not; such as "same host" */
} trib_reach_t;

/**
 * trib_reach - by what does this rank reach rank `rank`, and why by that?
 *
 * Connects to it if that was not done before. A rank that cannot be reached is no error
 * of this call and does no harm to the communicator.
 * reach    size is set by the caller
 * errors   TRIB_ERR_INVALID; what ended the communicator
 */
TRIB_API trib_status_t trib_reach(trib_comm_t *comm, int rank, trib_reach_t *reach);

/* The work and the memory of a communicator. Counters only grow. */
typedef struct trib_stats {
    size_t size; /* sizeof(trib_stats_t), set by the caller */
    uint64_t operations; /* finished collectives */
    uint64_t wire_bytes; /* frames and payloads sent to peers, also those read in
                          * place */
    uint64_t payload_bytes; /* of these, payloads */
    uint64_t dense_bytes; /* what the payloads would be without a codec */
    uint64_t copied_bytes; /* copied beside sums and codecs: 0 where buffers are in
                            * reach */
    uint64_t messages; /* frames sent */
    uint64_t shared_bytes; /* memory of this rank now shared or pinned: slots and
                            * trib_alloc; what it maps of a peer's is counted there */
    uint64_t slot_bytes; /* of these, slots: edges * lanes * window * slot, see
                          * trib-info; between hosts also 1088 bytes for each rank; and
                          * those of messages */
    uint64_t peers; /* ranks to which this one is connected: whom its
                     * collectives needed so far */
    uint64_t wait_ns; /* time spent in trib_plan_wait, but for its first looks, a
                       * microsecond or so */
    uint64_t encode_ns; /* time in codecs, of all threads; 0 where the dense path
                         * ran */
    uint64_t served; /* all-reduces that services have summed; not those that
                      * were done again by the ranks */
    uint64_t input_bytes; /* of payload_bytes, those of this rank's own vectors, and not
                           * of results: what a codec makes of a gradient */
    uint64_t input_dense_bytes; /* of dense_bytes, likewise */
} trib_stats_t;

/**
 * trib_stats - what the communicator has done, and what it holds.
 *
 * stats    size is set by the caller
 * errors   TRIB_ERR_INVALID
 */
TRIB_API trib_status_t trib_stats(const trib_comm_t *comm, trib_stats_t *stats);

/*
 * Ranks of one host without a launcher: make a meeting place, pass its text to each
 * rank (thread or process) as trib_opts_t.root, with its rank and the number of ranks.
 */
typedef struct trib_local trib_local_t;

/**
 * trib_local_create - a meeting place for `ranks` ranks on this host.
 *
 * owner    the caller: trib_local_destroy
 * thread   any
 * errors   trib_last_error(NULL) has the sentence: TRIB_ERR_INVALID,
 *          TRIB_ERR_NO_MEMORY, TRIB_ERR_SYSTEM (open files, ulimit -f, memfd_create)
 */
TRIB_API trib_status_t trib_local_create(int ranks, trib_local_t **local_out);
/**
 * trib_local_root - the text of a meeting place, for trib_opts_t.root or TRIB_ROOT.
 *
 * owner    the meeting place; valid until it is destroyed
 */
TRIB_API const char *trib_local_root(const trib_local_t *local);
/**
 * trib_local_set_pid - name the process that is to become `rank`.
 *
 * So its death before trib_init is seen.
 */
TRIB_API void trib_local_set_pid(trib_local_t *local, int rank, int pid);
/**
 * trib_local_inherit - have the rank inherit the meeting place.
 *
 * For a forked child, before exec. Without it a rank opens the place through /proc,
 * which namespaces of users or processes bar (containers without root). Safe between
 * fork and exec.
 */
TRIB_API void trib_local_inherit(trib_local_t *local);
/**
 * trib_local_destroy - free a meeting place once no rank is in trib_init any more.
 *
 * NULL is allowed.
 */
TRIB_API void trib_local_destroy(trib_local_t *local);

/*
 * Ranks of any hosts where no launcher tells them where to meet, but the program has a
 * way to tell all of them a text (MPI_Bcast, a file, a key-value store): rank 0 makes
 * one, all ranks give it to trib_init as trib_opts_t.root, with their rank and the
 * number of ranks.
 */
typedef struct trib_root trib_root_t;

/**
 * trib_root_create - a meeting place at a free port of this host, where rank 0 is to
 * run.
 *
 * The port stays reserved until trib_root_destroy. The text has the host's name and its
 * addresses, "node7,10.0.0.1,10.1.0.1:4711#SECRET"; the other ranks try them side by
 * side, so that nobody has to be able to look the name up. Behind '#' is a secret by
 * which the ranks know each other, where this host has libsodium: pass the text on by a
 * way that strangers do not read, and show it to nobody.
 *
 * owner    the caller: trib_root_destroy once trib_init has returned on rank 0
 * thread   any; does not block
 * errors   trib_last_error(NULL) has the sentence: TRIB_ERR_SYSTEM: no free port;
 *          TRIB_ERR_NO_MEMORY; TRIB_ERR_INVALID: root_out is NULL
 */
TRIB_API trib_status_t trib_root_create(trib_root_t **root_out);
/**
 * trib_root_create_at - a meeting place at a port of a range, or by a name or address
 * of the caller's choice.
 *
 * For hosts behind a firewall that lets some ports through, or with one network of
 * several that all ranks reach. Several meeting places in a range get different ports.
 * bind     NULL or "": as trib_root_create. "host" or "host:port": the text has this
 *          host alone, a name by which the other ranks find this host, or an address of
 *          it, at which rank 0 then listens and at no other. ":7000", ":7000-7100",
 *          "host:7000-7100": the first of these ports that is free. An IPv6 address
 *          stands in brackets: "[fd77::1]:7000"
 * owner    as trib_root_create
 * thread   any; does not block
 * errors   as trib_root_create; TRIB_ERR_INVALID: bind is none of these;
 *          TRIB_ERR_SYSTEM: the ports are in use, or the address is not of this host
 */
TRIB_API trib_status_t trib_root_create_at(const char *bind, trib_root_t **root_out);
/**
 * trib_root_text - the text of a meeting place, for trib_opts_t.root or TRIB_ROOT.
 *
 * It has less than TRIB_ROOT_TEXT_MAX bytes.
 * owner    the meeting place; valid until it is destroyed
 */
TRIB_API const char *trib_root_text(const trib_root_t *root);
/**
 * trib_root_destroy - give the port of a meeting place back, and free it.
 *
 * NULL is allowed.
 */
TRIB_API void trib_root_destroy(trib_root_t *root);

/* Room for trib_root_text() with its zero: what a broadcast needs, and what TRIB_ROOT
 * takes. */
#define TRIB_ROOT_TEXT_MAX 256

#ifdef __cplusplus
}
#endif

#endif
