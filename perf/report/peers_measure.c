/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rounds: each launches Tributary and then each peer once, so that all see the same
 * state of the machine.
 */
#include "perf/coll/arguments.h"
#include "perf/common/output.h"
#include "perf/common/perf_interrupt.h"
#include "perf/common/samples.h"
#include "perf/common/sizes.h"
#include "perf/report/peers_launch.h"
#include "perf/report/perf_report.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct turns {
    const struct perf_args *args; /* for each launch */
    int (*measure)(const struct perf_args *args);
    struct peers peers;
    json_t *document; /* from the first launch of Tributary */
    json_t *own[PEERS_ROUNDS];
    json_t *rows[PEERS_MOST][PEERS_ROUNDS];
    size_t n_own, n_rows[PEERS_MOST]; /* completed launches */
    double began;
};

/* Print the number of the launch, and the time left, estimated from the launches so
 * far. */
static void say_turn(const struct turns *t, int round, const char *name)
{
    const double took = perf_now() - t->began;
    size_t done = t->n_own;
    const size_t all = PEERS_ROUNDS * (t->peers.n + 1);

    if (!isatty(2))
        return;
    for (size_t i = 0; i < t->peers.n; i++)
        done += t->n_rows[i];
    fprintf(stderr, "\r\033[Kround %d of %d: %s", round + 1, PEERS_ROUNDS, name);
    if (done > 0)
        fprintf(stderr, ", %.0f s left", took / (double)done * (double)(all - done));
    if (*name == '\0')
        fputs("\r\033[K", stderr);
    fflush(stderr);
}

/* --- Tributary --- */

/* Measure in a new process, which starts the ranks; it prints no table. */
static json_t *measure_own(const struct turns *t)
{
    char path[128];
    struct perf_args args = *t->args;
    int status = 1;

    snprintf(path, sizeof(path), "%s/own.json", t->peers.out);
    args.json = path;
    fflush(NULL);
    perf_interrupt_take(false);
    const pid_t pid = fork();
    if (pid == 0) {
        (void)setpgid(0, 0); /* so that a signal also reaches its ranks */
        perf_interrupt_end();
        perf_interrupt_take(true);
        const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (null >= 0)
            (void)dup2(null, 1);
        const int code = t->measure(&args);
        fflush(NULL);
        _exit(code);
    }
    if (pid > 0)
        (void)setpgid(pid, pid);
    perf_interrupt_pass(pid);
    perf_interrupt_take(true);
    const bool ended = pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
    perf_interrupt_pass(0);
    return ended ? json_load_file(path, 0, NULL) : NULL;
}

static bool own_turn(struct turns *t, int round)
{
    json_t *document = measure_own(t);

    if (document == NULL)
        return false;
    t->own[round] = json_incref(json_object_get(document, "results"));
    t->n_own++;
    if (t->document == NULL)
        t->document = json_incref(document);
    json_decref(document);
    return true;
}

/* --- rounds --- */

static bool peer_turn(struct turns *t, size_t peer, int round)
{
    json_t *rows = peers_launch(&t->peers, peer, t->args);

    t->rows[peer][round] = rows;
    t->n_rows[peer] += rows != NULL;
    if (rows == NULL && !perf_interrupted())
        fprintf(stderr, "trib-perf: --peers: %s failed.\n", t->peers.kind[peer].name);
    return rows != NULL;
}

/* Return true if there are results: all rounds, or the rounds before an
 * interruption. */
static bool take_turns(struct turns *t)
{
    bool well = true;

    t->began = perf_now();
    for (int round = 0; round < PEERS_ROUNDS && well; round++) {
        say_turn(t, round, "Tributary");
        well = own_turn(t, round);
        for (size_t i = 0; i < t->peers.n && well; i++) {
            say_turn(t, round, t->peers.kind[i].name);
            well = peer_turn(t, i, round);
        }
    }
    say_turn(t, 0, "");
    if (!perf_interrupted())
        return well;
    if (t->n_own == 0)
        fputs("trib-perf: interrupted before the first launch was complete.\n", stderr);
    return t->n_own > 0;
}

/* Make the document: Tributary's rows, and next to them the peers'. */
static void complete(struct turns *t, const struct perf_args *args)
{
    json_t *peers = json_array(), *words = json_array();

    for (size_t i = 0; i < t->peers.n; i++)
        if (t->n_rows[i] > 0)
            json_array_append_new(
                peers, json_pack("{s:s, s:i, s:o}", "name", t->peers.kind[i].name,
                                 "rounds", (int)t->n_rows[i], "results",
                                 peers_median(t->rows[i], t->n_rows[i])));
    for (int i = 0; i < args->argc; i++)
        json_array_append_new(words, json_string(args->argv[i]));
    json_object_set_new(t->document, "argv", words);
    json_object_set_new(t->document, "results", peers_median(t->own, t->n_own));
    json_object_set_new(t->document, "peers", peers);
    if (perf_interrupted())
        json_object_set_new(json_object_get(t->document, "run"), "interrupted",
                            json_true());
}

static void turns_free(struct turns *t)
{
    for (int round = 0; round < PEERS_ROUNDS; round++) {
        json_decref(t->own[round]);
        for (size_t i = 0; i < PEERS_MOST; i++)
            json_decref(t->rows[i][round]);
    }
    json_decref(t->document);
    peers_close(&t->peers);
}

/* --- results --- */

/* Return the median of the row of this size; NAN: no such row. */
static double p50_of(json_t *rows, const json_t *bytes)
{
    const json_t *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        if (json_equal(json_object_get(row, "bytes"), bytes))
            return json_number_value(json_object_get(row, "p50_us"));
    }
    return (double)NAN;
}

/* Print the name of a peer without its version. */
static void print_name(const json_t *peer)
{
    const char *name = json_string_value(json_object_get(peer, "name"));
    const size_t n = strcspn(name, "0123456789");

    printf(" %11.*s  ratio", (int)(n > 0 && name[n] != '\0' ? n - 1 : n), name);
}

static void print_head(json_t *peers, int rounds, const struct perf_args *args)
{
    const json_t *peer;
    size_t p;

    printf("allreduce f32 sum, %d rank%s, %s, tributary %s\n", args->ranks,
           args->ranks == 1 ? "" : "s", args->in_place ? "in place" : "out of place",
           trib_version());
    printf("%s%d launch%s of each, in turns%s",
           perf_interrupted() ? "interrupted: at most " : "", rounds,
           rounds == 1 ? "" : "es", json_array_size(peers) > 0 ? " with" : "");
    json_array_foreach(peers, p, peer)
    {
        printf("%s %s", p > 0 ? "," : "",
               json_string_value(json_object_get(peer, "name")));
    }
    printf("\np50 in µs; ratio: the peer's over Tributary's\n%10s %10s", "size",
           "Tributary");
    json_array_foreach(peers, p, peer)
    {
        print_name(peer);
    }
    putchar('\n');
}

static void print_us(double us)
{
    printf(" %10.*f", us < 10 ? 3 : us < 100 ? 2 : us < 10000 ? 1 : 0, us);
}

static void print_table(const json_t *document, int rounds,
                        const struct perf_args *args)
{
    const json_t *peer;
    json_t *own = json_object_get(document, "results");
    json_t *peers = json_object_get(document, "peers");
    size_t p;

    print_head(peers, rounds, args);
    for (size_t i = 0; i < json_array_size(own); i++) {
        char size[32];
        const json_t *bytes = json_object_get(json_array_get(own, i), "bytes");
        const double us = p50_of(own, bytes);
        printf("%10s",
               perf_size_text((size_t)json_integer_value(bytes), size, sizeof(size)));
        print_us(us);
        json_array_foreach(peers, p, peer)
        {
            const double other = p50_of(json_object_get(peer, "results"), bytes);
            putchar(' ');
            print_us(other);
            printf(" %6.2f", other / us);
        }
        putchar('\n');
    }
}

static int show(struct turns *t, const struct perf_args *args,
                const struct report_file *old)
{
    char why[4352];

    complete(t, args);
    if (args->json == NULL || strcmp(args->json, "-") != 0) {
        tool_fold_stdout();
        print_table(t->document, (int)t->n_own, args);
    }
    if (args->json != NULL &&
        !perf_output_json(args->json, t->document, why, sizeof(why))) {
        fprintf(stderr, "trib-perf: %s.\n", why);
        return 1;
    }
    const int code = report_wanted(args) ? report_measured(args, t->document, old) : 0;
    return code == 0 && perf_interrupted() ? EXIT_INTERRUPTED : code;
}

/* --- all --- */

/* Options of one launch: all of them, and a limit on the time of samples. */
static struct perf_args launch_args(const struct perf_args *args)
{
    struct perf_args each = *args;

    each.sync = true;
    each.iters = args->iters > 0 ? args->iters : PEERS_SAMPLES;
    each.sample_s = args->sample_s > 1e-3 ? args->sample_s : 20e-3;
    each.peers = each.compare = each.html = each.csv = each.json = NULL;
    each.plot = false;
    return each;
}

int peers_measure(const struct perf_args *args,
                  int (*measure)(const struct perf_args *args))
{
    const struct perf_args each = launch_args(args);
    struct turns t = {.args = &each, .measure = measure};
    struct report_file old = {0};
    char why[4352];
    int code = 2;

    perf_interrupt_watch();
    if (isatty(2))
        fputs("building the programs of the peers", stderr);
    if (!report_prepare(args, &old, why, sizeof(why)) ||
        !peers_open(&t.peers, *args->peers ? args->peers : TRIB_PEERS, why,
                    sizeof(why)))
        fprintf(stderr, "trib-perf: --peers: %s.\n", why);
    else
        code = take_turns(&t) ? show(&t, args, &old) : 1;
    turns_free(&t);
    report_file_close(&old);
    return code;
}
