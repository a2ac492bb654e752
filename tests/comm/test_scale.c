/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 64 ranks: connections and memory of slots depend on the used edges, not on the number
 * of ranks. The schedules define these edges.
 */
#include "tests/harness/tribtest.h"

#include <dirent.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "collectives/collectives.h"
#include "pipeline/link/link.h"

enum {
    RANKS = TRIBTEST_RANKS_MAX,
    COUNT = 1000,
    WINDOW = 8,
    CHUNK = 65536,
    /* A listener, a heartbeat socket, and the sockets of the boot: on rank 0, one for
     * each of the others. */
    SOCKETS_OF_ONE = 4,
    SLACK_KIB = 16 << 10, /* the slots of 64 ranks would be 130 MiB */
};

/* Memory that all ranks of a job share. */
struct job {
    const char *algorithm;
    const char *root;
    bool edge[RANKS][RANKS]; /* [from][to], known before the start */
    _Atomic int summed, counted;
    int sockets[RANKS];
    uint64_t peers[RANKS], slot_bytes[RANKS];
    long grown_kib[RANKS];
};

static long resident_kib(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long whole, pages = 0;

    if (f && fscanf(f, "%ld %ld", &whole, &pages) != 2)
        pages = 0;
    if (f)
        fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static int count_sockets(void)
{
    DIR *dir = opendir("/proc/self/fd");
    char path[300], target[64];
    int n = 0;

    for (struct dirent *e; dir && (e = readdir(dir));) {
        snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
        ssize_t len = readlink(path, target, sizeof(target) - 1);
        target[len > 0 ? len : 0] = '\0';
        n += strncmp(target, "socket:", 7) == 0;
    }
    if (dir)
        closedir(dir);
    return n;
}

/* No rank disconnects before all have reached this point. */
static void meet(_Atomic int *counter, int size)
{
    atomic_fetch_add(counter, 1);
    while (atomic_load(counter) < size)
        usleep(5000);
}

static int be_rank(int rank, int size, void *arg)
{
    struct job *job = arg;
    trib_opts_t opts = TRIB_OPTS_INIT;
    trib_stats_t stats = {.size = sizeof(stats)};
    trib_comm_t *comm = NULL;
    char config[160];
    float x[COUNT];
    int wrong = 0;

    snprintf(config, sizeof(config),
             "transport=tcp,algorithm=%s,chunk=%d,window=%d,boot_timeout_ms=100000",
             job->algorithm, CHUNK, WINDOW);
    opts.rank_plus_1 = rank + 1;
    opts.ranks = size;
    opts.root = job->root;
    opts.config = config;
    long before = resident_kib();
    if (trib_init(&opts, &comm) != TRIB_OK) {
        fprintf(stderr, "rank %d: %s\n", rank, trib_last_error(NULL));
        return 1;
    }
    for (int round = 0; round < 3 && !wrong; round++) {
        for (int i = 0; i < COUNT; i++)
            x[i] = (float)(rank + i);
        wrong = trib_allreduce(comm, NULL, x, COUNT, TRIB_F32, TRIB_SUM) != TRIB_OK;
        for (int i = 0; i < COUNT; i++)
            wrong |= x[i] != (float)(size * (size - 1) / 2 + size * i);
    }
    wrong |= trib_stats(comm, &stats) != TRIB_OK;
    if (wrong)
        fprintf(stderr, "rank %d: %s\n", rank, trib_last_error(comm));
    job->peers[rank] = stats.peers;
    job->slot_bytes[rank] = stats.slot_bytes;
    job->grown_kib[rank] = resident_kib() - before;
    meet(&job->summed, size);
    job->sockets[rank] = count_sockets();
    meet(&job->counted, size);
    return wrong || trib_free_comm(comm) != TRIB_OK;
}

/* The edges of the schedule, and the first one, with which trib_init checks
 * connections. */
static void find_edges(struct job *job, int size)
{
    const struct trib_algo *algo = trib_algo_find(job->algorithm);

    assert_non_null(algo);
    memset(job->edge, 0, sizeof(job->edge));
    for (int r = 0; r < size; r++) {
        struct trib_shape shape = {
            .coll = TRIB_ALLREDUCE, .op = TRIB_SUM, .rank = r, .size = size};
        struct trib_schedule schedule = {0};
        assert_status(algo->build(&shape, &schedule), TRIB_OK);
        for (uint32_t i = 0; i < schedule.n_steps; i++)
            job->edge[r][schedule.steps[i].peer] = true;
        trib_schedule_free(&schedule);
        job->edge[r][(r + 1) % size] = true;
        job->edge[r][r] = false;
    }
}

static void check_rank(const struct job *job, int rank, int size)
{
    uint64_t out = 0, in = 0;

    for (int r = 0; r < size; r++) {
        out += job->edge[rank][r];
        in += job->edge[r][rank];
    }
    uint64_t others = rank == 0 ? (uint64_t)size : 0;
    uint64_t bytes =
        trib_arena_heads(size) + out * trib_link_bytes(WINDOW, CHUNK, false);
    uint64_t kib = bytes / 1024 + (uint64_t)SLACK_KIB * tribtest_slowness();
    if (job->peers[rank] != out)
        fail_msg("rank %d is connected to %llu ranks, the schedule has %llu", rank,
                 (unsigned long long)job->peers[rank], (unsigned long long)out);
    if ((uint64_t)job->sockets[rank] > out + in + others + SOCKETS_OF_ONE)
        fail_msg("rank %d has %d sockets for %llu edges out and %llu in", rank,
                 job->sockets[rank], (unsigned long long)out, (unsigned long long)in);
    if ((uint64_t)job->sockets[rank] < out + 2)
        fail_msg("rank %d has %d sockets: how are they counted?", rank,
                 job->sockets[rank]);
    assert_int_equal(job->slot_bytes[rank], bytes);
    if (job->grown_kib[rank] > (long)kib)
        fail_msg("rank %d has taken %ld KiB, at most %llu are due", rank,
                 job->grown_kib[rank], (unsigned long long)kib);
}

/* Return the largest number of peers of a rank. */
static uint64_t run_job(const char *algorithm, int size)
{
    struct job *job = mmap(NULL, sizeof(*job), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    trib_local_t *local;
    uint64_t most = 0, sum = 0, sockets = 0;

    assert_ptr_not_equal(job, MAP_FAILED);
    assert_status(trib_local_create(size, &local), TRIB_OK);
    job->algorithm = algorithm;
    job->root = trib_local_root(local);
    find_edges(job, size);
    assert_int_equal(tribtest_forks(size, 250, be_rank, job), 0);
    for (int r = 0; r < size; r++) {
        check_rank(job, r, size);
        most = job->peers[r] > most ? job->peers[r] : most;
        sum += job->peers[r];
        sockets += (uint64_t)job->sockets[r];
    }
    printf("# %s, %d ranks: at most %llu peers, %.1f in the mean, %.1f sockets\n",
           algorithm, size, (unsigned long long)most, (double)sum / size,
           (double)sockets / size);
    trib_local_destroy(local);
    munmap(job, sizeof(*job));
    return most;
}

TEST(test_ring)
{
    assert_int_equal(run_job("ring", 16), 2);
    assert_int_equal(run_job("ring", RANKS), 2);
}

TEST(test_tree)
{
    assert_in_range(run_job("tree", RANKS), 6, 8);
}
