/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-info top - show a table of the ranks on this host, updated every second.
 *
 * The state pages of ranks are sampled SAMPLES times per second. The share of samples
 * with an operation in progress is the time inside the library. The rank that most
 * other ranks were seen waiting for is the straggler. Ranks measure nothing for this.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tributary.h>

#include "tools/common/rank_table.h"
#include "tools/info/info_commands.h"

enum { SAMPLES = 5, SECOND_NS = 1000000000 };

struct top {
    int pid; /* 0: all */
    const char *url; /* of a tribd; NULL: show ranks of this host */
    bool once, json;
};

/* A rank of a communicator, over the samples of one second. */
struct row {
    int pid, rank, ranks, root_pid;
    char host[72], root_host[72], part[32], text[512], cache[128];
    /* Samples; samples while busy; times another rank was seen waiting for this one. */
    int samples, busy, awaited;
    int waits_for;
    bool stopped;
    uint64_t number, sent, received;
    uint64_t first_number, first_moved; /* at the last sample before this second */
    double first_s; /* time of that sample */
    double now_s;
};

struct rows {
    struct row *list;
    size_t n, room;
    double now_s;
    bool no_memory;
};

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct row *find(struct rows *rows, const trib_rank_state_t *s)
{
    for (size_t i = 0; i < rows->n; i++) {
        struct row *r = &rows->list[i];
        if (r->pid == s->pid && r->rank == s->rank && r->root_pid == s->root_pid &&
            strcmp(r->part, s->part) == 0)
            return r;
    }
    if (rows->n == rows->room) {
        const size_t room = rows->room ? 2 * rows->room : 16;
        void *more = realloc(rows->list, room * sizeof(*rows->list));
        rows->no_memory |= !more;
        if (!more)
            return NULL;
        rows->list = more;
        rows->room = room;
    }
    struct row *r = &rows->list[rows->n++];
    *r = (struct row){.pid = s->pid,
                      .rank = s->rank,
                      .root_pid = s->root_pid,
                      .first_number = s->number,
                      .first_s = rows->now_s,
                      .first_moved = s->sent + s->received};
    snprintf(r->part, sizeof(r->part), "%s", s->part);
    return r;
}

static void take(void *arg, const trib_rank_state_t *s)
{
    struct rows *rows = arg;
    struct row *r = find(rows, s);

    if (!r)
        return;
    r->ranks = s->ranks;
    r->samples++;
    r->busy += s->busy || s->awaits[0];
    r->waits_for = s->waits_for;
    r->stopped = s->stopped;
    r->number = s->number;
    r->sent = s->sent;
    r->received = s->received;
    r->now_s = rows->now_s;
    snprintf(r->host, sizeof(r->host), "%s", s->host);
    snprintf(r->root_host, sizeof(r->root_host), "%s", s->root_host);
    snprintf(r->text, sizeof(r->text), "%s", s->text);
    snprintf(r->cache, sizeof(r->cache), "%s", s->cache);
}

static bool same_communicator(const struct row *a, const struct row *b)
{
    return a->root_pid == b->root_pid && strcmp(a->part, b->part) == 0 &&
           strcmp(a->root_host, b->root_host) == 0;
}

/* Take one sample. Count each waiting rank on the rank that it waits for. */
static bool take_sample(const struct top *top, struct rows *rows)
{
    rows->now_s = seconds();
    if (trib_ranks_each(top->pid, take, rows) != TRIB_OK || rows->no_memory)
        return false;
    for (size_t i = 0; i < rows->n; i++)
        for (size_t k = 0; rows->list[i].waits_for >= 0 && k < rows->n; k++)
            rows->list[k].awaited += rows->list[k].rank == rows->list[i].waits_for &&
                                     rows->list[i].now_s >= rows->now_s &&
                                     same_communicator(&rows->list[i], &rows->list[k]);
    return true;
}

/* Start the next second where this one ends; drop ranks that have exited. */
static void begin_second(struct rows *rows)
{
    size_t n = 0;

    for (size_t i = 0; i < rows->n; i++) {
        struct row r = rows->list[i];
        if (r.now_s < rows->now_s)
            continue;
        r.samples = r.busy = r.awaited = 0;
        r.first_number = r.number;
        r.first_moved = r.sent + r.received;
        r.first_s = r.now_s;
        rows->list[n++] = r;
    }
    rows->n = n;
}

static bool sample_second(const struct top *top, struct rows *rows)
{
    const struct timespec pause = {0, SECOND_NS / SAMPLES};

    if (!rows->n && !take_sample(top, rows))
        return false;
    begin_second(rows);
    for (int i = 0; i < SAMPLES; i++) {
        nanosleep(&pause, NULL);
        if (!take_sample(top, rows))
            return false;
    }
    return true;
}

static double a_second(const struct row *r, uint64_t now, uint64_t before)
{
    const double s = r->now_s - r->first_s;

    return s > 0 && now > before ? (double)(now - before) / s : 0;
}

static double operations_of(const struct row *r)
{
    return a_second(r, r->number, r->first_number);
}

static double bytes_of(const struct row *r)
{
    return a_second(r, r->sent + r->received, r->first_moved);
}

static double percent_of(const struct row *r)
{
    return r->samples ? 100.0 * r->busy / r->samples : 0;
}

/* Return the rank of the communicator that others waited for most, or NULL. */
static const struct row *straggler(const struct rows *rows, const struct row *of)
{
    const struct row *worst = NULL;

    for (size_t i = 0; i < rows->n; i++) {
        const struct row *r = &rows->list[i];
        if (r->awaited && same_communicator(r, of) &&
            (!worst || r->awaited > worst->awaited))
            worst = r;
    }
    return worst;
}

static bool is_silent(const struct row *r)
{
    return r->part[0] && !r->busy && r->number == r->first_number;
}

enum { ROW_WIDEST = 90 }; /* columns, including the remark on a late rank */

/* Print the rates of a rank, its activity on a second line, its cache on a third. */
static void print_row(const struct rows *rows, const struct row *r, int width)
{
    char moved[24];
    const int room = width > 8 ? width - 8 : 72;
    const bool narrow = width > 0 && width < ROW_WIDEST;
    const char *late = straggler(rows, r) != r ? ""
                       : narrow                ? "other ranks wait for it; "
                                               : "  other ranks wait for it";

    printf("%6d %8d  %-12.12s %12.0f %11s/s %5.0f %%%s\n", r->rank, r->pid, r->host,
           operations_of(r), tool_bytes_text(bytes_of(r), moved), percent_of(r),
           narrow ? "" : late);
    printf("        %s%.*s\n", narrow ? late : "",
           narrow ? room - (int)strlen(late) : room, r->text);
    if (r->cache[0])
        printf("        registration cache: %.*s\n", room, r->cache);
}

static void print_rows(const struct rows *rows, int width)
{
    const struct row *before = NULL;

    printf("%6s %8s  %-12s %12s %13s %7s\n", "rank", "process", "host", "operations/s",
           "bytes", "inside");
    for (size_t i = 0; i < rows->n; i++) {
        const struct row *r = &rows->list[i];
        if (is_silent(r))
            continue;
        if (!before || !same_communicator(before, r))
            printf("%s%s%d ranks, rank 0 is process %d on %s\n",
                   r->part[0] ? r->part : "job", r->part[0] ? " of a job, " : ", ",
                   r->ranks, r->root_pid, r->root_host);
        before = r;
        print_row(rows, r, width);
    }
    if (!rows->n)
        puts("no rank with a communicator on this host is visible to this user");
    fflush(stdout);
}

static int print_json(const struct rows *rows)
{
    json_t *list = json_array();

    for (size_t i = 0; i < rows->n; i++) {
        const struct row *r = &rows->list[i];
        json_array_append_new(
            list,
            json_pack("{s:i,s:i,s:i,s:i,s:s,s:s,s:s,s:s,s:s,s:b,s:f,s:f,s:f,s:f,s:b}",
                      "rank", r->rank, "ranks", r->ranks, "pid", r->pid, "root_pid",
                      r->root_pid, "host", r->host, "root_host", r->root_host, "part",
                      r->part, "text", r->text, "registration_cache", r->cache,
                      "stopped", r->stopped, "operations_per_s", operations_of(r),
                      "bytes_per_s", bytes_of(r), "inside_percent", percent_of(r),
                      "awaited", r->samples ? (double)r->awaited / r->samples : 0.0,
                      "straggler", straggler(rows, r) == r));
    }
    return info_print_json("ranks", list) ? 0 : 1;
}

static const struct tool_option options[] = {
    {"once", NULL, tool_set_switch, offsetof(struct top, once),
     .help = "sample for one second, print the table and exit"},
    {"json", NULL, tool_set_switch, offsetof(struct top, json),
     .help = "print JSON once and exit"},
};

static bool take_pid(const struct tool_given *given, const char *value)
{
    struct top *top = given->args;

    if (strncmp(value, "http://", 7) != 0 || top->url)
        return info_take_pid(given, value, &top->pid);
    top->url = value;
    return true;
}

const struct tool_command info_top_command = {
    .name = "trib-info top",
    .usage = "usage: trib-info top [PID|http://HOST:PORT] [--once] [--json]\n"
             "\n"
             "Shows the ranks on this host, updated every second, on a terminal: "
             "operations\n"
             "and bytes per second, the share of time with an operation in progress "
             "(inside),\n"
             "the state of each rank, and the rank the others wait for. PID as for\n"
             "trib-info stacks. With a URL, shows the jobs of a tribd. Ctrl-C exits.\n",
    .ending =
        "example: trib-info top $(pidof trib-run)\n"
        "exit code: 0 success; 1 failure, or no rank with --once; 2 wrong arguments",
    .options = options,
    .n_options = sizeof(options) / sizeof(*options),
    .word = take_pid,
};

/* Show the jobs of a tribd, as show() does for ranks. */
static int show_tribd(const struct top *top)
{
    char why[512];
    json_t *before = info_tribd_status(top->url, why, sizeof(why)), *now = NULL;
    bool again = !top->once && !top->json;

    while (before) {
        nanosleep(&(struct timespec){1, 0}, NULL);
        now = info_tribd_status(top->url, why, sizeof(why));
        if (!now)
            break;
        if (top->json) {
            json_dumpf(now, stdout, JSON_INDENT(2));
            puts("");
        } else {
            fputs(again ? "\033[H\033[J" : "", stdout);
            info_tribd_print(now, before);
        }
        json_decref(before);
        before = again ? now : NULL;
    }
    if (!now)
        fprintf(stderr, "trib-info top: %s\n", why);
    json_decref(before);
    if (now && !again)
        json_decref(now);
    return now ? 0 : 1;
}

static int show(const struct top *top)
{
    struct rows rows = {0};
    bool ok;

    while ((ok = sample_second(top, &rows)) && !top->once && !top->json) {
        fputs("\033[H\033[J", stdout);
        print_rows(&rows, tool_terminal_width(STDOUT_FILENO));
    }
    int code = ok && rows.n ? 0 : 1;
    if (!ok)
        fprintf(stderr, "trib-info top: %s\n",
                rows.no_memory ? "out of memory" : trib_last_error(NULL));
    else if (top->json)
        code |= print_json(&rows);
    else
        print_rows(&rows, tool_terminal_width(STDOUT_FILENO));
    free(rows.list);
    return code;
}

int info_top(int argc, char **argv)
{
    struct top top = {0};
    const int code = tool_parse(&info_top_command, argc, argv, &top, stderr);

    if (code >= 0)
        return code;
    if (!top.once && !top.json && !tool_terminal_width(STDOUT_FILENO)) {
        fputs(
            "trib-info top: standard output is not a terminal: add --once or --json\n",
            stderr);
        return 2;
    }
    return top.url ? show_tribd(&top) : show(&top);
}
