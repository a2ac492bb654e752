/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * elastic - measure how long a job cannot sum after it lost a rank, and how long it
 * takes to add one.
 *
 *     elastic [TRIALS [RANKS [TRANSPORT]]]
 *
 * Ranks are processes that sum 25000 floats in a loop. One of them, a different one in
 * each trial, gets a SIGKILL; in another job it gets a SIGSTOP, with the default
 * stop_timeout_ms. The others shrink their communicator and repeat the sum from its
 * input. Times run from the signal to the first correct sum of the slowest survivor.
 * They are split: until the last survivor noticed, in trib_comm_shrink, and until the
 * sum.
 *
 * Then a process joins a job of RANKS ranks, which calls trib_comm_grow at each step.
 * The time runs from its call of trib_join to the first correct sum of all ranks.
 *
 * Prints csv: signal,seconds,min_seconds,max_seconds,known,shrink,sum. Values are
 * medians over the trials. SIGSTOP has a tenth of the trials. For a join `known` is 0,
 * and `shrink` ends when all ranks have the bigger communicator.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tributary.h>

enum { RANKS_MOST = 64, TRIALS_MOST = 1000, COUNT = 25000, WARM_UP_MS = 30 };

enum part { WHOLE, KNOWN, SHRINK, SUM, PARTS };

/* Shared by all processes of a trial. Times are in seconds. */
struct board {
    volatile int sums[RANKS_MOST]; /* true after the rank's first sum */
    volatile double hit;
    volatile int listens; /* text is valid */
    char text[TRIB_ROOT_TEXT_MAX];
    volatile double known[RANKS_MOST + 1], smaller[RANKS_MOST + 1];
    volatile double summed[RANKS_MOST + 1];
};

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "elastic: %s: %s\n", what, why);
    exit(1);
}

static void sum(trib_comm_t *comm, const float *in, float *out, trib_status_t *st)
{
    *st = trib_allreduce(comm, in, out, COUNT, TRIB_F32, TRIB_SUM);
    for (int i = 0; *st == TRIB_OK && i < COUNT; i++)
        if (out[i] != (float)(trib_size(comm) * (i % 100)))
            fail("a sum", "wrong");
}

static void act(const char *root, int rank, int ranks, struct board *b)
{
    static float in[COUNT], out[COUNT];
    trib_opts_t opts = TRIB_OPTS_INIT;
    trib_comm_t *comm, *smaller;
    trib_status_t st = TRIB_OK;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    opts.rank_plus_1 = rank + 1;
    opts.ranks = ranks;
    opts.root = root;
    if (trib_init(&opts, &comm) != TRIB_OK)
        fail("trib_init", trib_last_error(NULL));
    for (int i = 0; i < COUNT; i++)
        in[i] = (float)(i % 100);
    while (st == TRIB_OK) {
        sum(comm, in, out, &st);
        b->sums[rank] |= st == TRIB_OK;
    }
    b->known[rank] = seconds();
    if (trib_comm_shrink(comm, &smaller) != TRIB_OK)
        fail("trib_comm_shrink", trib_last_error(NULL));
    b->smaller[rank] = seconds();
    sum(smaller, in, out, &st);
    if (st != TRIB_OK)
        fail("the next sum", trib_last_error(smaller));
    b->summed[rank] = seconds();
    trib_free_comm(comm);
    _exit(trib_free_comm(smaller) != TRIB_OK);
}

/* The last rank of a growing job is the one that joins. */
static void join(const char *root, int rank, int ranks, struct board *b)
{
    static float in[COUNT], out[COUNT];
    trib_opts_t opts = TRIB_OPTS_INIT;
    trib_comm_t *comm, *bigger = NULL;
    trib_listener_t *l = NULL;
    trib_status_t st = TRIB_OK;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    opts.rank_plus_1 = rank + 1;
    opts.ranks = ranks;
    opts.root = root;
    for (int i = 0; i < COUNT; i++)
        in[i] = (float)(i % 100);
    if (rank == ranks) {
        while (!b->listens)
            usleep(1000);
        usleep(WARM_UP_MS * 1000);
        b->hit = seconds();
        if (trib_join(b->text, NULL, &bigger) != TRIB_OK)
            fail("trib_join", trib_last_error(NULL));
    } else {
        if (trib_init(&opts, &comm) != TRIB_OK)
            fail("trib_init", trib_last_error(NULL));
        if (rank == 0 && trib_listener_open(comm, NULL, &l) != TRIB_OK)
            fail("trib_listener_open", trib_last_error(comm));
        if (rank == 0)
            snprintf(b->text, sizeof(b->text), "%s", trib_listener_text(l));
        b->listens |= rank == 0;
        while (!bigger && st == TRIB_OK) {
            sum(comm, in, out, &st);
            if (st == TRIB_OK)
                st = trib_comm_grow(comm, l, 1, &bigger);
        }
        if (st != TRIB_OK)
            fail("trib_comm_grow", trib_last_error(NULL));
        trib_free_comm(comm);
    }
    b->smaller[rank] = seconds();
    sum(bigger, in, out, &st);
    if (st != TRIB_OK)
        fail("the next sum", trib_last_error(bigger));
    b->summed[rank] = seconds();
    trib_listener_close(l);
    _exit(trib_free_comm(bigger) != TRIB_OK);
}

static double latest(const volatile double *times, int ranks, int victim)
{
    double t = 0;

    for (int r = 0; r < ranks; r++)
        if (r != victim && times[r] > t)
            t = times[r];
    return t;
}

/* If a rank cannot start, it has printed why; end the program. */
static void await_sums(const struct board *b, int ranks)
{
    int status;

    for (int r = 0; r < ranks; r++)
        while (!b->sums[r]) {
            if (waitpid(-1, &status, WNOHANG) > 0)
                fail("a rank", "it has failed");
            usleep(1000);
        }
    usleep(WARM_UP_MS * 1000);
}

static void try_once(int ranks, int victim, int number, double out[PARTS])
{
    struct board *b = mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[RANKS_MOST] = {0};
    trib_local_t *local;
    int status;

    if (b == MAP_FAILED || trib_local_create(ranks, &local) != TRIB_OK)
        fail("rendezvous", trib_last_error(NULL));
    for (int r = 0; r < ranks; r++) {
        pids[r] = fork();
        if (pids[r] == 0)
            act(trib_local_root(local), r, ranks, b);
        trib_local_set_pid(local, r, pids[r]);
    }
    await_sums(b, ranks);
    b->hit = seconds();
    kill(pids[victim], number);
    for (int r = 0; r < ranks; r++)
        if (r != victim && (waitpid(pids[r], &status, 0) < 0 || status))
            fail("a survivor", "it has failed");
    kill(pids[victim], SIGKILL);
    waitpid(pids[victim], &status, 0);
    const double known = latest(b->known, ranks, victim);
    const double smaller = latest(b->smaller, ranks, victim);
    out[WHOLE] = latest(b->summed, ranks, victim) - b->hit;
    out[KNOWN] = known - b->hit;
    out[SHRINK] = smaller - known;
    out[SUM] = out[WHOLE] - (smaller - b->hit);
    trib_local_destroy(local);
    munmap(b, sizeof(*b));
}

static void try_join(int ranks, double out[PARTS])
{
    struct board *b = mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[RANKS_MOST + 1];
    trib_local_t *local;
    int status;

    if (b == MAP_FAILED || trib_local_create(ranks, &local) != TRIB_OK)
        fail("rendezvous", trib_last_error(NULL));
    for (int r = 0; r <= ranks; r++) {
        pids[r] = fork();
        if (pids[r] == 0)
            join(trib_local_root(local), r, ranks, b);
        if (r < ranks)
            trib_local_set_pid(local, r, pids[r]);
    }
    for (int r = 0; r <= ranks; r++)
        if (waitpid(pids[r], &status, 0) < 0 || status)
            fail("a rank", "it has failed");
    out[WHOLE] = latest(b->summed, ranks + 1, -1) - b->hit;
    out[KNOWN] = 0;
    out[SHRINK] = latest(b->smaller, ranks + 1, -1) - b->hit;
    out[SUM] = out[WHOLE] - out[SHRINK];
    trib_local_destroy(local);
    munmap(b, sizeof(*b));
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* number: a signal; 0: measure a join */
static void measure(int ranks, int number, int trials)
{
    const char *what = number == SIGKILL ? "kill" : number ? "stop" : "join";
    static double times[PARTS][TRIALS_MOST];
    double one[PARTS];

    for (int i = 0; i < trials; i++) {
        if (number)
            try_once(ranks, i % ranks, number, one);
        else
            try_join(ranks, one);
        for (int p = 0; p < PARTS; p++)
            times[p][i] = one[p];
    }
    for (int p = 0; p < PARTS; p++)
        qsort(times[p], (size_t)trials, sizeof(double), compare);
    printf("%s,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f\n", what, times[WHOLE][trials / 2],
           times[WHOLE][0], times[WHOLE][trials - 1], times[KNOWN][trials / 2],
           times[SHRINK][trials / 2], times[SUM][trials / 2]);
}

int main(int argc, char **argv)
{
    const int trials = argc > 1 ? atoi(argv[1]) : 20;
    const int ranks = argc > 2 ? atoi(argv[2]) : 4;

    if (trials < 1 || trials > TRIALS_MOST || ranks < 2 || ranks > RANKS_MOST)
        fail("usage", "elastic [TRIALS, 1 to 1000 [RANKS, 2 to 64 [TRANSPORT]]]");
    if (argc > 3)
        setenv("TRIB_TRANSPORT", argv[3], 1);
    printf("signal,seconds,min_seconds,max_seconds,known,shrink,sum\n");
    fflush(stdout);
    measure(ranks, SIGKILL, trials);
    fflush(stdout);
    measure(ranks, 0, trials);
    fflush(stdout);
    measure(ranks, SIGSTOP, (trials + 9) / 10);
    return 0;
}
