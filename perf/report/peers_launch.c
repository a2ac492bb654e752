/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Build and launch the peer programs, and read their rows.
 */
#include "perf/report/peers_launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perf/coll/arguments.h"
#include "perf/common/perf_interrupt.h"
#include "perf/common/samples.h"
#include "perf/common/sizes.h"

enum { WORDS = 16, LINE = 512 };

/* --- processes --- */

static void child(int out, char *const *words)
{
    (void)setpgid(0, 0); /* so that a signal also reaches its children */
    (void)signal(SIGINT, SIG_DFL);
    perf_interrupt_take(true);
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (null >= 0)
        (void)dup2(null, 0);
    (void)dup2(out, 1);
    execvp(words[0], words);
    fprintf(stderr, "trib-perf: cannot run %s: %s.\n", words[0], strerror(errno));
    _exit(127);
}

/* Start a program and return its standard output; NULL: see errno. */
static FILE *start(char *const *words, pid_t *pid)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return NULL;
    fflush(NULL);
    perf_interrupt_take(false);
    *pid = fork();
    if (*pid == 0)
        child(ends[1], words);
    if (*pid > 0)
        (void)setpgid(*pid, *pid); /* parent and child both set it, whichever comes
                                    * first */
    perf_interrupt_pass(*pid);
    perf_interrupt_take(true);
    close(ends[1]);
    FILE *f = *pid > 0 ? fdopen(ends[0], "r") : NULL;
    if (f == NULL)
        close(ends[0]);
    return f;
}

/* Close the pipe, wait for the program, and return true if it succeeded. */
static bool end(FILE *f, pid_t pid)
{
    int status = 0;
    pid_t got;

    fclose(f);
    do
        got = waitpid(pid, &status, 0);
    while (got < 0 && errno == EINTR);
    perf_interrupt_pass(0);
    return got == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool script_of(const struct peers *peers, char *text, size_t bytes)
{
    return snprintf(text, bytes, "%s/run-peer.sh", peers->folder) < (int)bytes;
}

/* --- programs --- */

/* Parse "openmpi<TAB>Open MPI 4.1.4". */
static void take_kind(struct peers *peers, char *line)
{
    char *tab = strchr(line, '\t');

    line[strcspn(line, "\n")] = '\0';
    if (tab == NULL || peers->n == PEERS_MOST)
        return;
    *tab = '\0';
    struct peer_kind *kind = &peers->kind[peers->n++];
    snprintf(kind->id, sizeof(kind->id), "%.31s", line);
    snprintf(kind->name, sizeof(kind->name), "%.63s", tab + 1);
}

bool peers_open(struct peers *peers, const char *folder, char *why, size_t why_bytes)
{
    char script[4096], line[LINE];
    pid_t pid;

    *peers = (struct peers){.folder = folder, .out = "/tmp/trib-perf-peers-XXXXXX"};
    if (!script_of(peers, script, sizeof(script)) || access(script, X_OK) != 0) {
        peers->out[0] = '\0';
        snprintf(why, why_bytes, "there is no run-peer.sh in %s: %s", folder,
                 strerror(errno));
        return false;
    }
    if (mkdtemp(peers->out) == NULL) {
        peers->out[0] = '\0';
        snprintf(why, why_bytes, "cannot create a folder in /tmp: %s", strerror(errno));
        return false;
    }
    char *words[] = {script, "build", peers->out, NULL};
    FILE *f = start(words, &pid);
    while (f != NULL && fgets(line, sizeof(line), f) != NULL)
        take_kind(peers, line);
    if (f != NULL && end(f, pid) && peers->n > 0)
        return true;
    snprintf(why, why_bytes,
             "cannot build any peer: install Open MPI, MPICH or Gloo with its "
             "compiler (mpicc.openmpi, mpicc.mpich, g++ and libgloo-dev)");
    return false;
}

void peers_close(struct peers *peers)
{
    pid_t pid;
    char *words[] = {"rm", "-rf", peers->out, NULL};
    FILE *f = peers->out[0] != '\0' ? start(words, &pid) : NULL;

    if (f != NULL)
        (void)end(f, pid);
    peers->out[0] = '\0';
}

/* --- rows --- */

/* Parse "label,ranks,bytes,samples,batch,p50,min,max". */
static json_t *read_row(const char *line)
{
    int ranks;
    long long bytes, samples, batch;
    double p50, min, max;

    line = strchr(line, ',');
    if (line == NULL ||
        sscanf(line, ",%d,%lld,%lld,%lld,%lf,%lf,%lf", &ranks, &bytes, &samples, &batch,
               &p50, &min, &max) != 7 ||
        ranks < 1 || !(p50 > 0))
        return NULL;
    const double rate = (double)bytes / p50 * 1e-3;
    return json_pack("{s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f}", "bytes",
                     (json_int_t)bytes, "iters", (json_int_t)samples, "batch",
                     (json_int_t)batch, "p50_us", p50, "min_us", min, "max_us", max,
                     "algbw_GBps", rate, "busbw_GBps",
                     rate * perf_bus_factor(TRIB_ALLREDUCE, ranks));
}

/* Write sizes as "8,64"; the caller frees the text. */
static char *sizes_text(const struct perf_sizes *sizes)
{
    char *text = NULL;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);

    for (size_t i = 0; f != NULL && i < sizes->n; i++)
        fprintf(f, "%s%zu", i > 0 ? "," : "", sizes->bytes[i]);
    if (f != NULL)
        fclose(f);
    return text;
}

json_t *peers_launch(const struct peers *peers, size_t at, const struct perf_args *args)
{
    char script[4096], ranks[16], samples[32], ms[32], line[LINE];
    char *sizes = sizes_text(&args->sizes);
    struct peer_kind kind = peers->kind[at];
    struct peers copy = *peers;
    json_t *rows = json_array();
    pid_t pid;

    if (!script_of(peers, script, sizeof(script)) || sizes == NULL)
        return NULL;
    snprintf(ranks, sizeof(ranks), "%d", args->ranks);
    snprintf(samples, sizeof(samples), "%ld", args->iters);
    snprintf(ms, sizeof(ms), "%.0f", args->sample_s * 1e3);
    char *words[WORDS] = {script,
                          "launch",
                          copy.out,
                          kind.id,
                          ranks,
                          sizes,
                          samples,
                          ms,
                          args->in_place ? "in" : "out",
                          args->rewrite ? "rewrite" : NULL,
                          NULL};
    FILE *f = start(words, &pid);
    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        json_t *row = read_row(line);
        if (row != NULL)
            json_array_append_new(rows, row);
    }
    free(sizes);
    if (f != NULL && end(f, pid) && json_array_size(rows) > 0 && !perf_interrupted())
        return rows;
    json_decref(rows);
    return NULL;
}

static double median_of(json_t *row)
{
    return json_number_value(json_object_get(row, "p50_us"));
}

static json_t *row_of(json_t *rows, json_t *size)
{
    json_t *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        if (json_equal(json_object_get(row, "bytes"), size))
            return row;
    }
    return NULL;
}

json_t *peers_median(json_t *const *launches, size_t n)
{
    json_t *all = json_array(), *row;
    size_t i;

    json_array_foreach(launches[0], i, row)
    {
        json_t *of[PEERS_ROUNDS];
        size_t found = 0;
        for (size_t j = 0; j < n && j < PEERS_ROUNDS; j++) {
            json_t *other = row_of(launches[j], json_object_get(row, "bytes"));
            size_t to = found;
            if (other == NULL)
                continue;
            for (; to > 0 && median_of(of[to - 1]) > median_of(other); to--)
                of[to] = of[to - 1];
            of[to] = other;
            found++;
        }
        json_array_append(all, of[(found - 1) / 2]);
    }
    return all;
}
