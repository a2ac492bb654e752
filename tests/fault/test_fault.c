/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fault sweep: one rank is killed or stopped at any point between its first call
 * and its last. Every survivor gets an error in time, and the message names the rank,
 * its host, the operation and the phase. Nothing hangs, and no process or file is left.
 *
 *     test_fault            a sample
 *     test_fault --long     every victim, algorithm and transport in every phase
 *
 * Several jobs run at once, because jobs with a stopped rank mostly sleep. Jobs slow
 * each other down: if a fault fails only because an error was late, it is repeated
 * once, alone, and that result counts.
 */
#include <dirent.h>
#include <errno.h>

#include "build-config.h"
#include "tests/harness/ranks.h"

#define DEATH_SECONDS 2.0
#define STOP_SECONDS 5.0 /* with the default time-out */
#define STOP_MARGIN 2.0  /* added to another time-out */
#define STOP_SHORT_MS 500
#define SHOT_SECONDS 15  /* the longest wait for a fault: the driver may be slow */
#define AT_ONCE 6
#define WARM_UP 3
#define COUNT ((size_t)1 << 20)

enum phase {
    PHASE_START,       /* before trib_init */
    PHASE_CONNECT,     /* in trib_init, which waits for another rank */
    PHASE_OPERATION,   /* the others are in an operation that this one has not
                        * started */
    PHASE_TRANSFER,    /* during large operations */
    PHASE_BETWEEN,     /* no rank is in an operation */
    PHASE_BEFORE_FREE, /* the others are in trib_free_comm, which this one has not
                        * called */
    PHASE_FREE,        /* in trib_free_comm, which waits for another rank */
    PHASES,
};

static const char *const phase_names[] = {
    "start", "connect", "operation", "transfer", "between", "before free", "free"};
static const char *const algorithms[] = {"direct", "ring", "flat", "tree"};
static const char *const transports[] = {"shm", "shm+nomap", "tcp",
#if HAVE_UCX
                                         "ucx",
#endif
                                         "auto:ranks_per_host=2"};

enum {
    TRANSPORTS = sizeof(transports) / sizeof(*transports),
    COMBINATIONS = 2 * 4 * TRANSPORTS, /* sizes, algorithms and transports */
};

struct shot {
    int size, victim, signal;
    enum phase phase;
    const char *algorithm, *transport;
    int stop_timeout_ms; /* 0: the default */
    double delay;        /* from the mark of the victim to the signal */
    bool shared;         /* memory from trib_alloc */
    bool again;          /* it was late while other jobs ran */
};

/* A fault injection in progress. */
struct flight {
    bool busy;
    struct shot shot;
    struct ranks ranks;
    char config[160];
    double marked, fired, reaped;
};

static struct {
    bool whole;
    uint64_t random;
    int shots, bad;
    struct shot *late; /* to be repeated */
    int n_late;
    double slowest[2]; /* slowest error after kills, and after stops with the default
                        * time-out */
} sweep = {.random = 88172645463325252u};

static double uniform(void)
{
    sweep.random ^= sweep.random << 13;
    sweep.random ^= sweep.random >> 7;
    sweep.random ^= sweep.random << 17;
    return (double)(sweep.random >> 11) * 0x1p-53;
}

static void nap(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* The ranks ----------------------------------------------------------------- */

/* The victim reports that it has reached the place of the fault, and waits there or
 * continues. */
static void mark(struct ranks_self *self, bool stay)
{
    atomic_store(&self->slot->phase, 1);
    while (stay)
        pause();
}

/* The other ranks wait here for the fault. */
static void await_shot(struct ranks_self *self)
{
    double until = ranks_seconds() + SHOT_SECONDS * (double)tribtest_slowness();

    while (!atomic_load(&self->slot->phase) && ranks_seconds() < until)
        nap(1);
}

static trib_status_t operation(struct ranks_self *self, void *x, size_t count)
{
    const struct shot *s = self->arg;
    trib_plan_t *plan;
    trib_desc_t d =
        sized(trib_desc_t, .recv = x, .count = count, .algorithm = s->algorithm);

    trib_status_t st = trib_plan_allreduce(self->comm, &d, &plan);
    if (st != TRIB_OK)
        return st;
    st = trib_plan_start(plan);
    if (st == TRIB_OK)
        st = trib_plan_wait(plan);
    trib_status_t freed = trib_plan_free(plan);
    if (freed != TRIB_OK)
        ranks_die(self, "trib_plan_free gave %s", trib_status_name(freed));
    return st;
}

static trib_status_t work(struct ranks_self *self, void *x)
{
    const struct shot *s = self->arg;
    bool victim = self->rank == s->victim;
    trib_status_t st = TRIB_OK;

    for (int i = 0; i < WARM_UP && st == TRIB_OK; i++)
        st = operation(self, x, 100);
    if (st != TRIB_OK)
        return st;
    if (victim && s->phase != PHASE_FREE)
        mark(self, s->phase != PHASE_TRANSFER);
    if (s->phase >= PHASE_BEFORE_FREE)
        return TRIB_OK;
    if (s->phase == PHASE_BETWEEN) {
        await_shot(self);
        nap(60);
    }
    while (st == TRIB_OK)
        st = operation(self, x, s->phase == PHASE_TRANSFER ? COUNT : 100);
    return st;
}

static trib_status_t start(struct ranks_self *self)
{
    const struct shot *s = self->arg;
    bool late = self->rank == (s->victim + 1) % s->size;

    if (self->rank == s->victim && s->phase <= PHASE_CONNECT)
        mark(self, s->phase == PHASE_START);
    if (late && s->phase == PHASE_CONNECT) {
        await_shot(self);
        nap(100);
    }
    return trib_init(&self->opts, &self->comm);
}

static trib_status_t leave(struct ranks_self *self)
{
    const struct shot *s = self->arg;

    if (self->rank == s->victim)
        mark(self, false);
    else if (self->rank == (s->victim + 1) % s->size && s->phase == PHASE_FREE)
        await_shot(self);
    return trib_free_comm(self->comm);
}

/* Return 0; slot->count and slot->text contain the error. */
static int act(struct ranks_self *self)
{
    const struct shot *s = self->arg;
    trib_comm_t *comm = NULL;
    void *x = NULL;

    trib_status_t st = start(self);
    if (st == TRIB_OK) {
        comm = self->comm;
        x = s->shared ? NULL : calloc(COUNT, sizeof(float));
        if (s->shared)
            ranks_ok(self, trib_alloc(comm, COUNT * sizeof(float), &x));
        st = work(self, x);
        if (st == TRIB_OK) {
            st = leave(self);
            comm = NULL;
        }
    }
    ranks_say(self, "%s", st == TRIB_OK ? "" : trib_last_error(comm));
    atomic_store(&self->slot->count, (uint64_t)-st);
    if (comm)
        ranks_ok(self, trib_free_comm(comm));
    if (!s->shared)
        free(x);
    return 0;
}

/* Verdicts ------------------------------------------------------------- */

static void complain(const struct flight *f, int rank, const char *what, double seconds)
{
    const struct shot *s = &f->shot;

    sweep.bad++;
    fprintf(
        stderr,
        "# rank %d %s (%.2f s) after rank %d of %d was %s, phase %s, %s, %s%s: %s\n",
        rank, what, seconds, s->victim, s->size,
        s->signal == SIGKILL ? "killed" : "stopped", phase_names[s->phase],
        s->algorithm, f->config, s->shared ? ", shared memory" : "",
        f->ranks.slots[rank].text);
}

static bool good_sentence(const struct shot *s, const char *text)
{
    char name[32], host[64] = "";
    const char *const op[] = {name, host, "operation", "phase", NULL};
    const char *const boot[] = {name, host, "phase", NULL};

    gethostname(host, sizeof(host) - 1);
    snprintf(name, sizeof(name), "rank %d (", s->victim);
    return ranks_has(text, s->phase <= PHASE_CONNECT ? boot : op);
}

static double limit_of(const struct shot *s)
{
    double limit = s->signal == SIGKILL ? DEATH_SECONDS : STOP_SECONDS;

    if (s->signal == SIGSTOP && s->stop_timeout_ms) /* a long time for slow ranks */
        return s->stop_timeout_ms / 1e3 + STOP_MARGIN * tribtest_slowness();
    return limit * tribtest_slowness();
}

static bool is_late(const struct flight *f, int rank)
{
    const struct ranks_slot *slot = &f->ranks.slots[rank];

    return slot->status != RANKS_NEVER && slot->end - f->fired > limit_of(&f->shot);
}

static void judge_survivor(struct flight *f, int rank)
{
    const struct shot *s = &f->shot;
    const struct ranks_slot *slot = &f->ranks.slots[rank];
    double took = slot->end - f->fired;
    bool killed = s->signal == SIGKILL;

    if (slot->status == RANKS_NEVER) {
        complain(f, rank, "never came back", f->reaped - f->fired);
        return;
    }
    if (slot->status != 0 || f->ranks.wait_status[rank] != 0)
        complain(f, rank, "ended badly", took);
    else if (is_late(f, rank) && s->again)
        complain(f, rank, "was late, again", took);
    else if (slot->count == 0 && s->phase != PHASE_FREE)
        complain(f, rank, "saw no error", took);
    else if (slot->count != 0 && !good_sentence(s, slot->text))
        complain(f, rank, "has no good sentence", took);
    if ((killed || !s->stop_timeout_ms) && (s->again || !is_late(f, rank))) {
        double *slowest = &sweep.slowest[!killed];
        *slowest = took > *slowest ? took : *slowest;
    }
}

static void judge(struct flight *f)
{
    const struct shot *s = &f->shot;
    int status = f->ranks.wait_status[s->victim];
    bool late = false;

    sweep.shots += !s->again;
    if (f->fired == 0) {
        complain(f, s->victim, "did not come to its place", 0);
        return;
    }
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        complain(f, s->victim, "was not hit", 0);
    for (int r = 0; r < s->size; r++) {
        if (r == s->victim)
            continue;
        judge_survivor(f, r);
        late = late || is_late(f, r);
    }
    if (late && !s->again) {
        sweep.late[sweep.n_late] = *s;
        sweep.late[sweep.n_late++].again = true;
    }
}

static bool survivors_ended(const struct flight *f)
{
    for (int r = 0; r < f->shot.size; r++)
        if (r != f->shot.victim && !f->ranks.ended[r])
            return false;
    return true;
}

static bool start_flight(struct flight *f, const struct shot *s)
{
    struct ranks_job job = {.size = s->size,
                            .fn = act,
                            .arg = &f->shot,
                            .bare = true,
                            .noisy = true,
                            .seconds = 40,
                            .config = f->config};

    memset(f, 0, sizeof(*f));
    f->shot = *s;
    f->busy = true;
    int n = snprintf(f->config, sizeof(f->config), "transport=%s", s->transport);
    if (s->stop_timeout_ms)
        snprintf(f->config + n, sizeof(f->config) - (size_t)n, ",stop_timeout_ms=%d",
                 s->stop_timeout_ms);
    return ranks_start(&f->ranks, &job);
}

/* Advance one fault injection. Return true when it has ended. */
static bool drive(struct flight *f)
{
    const struct shot *s = &f->shot;
    double now = ranks_seconds();
    bool all = ranks_poll(&f->ranks);

    if (!f->marked && atomic_load(&f->ranks.slots[s->victim].phase))
        f->marked = now;
    if (f->marked && !f->fired && now >= f->marked + s->delay) {
        f->fired = ranks_seconds();
        ranks_signal(&f->ranks, s->victim, s->signal);
        for (int r = 0; r < s->size; r++)
            atomic_store(&f->ranks.slots[r].phase, 1);
    }
    if (f->fired && s->signal == SIGSTOP && survivors_ended(f))
        ranks_signal(&f->ranks, s->victim, SIGKILL);
    if (!all)
        return false;
    f->reaped = ranks_seconds();
    judge(f);
    ranks_close(&f->ranks);
    f->busy = false;
    return true;
}

static int files_in_shm(void)
{
    DIR *dir = opendir("/dev/shm");
    int n = 0;

    for (struct dirent *e; dir && (e = readdir(dir));)
        n += strstr(e->d_name, "trib") != NULL;
    if (dir)
        closedir(dir);
    return n;
}

static void fire(const struct shot *shots, int n, int at_once)
{
    static struct flight flights[AT_ONCE];
    int next = 0, busy = 0;

    while (next < n || busy) {
        for (int i = 0; i < at_once; i++) {
            if (!flights[i].busy && next < n) {
                assert_true(start_flight(&flights[i], &shots[next++]));
                busy++;
            } else if (flights[i].busy && drive(&flights[i])) {
                busy--;
            }
        }
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
}

static void fire_all(const struct shot *shots, int n)
{
    int before = files_in_shm();

    sweep.shots = sweep.bad = sweep.n_late = 0;
    sweep.late = calloc((size_t)n, sizeof(*sweep.late));
    assert_non_null(sweep.late);
    fire(shots, n, AT_ONCE);
    if (sweep.n_late)
        printf("# %d of %d late, once more\n", sweep.n_late, n);
    fire(sweep.late, sweep.n_late, 1);
    free(sweep.late);
    assert_int_equal(sweep.shots, n);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child, no zombie */
    assert_int_equal(errno, ECHILD);
    assert_int_equal(files_in_shm(), before);
    assert_int_equal(sweep.bad, 0);
}

static int aim(struct shot *shots, struct shot s, int victims)
{
    for (int v = 0; v < victims; v++) {
        shots[v] = s;
        shots[v].victim = victims == 1 ? (int)(uniform() * s.size) : v;
        shots[v].delay = s.phase == PHASE_TRANSFER ? 0.03 * uniform()
                                                   : 0.01 + 0.03 * uniform();
        shots[v].shared = uniform() < 0.5;
    }
    return victims;
}

/* Aim at all phases, sizes, algorithms and transports, each with one victim or all. */
static int aim_all(struct shot *shots, int signal_number, int stop_timeout_ms)
{
    int n = 0;

    for (int phase = 0; phase < PHASES; phase++) {
        for (int k = 0; k < COMBINATIONS; k++) {
            struct shot s = {.size = k & 1 ? 4 : 2,
                             .signal = signal_number,
                             .phase = (enum phase)phase,
                             .algorithm = algorithms[k >> 1 & 3],
                             .transport = transports[k >> 3],
                             .stop_timeout_ms = stop_timeout_ms};
            bool same = phase < PHASE_OPERATION && (k >> 1 & 3);
            if (!same || sweep.whole)
                n += aim(shots + n, s, sweep.whole ? s.size : 1);
        }
    }
    return n;
}

TEST(test_kill)
{
    static struct shot shots[PHASES * COMBINATIONS * 4];

    fire_all(shots, aim_all(shots, SIGKILL, 0));
    printf("# %d kills, slowest error after %.2f s\n", sweep.shots, sweep.slowest[0]);
}

/* A slow rank, because of a sanitizer or a busy machine, must not count as stopped. */
TEST(test_stop)
{
    static struct shot shots[PHASES * COMBINATIONS * 4];
    int stop_timeout_ms = STOP_SHORT_MS * (int)tribtest_slowness();

    fire_all(shots, aim_all(shots, SIGSTOP, sweep.whole ? 0 : stop_timeout_ms));
    printf("# %d stops\n", sweep.shots);
}

/* With the default time-out. */
TEST(test_stop_by_default)
{
    struct shot shots[TRANSPORTS * PHASES];
    int n = 0;

    for (int phase = 0; phase < PHASES; phase++)
        for (int t = 0; t < TRANSPORTS; t++)
            n += aim(shots + n,
                     (struct shot){.size = 2 + phase % 2,
                                   .signal = SIGSTOP,
                                   .phase = (enum phase)phase,
                                   .algorithm = algorithms[phase % 4],
                                   .transport = transports[t]},
                     1);
    fire_all(shots, n);
    printf("# %d stops, slowest error after %.2f s\n", sweep.shots, sweep.slowest[1]);
}

int main(int argc, char **argv)
{
    sweep.whole = argc > 1 && strcmp(argv[1], "--long") == 0;
    tribtest_seconds = sweep.whole ? 0 : 900;
    return tribtest_run();
}
