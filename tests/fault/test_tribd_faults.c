/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fault sweep of jobs with services: a tribd is killed, stopped, or killed and
 * restarted, or a rank is killed or stopped, at any point between its first call and
 * its last.
 *
 * A job that loses a tribd continues within the time limit for deaths, every sum is
 * correct, and the job sums with a service again if there is one. After the loss of a
 * rank, the others get an error in time that names the rank, its host and the
 * operation. In each case, every remaining tribd has released all resources 5 s later
 * and exits without error.
 *
 *     test_tribd_faults [--seed S] [--transport T] [--only I,…] [--at-once N]
 *                       [--long]
 *
 * Faults are drawn from the seed. --only runs the faults of these numbers, --long draws
 * ten times as many. N faults (4) run at once. A fault whose only failure is lateness
 * is repeated twice, alone: a machine may be busy, but a broken limit is late each
 * time. The same applies if UCX aborts its process.
 */
#include "build-config.h"
#include "tests/comm/oracle.h"
#include "tests/fault/served_job.h"
#include "tests/harness/daemon.h"

enum {
    AT_ONCE = 4,
    SERVICES = 2,
    STOP_MS = 500, /* stop_timeout_ms of most faults; the others use the default */
    HANDSHAKE_MS = 3000, /* a tribd has at least this, whatever the stop time-out */
    SHOTS_MOST = 2000,
    ROUNDS = 10,
    MORE_TRIES = 2,
    LOOK_US = 1000, /* period of the polls of the test on a machine that is not slow */
};

#define KILL_SECONDS 2.0
#define STOP_MARGIN 2.0
#define STOP_SECONDS 5.0 /* with the default time-out */
#define EMPTY_SECONDS 5.0
#define UP_SECONDS 20.0

enum kind {
    TRIBD_KILLED,
    TRIBD_STOPPED,
    TRIBD_RESTARTED,
    RANK_KILLED,
    RANK_STOPPED,
    KINDS
};

static const char *const kind_names[KINDS] = {"a tribd is killed", "a tribd is stopped",
                                              "a tribd is killed and started again",
                                              "a rank is killed", "a rank is stopped"};
static const char *const place_names[PLACES] = {
    "in trib_init", "in the first operation", "in sums", "with several plans under way",
    "in trib_free_comm"};

struct shot {
    int index;
    enum kind kind;
    const char *transport;
    int size, services, victim; /* victim: a rank or a service */
    int stop_ms;  /* stop_timeout_ms; 0: the default */
    double delay; /* from the mark to the signal */
    double back;  /* from the signal to its end; 0: when the job has ended */
    int tries;    /* earlier tries, all of them late */
    struct served_job job;
};

enum stage { IDLE, OPENING, RUNNING, EMPTYING, CLOSING };

/* A fault injection in progress. */
struct flight {
    enum stage stage;
    struct shot shot;
    struct daemon_process daemons[SERVICES];
    struct ranks ranks;
    char config[300];
    double begun, marked, fired, reaped, closed;
    bool came_back;
    bool late;
    int bad;
};

static struct {
    uint64_t seed;
    const char *transport;
    const char *only; /* numbers of faults, with commas; NULL: all */
    int rounds, at_once;
    char folder[DAEMON_PATH - 40];
    struct flight flights[AT_ONCE];
    struct shot shots[SHOTS_MOST], late[SHOTS_MOST];
    int n_late, bad;
    double slowest[KINDS], emptied;
} sweep = {.seed = 1, .rounds = 1, .at_once = AT_ONCE};

static bool hits_rank(const struct shot *s)
{
    return s->kind >= RANK_KILLED;
}

static bool stops(const struct shot *s)
{
    return s->kind == TRIBD_STOPPED || s->kind == RANK_STOPPED;
}

static double patience(double seconds)
{
    return seconds * tribtest_slowness();
}

static double limit_of(const struct shot *s)
{
    const bool in_handshake = s->kind == TRIBD_STOPPED && s->job.place == AT_MEETING;
    int stop_ms = s->stop_ms;

    if (!stops(s))
        return patience(KILL_SECONDS);
    if (!stop_ms)
        return patience(STOP_SECONDS);
    if (in_handshake && stop_ms < HANDSHAKE_MS)
        stop_ms = HANDSHAKE_MS;
    return stop_ms / 1e3 + patience(STOP_MARGIN);
}

/* Verdicts -------------------------------------------------------------------- */

static void complain(struct flight *f, const char *who, int number, const char *what,
                     double seconds)
{
    const struct shot *s = &f->shot;
    const bool first = f->bad++ == 0;

    if (first)
        fprintf(
            stderr,
            "# --seed %llu%s%s --only %d: %s (number %d) %s, over %s; %d ranks, %d "
            "services\n",
            (unsigned long long)sweep.seed, sweep.transport ? " --transport " : "",
            sweep.transport ? sweep.transport : "", s->index, kind_names[s->kind],
            s->victim, place_names[s->job.place], s->transport, s->size, s->services);
    fprintf(stderr, "#   %s %d %s (%.2f s)\n", who, number, what, seconds);
    for (int r = 0; first && r < s->size; r++)
        fprintf(stderr, "#   rank %d ended %.3f s after the shot: %s\n", r,
                f->ranks.slots[r].begin - f->fired, f->ranks.slots[r].text);
}

static void note(const struct flight *f, double took)
{
    double *slowest = &sweep.slowest[f->shot.kind];

    *slowest = took > *slowest ? took : *slowest;
}

/* Check the time; a late fault is repeated. */
static void judge_time(struct flight *f, int rank, double took)
{
    if (took <= limit_of(&f->shot))
        note(f, took);
    else if (f->shot.tries == MORE_TRIES)
        complain(f, "rank", rank, "was late each time", took);
    else
        f->late = true;
}

/* UCX 1.13 aborts its process by an assertion, about once in a thousand faults, if a
 * peer dies during wireup (wireup_ep->pending_count == 0 in wireup_ep.c). */
static bool ucx_ended_it(const struct flight *f, int rank)
{
    const int status = f->ranks.wait_status[rank];

    return strcmp(f->shot.transport, "ucx") == 0 && f->shot.job.place == AT_MEETING &&
           WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static bool ended_well(struct flight *f, int rank)
{
    const struct ranks_slot *slot = &f->ranks.slots[rank];
    const bool never = slot->status == RANKS_NEVER;

    if (slot->status == 0 && f->ranks.wait_status[rank] == 0)
        return true;
    if (ucx_ended_it(f, rank) && f->shot.tries < MORE_TRIES) {
        f->late = true;
        return false;
    }
    complain(f, "rank", rank, never ? "never came back" : "ended badly",
             (never ? f->reaped : slot->end) - f->fired);
    return false;
}

static void judge_server_loss(struct flight *f, int rank)
{
    const struct ranks_slot *slot = &f->ranks.slots[rank];
    double longest = 0;

    if (!ended_well(f, rank))
        return;
    if (slot->count != 0)
        complain(f, "rank", rank, "saw an error", slot->end - f->fired);
    else if (sscanf(slot->text, "longest wait %lf", &longest) == 1)
        judge_time(f, rank,
                   f->shot.job.place == AT_LEAVING ? slot->begin - f->fired : longest);
}

static bool good_sentence(const struct shot *s, const char *text)
{
    char name[32], host[64] = "";
    const char *const op[] = {name, host, "operation", "phase", NULL};
    const char *const boot[] = {name, host, NULL};

    gethostname(host, sizeof(host) - 1);
    snprintf(name, sizeof(name), "rank %d (", s->victim);
    return ranks_has(text, s->job.place == AT_MEETING ? boot : op);
}

static void judge_rank_loss(struct flight *f, int rank)
{
    const struct shot *s = &f->shot;
    const struct ranks_slot *slot = &f->ranks.slots[rank];

    if (rank == s->victim || !ended_well(f, rank))
        return;
    if (slot->count == 0 && s->job.place != AT_LEAVING)
        complain(f, "rank", rank, "saw no error", slot->end - f->fired);
    else if (slot->count != 0 && !good_sentence(s, slot->text))
        complain(f, "rank", rank, "has no good sentence", slot->end - f->fired);
    judge_time(f, rank, slot->begin - f->fired);
}

static void judge(struct flight *f)
{
    const struct shot *s = &f->shot;

    if (f->fired == 0)
        complain(f, "rank", s->job.marker, "did not come to its place", 0);
    for (int r = 0; r < s->size && f->fired != 0; r++)
        (hits_rank(s) ? judge_rank_loss : judge_server_loss)(f, r);
}

/* A fault from its start to its end ------------------------------------------------ */

static bool start_flight(struct flight *f, const struct shot *s)
{
    memset(f, 0, sizeof(*f));
    f->shot = *s;
    f->stage = OPENING;
    f->begun = ranks_seconds();
    for (int i = 0; i < s->services; i++) {
        struct daemon_process *d = &f->daemons[i];
        snprintf(d->folder, sizeof(d->folder), "%s", sweep.folder);
        d->threads = 1 + (int)(s->job.seed >> i & 1);
        if (!daemon_start(d))
            return false;
    }
    return true;
}

static void start_ranks(struct flight *f)
{
    const struct shot *s = &f->shot;
    const struct ranks_job job = {.size = s->size,
                                  .fn = served_act,
                                  .arg = &f->shot.job,
                                  .bare = true,
                                  .noisy = true,
                                  .seconds = 60,
                                  .config = f->config};
    int n = snprintf(f->config, sizeof(f->config),
                     "transport=%s;service_retry_ms=100;service=127.0.0.1:%d",
                     s->transport, f->daemons[0].port);

    if (s->services > 1)
        n += snprintf(f->config + n, sizeof(f->config) - (size_t)n, ",127.0.0.1:%d",
                      f->daemons[1].port);
    if (s->stop_ms)
        snprintf(f->config + n, sizeof(f->config) - (size_t)n, ";stop_timeout_ms=%d",
                 s->stop_ms);
    assert_true(ranks_start(&f->ranks, &job));
    f->stage = RUNNING;
}

static void open_daemons(struct flight *f, double now)
{
    bool up = true;

    for (int i = 0; i < f->shot.services; i++)
        up = daemon_up(&f->daemons[i]) && up;
    if (up)
        start_ranks(f);
    assert_true(now < f->begun + patience(UP_SECONDS));
}

static void fire(struct flight *f)
{
    const struct shot *s = &f->shot;

    f->fired = ranks_seconds();
    if (hits_rank(s))
        ranks_signal(&f->ranks, s->victim, stops(s) ? SIGSTOP : SIGKILL);
    else
        daemon_signal(&f->daemons[s->victim], stops(s) ? SIGSTOP : SIGKILL);
    for (int r = 0; r < s->size; r++)
        atomic_store(&f->ranks.slots[r].phase, JOB_FIRED);
}

/* Check that a killed tribd died of the signal, and restart it if required. */
static void come_back(struct flight *f)
{
    struct daemon_process *d = &f->daemons[f->shot.victim];
    int status = 0;

    f->came_back = true;
    if (f->shot.kind == TRIBD_STOPPED) {
        daemon_signal(d, SIGCONT);
        return;
    }
    while (d->pid > 0 && !daemon_ended(d, &status))
        usleep(1000);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        complain(f, "tribd", f->shot.victim, "was not hit", 0);
    if (f->shot.kind == TRIBD_RESTARTED)
        assert_true(daemon_start(d));
}

static bool survivors_ended(const struct flight *f)
{
    for (int r = 0; r < f->shot.size; r++)
        if (!(hits_rank(&f->shot) && r == f->shot.victim) && !f->ranks.ended[r])
            return false;
    return true;
}

static void run(struct flight *f, double now)
{
    const struct shot *s = &f->shot;
    const bool all = ranks_poll(&f->ranks);

    if (!f->marked && atomic_load(&f->ranks.slots[s->job.marker].phase) == JOB_THERE)
        f->marked = now;
    if (f->marked && !f->fired && now >= f->marked + s->delay)
        fire(f);
    const bool due = all || (s->back != 0 && now >= f->fired + s->back);
    if (f->fired && !hits_rank(s) && !f->came_back && due)
        come_back(f);
    if (!all && !(f->fired && survivors_ended(f)))
        return;
    /* A silent rank 0 is detected only after 30 s during trib_init. */
    if (s->kind == RANK_STOPPED && s->job.place == AT_MEETING && s->victim == 0)
        ranks_signal(&f->ranks, 0, SIGKILL);
    f->reaped = ranks_seconds();
    f->stage = EMPTYING;
}

/* Check that each remaining tribd has released its slots before a stopped rank dies. */
static void await_empty(struct flight *f, double now)
{
    const struct shot *s = &f->shot;
    bool empty = true;

    for (int i = 0; i < s->services && empty; i++)
        empty = f->daemons[i].pid <= 0 || daemon_empty(&f->daemons[i]);
    if (!empty && now < f->reaped + patience(EMPTY_SECONDS))
        return;
    sweep.emptied = now - f->reaped > sweep.emptied ? now - f->reaped : sweep.emptied;
    if (!empty)
        complain(f, "tribd", 0, "or another one is not empty", now - f->reaped);
    for (int r = 0; r < s->size; r++)
        ranks_signal(&f->ranks, r, SIGKILL);
    ranks_wait(&f->ranks);
    judge(f);
    for (int i = 0; i < s->services; i++)
        daemon_signal(&f->daemons[i], SIGTERM);
    f->closed = now;
    f->stage = CLOSING;
}

static void await_end(struct flight *f, double now)
{
    bool gone = true;

    for (int i = 0; i < f->shot.services; i++) {
        int status = 0;
        if (f->daemons[i].pid <= 0)
            continue;
        if (!daemon_ended(&f->daemons[i], &status))
            gone = false;
        else if (status != 0)
            complain(f, "tribd", i, "ended badly", now - f->closed);
    }
    if (!gone && now < f->closed + patience(EMPTY_SECONDS))
        return;
    if (!gone)
        complain(f, "tribd", 0, "or another one does not end", now - f->closed);
    for (int i = 0; i < f->shot.services; i++) {
        if (f->bad)
            daemon_show(&f->daemons[i]);
        daemon_signal(&f->daemons[i], SIGKILL);
        for (int status;
             f->daemons[i].pid > 0 && !daemon_ended(&f->daemons[i], &status);)
            usleep(1000);
    }
    ranks_close(&f->ranks);
    sweep.bad += f->bad != 0;
    if (f->late && !f->bad)
        sweep.late[sweep.n_late++] = f->shot;
    f->stage = IDLE;
}

static void drive(struct flight *f)
{
    const double now = ranks_seconds();

    switch (f->stage) {
    case IDLE:
        break;
    case OPENING:
        open_daemons(f, now);
        break;
    case RUNNING:
        run(f, now);
        break;
    case EMPTYING:
        await_empty(f, now);
        break;
    case CLOSING:
        await_end(f, now);
        break;
    }
}

static void fire_all(const struct shot *shots, int n, int at_once)
{
    int next = 0, busy = 1;

    while (next < n || busy) {
        busy = 0;
        for (int i = 0; i < at_once; i++) {
            struct flight *f = &sweep.flights[i];
            if (f->stage == IDLE && next < n)
                assert_true(start_flight(f, &shots[next++]));
            drive(f);
            busy += f->stage != IDLE;
        }
        usleep(LOOK_US * (unsigned)tribtest_slowness());
    }
}

/* The faults ----------------------------------------------------------------------- */

static double uniform(uint64_t *random)
{
    *random = oracle_mix(*random);
    return (double)(*random >> 11) * 0x1p-53;
}

/* Draw a fault, the same for each index and seed. */
static struct shot aim(int index, const char *const *transports, int n)
{
    uint64_t random = oracle_mix(sweep.seed << 20 ^ (uint64_t)index);
    struct shot s = {.index = index,
                     .kind = (enum kind)(index % KINDS),
                     .transport = transports[index / (KINDS * PLACES) % n]};

    s.size = 2 + (int)(2 * uniform(&random));
    s.services = 1 + (int)(SERVICES * uniform(&random));
    s.victim = (int)((hits_rank(&s) ? s.size : s.services) * uniform(&random));
    s.job.place = (enum place)(index / KINDS % PLACES);
    s.job.marker = hits_rank(&s) ? s.victim : (int)(s.size * uniform(&random));
    s.job.hit = hits_rank(&s);
    if (stops(&s) && uniform(&random) < 0.7)
        s.stop_ms = STOP_MS * (int)tribtest_slowness();
    s.delay = patience((s.job.place == AT_MEETING ? 0.06 : 0.04) * uniform(&random));
    s.back = uniform(&random) * 0.3;
    if (s.kind == TRIBD_STOPPED)
        s.back = s.stop_ms ? s.back * 8 * s.stop_ms / 1e3 : s.back * 8 * 4;
    if (s.kind == TRIBD_STOPPED && uniform(&random) < 0.3)
        s.back = 0;
    s.job.returns = !hits_rank(&s) && s.job.place != AT_LEAVING &&
                    (s.services > 1 || (s.back != 0 && s.kind != TRIBD_KILLED));
    s.job.seed = random;
    return s;
}

static bool is_wanted(int index)
{
    const char *comma;

    for (const char *at = sweep.only; at; at = comma ? comma + 1 : NULL) {
        if (atoi(at) == index)
            return true;
        comma = strchr(at, ',');
    }
    return !sweep.only;
}

static int aim_all(void)
{
    static const char *const all[] = {"shm", "tcp",
#if HAVE_UCX
                                      "ucx"
#endif
    };
    const char *const *transports = sweep.transport ? &sweep.transport : all;
    const int n = sweep.transport ? 1 : (int)(sizeof(all) / sizeof(*all));
    int shots = 0;

    for (int i = 0; i < n * KINDS * PLACES * sweep.rounds; i++)
        if (is_wanted(i))
            sweep.shots[shots++] = aim(i, transports, n);
    return shots;
}

TEST(test_faults)
{
    const int n = aim_all();

    printf("# seed %llu\n", (unsigned long long)sweep.seed);
    assert_true(daemon_folder(sweep.folder));
    fire_all(sweep.shots, n, sweep.at_once);
    for (int try = 1; sweep.n_late && try <= MORE_TRIES; try++) {
        const int again = sweep.n_late;
        printf("# %d of %d late, once more\n", again, n);
        memcpy(sweep.shots, sweep.late, sizeof(sweep.late));
        for (int i = 0; i < again; i++)
            sweep.shots[i].tries = try;
        sweep.n_late = 0;
        fire_all(sweep.shots, again, 1);
    }
    daemon_remove(sweep.folder);
    printf("# %d shots; each tribd holds nothing after %.2f s\n", n, sweep.emptied);
    for (int k = 0; k < KINDS; k++)
        printf("# %s: slowest after %.2f s\n", kind_names[k], sweep.slowest[k]);
    assert_true(n > 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child, no zombie */
    assert_int_equal(sweep.bad, 0);
}

static bool take(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--long") == 0) {
            sweep.rounds = ROUNDS;
            continue;
        }
        if (!value)
            return false;
        if (strcmp(argv[i], "--seed") == 0)
            sweep.seed = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--transport") == 0)
            sweep.transport = value;
        else if (strcmp(argv[i], "--only") == 0)
            sweep.only = value;
        else if (strcmp(argv[i], "--at-once") == 0)
            sweep.at_once = atoi(value);
        else
            return false;
        i++;
    }
    return sweep.at_once >= 1 && sweep.at_once <= AT_ONCE;
}

int main(int argc, char **argv)
{
    if (!take(argc, argv)) {
        fprintf(stderr, "usage: %s [--seed S] [--transport T] [--only I,...] "
                        "[--at-once N] [--long]\n", argv[0]);
        return 2;
    }
    tribtest_seconds = sweep.rounds == 1 ? 900 : 0;
    return tribtest_run();
}
