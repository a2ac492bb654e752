/* SPDX-License-Identifier: BSD-3-Clause */
/* tribctl - show the state of a tribd, drain it, or end a job. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <tributary.h>

#include "agg/daemon/ctl_client.h"
#include "agg/daemon/ctl_server.h"
#include "agg/daemon/tribd_settings.h"
#include "base/error.h"
#include "tools/common/options.h"
#include "tools/common/rank_table.h"
#include "tools/common/ticker.h"
#include "tools/common/tool.h"
#include "tools/common/tool_table.h"

enum { FAILED = 1, WRONG = 2 };

struct arguments {
    uint64_t given; /* bit mask of given options */
    const char *file;
    char **words;
};

enum mode { TABLE, OTHER };

static const char *const modes[] = {
    [TABLE] = "tribctl jobs|snapshots",
    [OTHER] = "tribctl status|drain|kick|forget",
    NULL,
};

static const struct tool_option options[] = {
    TOOL_WIDE_ROW_OF(1 << TABLE),
    {"config", "FILE", tool_set_text, offsetof(struct arguments, file),
     .help =
         "tribd's configuration file: status, jobs and snapshots use its http; drain, "
         "kick and forget use its socket. TRIBD_HTTP and TRIBD_SOCKET take precedence"},
};

static const struct tool_command command = {
    .name = "tribctl",
    .usage =
        "usage: tribctl [--config FILE] status|jobs|snapshots|drain\n"
        "       tribctl [--config FILE] kick JOB [WHY] | forget JOB [VECTOR]\n"
        "\n"
        "Shows the state of the tribd on this host, and controls it.\n"
        "\n"
        "  status    show resources, totals and counts of jobs\n"
        "  jobs      list all jobs\n"
        "  snapshots list all snapshots of vectors of the parameter store\n"
        "  drain     accept no new jobs, and exit when the running ones have\n"
        "            disconnected, or after drain_ms\n"
        "  kick JOB [WHY]\n"
        "            end a job, by name or number; its ranks receive the reason and\n"
        "            continue without aggregators\n"
        "  forget JOB [VECTOR]\n"
        "            remove all snapshots of a job, or the snapshot of one vector;\n"
        "            USER/JOB if several users have snapshots of that job\n",
    .ending = "exit code: 0 success; 1 failure; 2 wrong arguments or settings",
    .options = options,
    .n_options = sizeof(options) / sizeof(*options),
    .words = "status jobs snapshots drain kick forget",
    .modes = modes,
    .given = offsetof(struct arguments, given),
    .stops = true,
    .rest = offsetof(struct arguments, words),
};

/* Text ----------------------------------------------------------------------------- */

/* Format a duration, such as "1.5 h", into text. */
static const char *time_text(double s, char text[24])
{
    if (s < 100)
        snprintf(text, 24, "%.1f s", s);
    else if (s < 6000)
        snprintf(text, 24, "%.1f min", s / 60);
    else if (s < 360000)
        snprintf(text, 24, "%.1f h", s / 3600);
    else
        snprintf(text, 24, "%.1f days", s / 86400);
    return text;
}

static json_int_t number(const json_t *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

static double seconds(const json_t *o, const char *name)
{
    return json_number_value(json_object_get(o, name));
}

/* Replace unprintable characters, so that no name sends control codes to the
 * terminal. */
static const char *word(const json_t *o, const char *name, char text[80])
{
    const char *value = json_string_value(json_object_get(o, name));

    snprintf(text, 80, "%s", value ? value : "?");
    for (char *p = text; *p; p++)
        if (*p < ' ' || *p > '~')
            *p = '?';
    return text;
}

/* Output --------------------------------------------------------------------------- */

/* Print "jobs 2 of 256"; a limit of 0 means no limit. */
static void print_held(const char *what, const char *name, const json_t *held,
                       const json_t *limits)
{
    printf("%-10s %" JSON_INTEGER_FORMAT, what, number(held, name));
    if (number(limits, name))
        printf(" of %" JSON_INTEGER_FORMAT, number(limits, name));
    putchar('\n');
}

static void print_status(const json_t *o)
{
    const json_t *held = json_object_get(o, "held"),
                 *limits = json_object_get(o, "limits");
    const json_t *total = json_object_get(o, "total"),
                 *events = json_object_get(o, "events");
    char a[24], b[24], version[80];

    printf("tribd %s, up for %s%s\n", word(o, "version", version),
           time_text(seconds(o, "uptime_s"), a),
           json_is_true(json_object_get(o, "draining"))
               ? ", draining: accepts no new jobs"
               : "");
    print_held("jobs", "jobs", held, limits);
    print_held("queue", "queued", held, limits);
    print_held("slots", "slots", held, limits);
    printf("%-10s %s of %s\n", "memory", tool_bytes_text(seconds(held, "bytes"), a),
           tool_bytes_text(seconds(limits, "bytes"), b));
    printf("%-10s %s received, %s sent, %" JSON_INTEGER_FORMAT " operations\n", "total",
           tool_bytes_text(seconds(total, "received_bytes"), a),
           tool_bytes_text(seconds(total, "sent_bytes"), b),
           number(total, "operations"));
    printf("%-10s %" JSON_INTEGER_FORMAT " admitted, %" JSON_INTEGER_FORMAT
           " queued, %" JSON_INTEGER_FORMAT " refused, %" JSON_INTEGER_FORMAT " lost\n",
           "so far", number(events, "jobs_admitted"), number(events, "jobs_queued"),
           number(events, "jobs_refused"), number(events, "jobs_lost"));
    printf("%-10s %" JSON_INTEGER_FORMAT " connections, %" JSON_INTEGER_FORMAT
           " failed to authenticate\n",
           "", number(events, "connections"),
           number(events, "authentication_failures"));
}

static void print_now(const json_t *job)
{
    const json_t *op = json_object_get(job, "operation");
    const json_t *waits = json_object_get(op, "waits_for");
    char age[24], phase[80];

    if (number(job, "position")) {
        printf("position %" JSON_INTEGER_FORMAT " in the queue",
               number(job, "position"));
        return;
    }
    if (number(job, "vectors")) {
        printf("store: %" JSON_INTEGER_FORMAT " vectors, %" JSON_INTEGER_FORMAT
               " pushes, %" JSON_INTEGER_FORMAT " pulls",
               number(job, "vectors"), number(job, "pushes"), number(job, "pulls"));
        if (number(job, "snapshots"))
            printf(", %" JSON_INTEGER_FORMAT " snapshots", number(job, "snapshots"));
        return;
    }
    if (!json_is_object(op)) {
        printf("idle");
        return;
    }
    printf("operation %" JSON_INTEGER_FORMAT " %s, %s", number(op, "number"),
           json_is_true(json_object_get(op, "stuck")) ? "is stuck"
                                                      : word(op, "phase", phase),
           time_text(seconds(op, "age_s"), age));
    if (json_is_integer(waits))
        printf(", waits for rank %" JSON_INTEGER_FORMAT, json_integer_value(waits));
}

/* Define the columns; the activity of a job follows them, or has its own line. */
static void add_job_columns(struct tool_table *t)
{
    tool_table_add(t, "job", "", 5, 0);
    tool_table_add(t, "name", "", -25, 0);
    tool_table_add(t, "user", "", -11, 1);
    tool_table_add(t, "state", "", -10, 0);
    tool_table_add(t, "ranks", "", 6, 0);
    tool_table_add(t, "slots", "", 9, 3);
    tool_table_add(t, "operations", "", 11, 0);
    tool_table_add(t, "received", "", 11, 2);
    tool_table_add(t, "sent", "", 11, 2);
}

static void print_jobs(const json_t *o)
{
    const json_t *jobs = json_object_get(o, "jobs"), *job;
    char a[24], b[24], name[80], user[80], state[80];
    struct tool_table t = {.n = 0};
    size_t i;

    add_job_columns(&t);
    tool_table_head(&t);
    json_array_foreach(jobs, i, job)
    {
        tool_table_cell(&t, "%" JSON_INTEGER_FORMAT, number(job, "id"));
        tool_table_cell(&t, "%s", word(job, "name", name));
        tool_table_cell(&t, "%s", word(job, "user", user));
        tool_table_cell(&t, "%s", word(job, "state", state));
        tool_table_cell(&t, "%" JSON_INTEGER_FORMAT, number(job, "ranks"));
        tool_table_cell(&t, "%" JSON_INTEGER_FORMAT, number(job, "slots"));
        tool_table_cell(&t, "%" JSON_INTEGER_FORMAT, number(job, "operations"));
        tool_table_cell(&t, "%s", tool_bytes_text(seconds(job, "received_bytes"), a));
        tool_table_cell(&t, "%s", tool_bytes_text(seconds(job, "sent_bytes"), b));
        printf(t.narrow ? "\n      " : "  ");
        print_now(job);
        tool_table_row_end(&t);
    }
    tool_table_end(&t);
}

static void print_snapshots(const json_t *o)
{
    const json_t *all = json_object_get(o, "snapshots"), *row;
    char a[24], b[24], name[80], user[80], vector[80];
    struct tool_table t = {.n = 0};
    size_t i;

    if (!json_is_object(all)) {
        puts("snapshots are disabled: tribd's setting snapshots is empty");
        return;
    }
    tool_table_add(&t, "job", "", -24, 0);
    tool_table_add(&t, "user", "", -11, 2);
    tool_table_add(&t, "vector", "", -25, 0);
    tool_table_add(&t, "version", "", 11, 1);
    tool_table_add(&t, "size", "", 11, 0);
    tool_table_add(&t, "age", "", 11, 0);
    tool_table_head(&t);
    json_array_foreach(json_object_get(all, "vectors"), i, row)
    {
        tool_table_cell(&t, "%s", word(row, "job", name));
        tool_table_cell(&t, "%s", word(row, "user", user));
        tool_table_cell(&t, "%s", word(row, "vector", vector));
        tool_table_cell(&t, "%" JSON_INTEGER_FORMAT, number(row, "version"));
        tool_table_cell(&t, "%s", tool_bytes_text(seconds(row, "bytes"), a));
        tool_table_cell(&t, "%s", time_text(seconds(row, "age_s"), b));
        tool_table_row_end(&t);
    }
    tool_table_end(&t);
    if (number(all, "vectors_left_out"))
        printf("… and %" JSON_INTEGER_FORMAT " more\n",
               number(all, "vectors_left_out"));
    printf("total %" JSON_INTEGER_FORMAT ", %s of %s\n", number(all, "count"),
           tool_bytes_text(seconds(all, "bytes"), a),
           tool_bytes_text(seconds(all, "disk_bytes"), b));
}

/* Commands ------------------------------------------------------------------------- */

static const char waiting[] = "tribctl: waiting for tribd";

static int fail(const struct trib_error *err)
{
    fprintf(stderr, "tribctl: %s\n", trib_error_text(err));
    return err->status == TRIB_ERR_CONFIG ? WRONG : FAILED;
}

static int show(const struct settings *s, void (*print)(const json_t *status))
{
    struct trib_error err = {0};
    json_error_t wrong;
    char *text;

    if (!s->http[0]) {
        fputs("tribctl: no status available: tribd's setting http is empty\n", stderr);
        return WRONG;
    }
    tool_ticker_begin(waiting);
    const trib_status_t asked = ctl_client_status(s->http, &err, &text);
    tool_ticker_end();
    if (asked != TRIB_OK)
        return fail(&err);
    json_t *status = json_loads(text, JSON_REJECT_DUPLICATES, &wrong);
    free(text);
    if (!json_is_object(json_object_get(status, "held"))) {
        json_decref(status);
        fprintf(stderr, "tribctl: the server at %s is not a tribd\n", s->http);
        return FAILED;
    }
    print(status);
    json_decref(status);
    return 0;
}

/* Send the line "VERB WHAT WHY". */
static int send_command(const struct settings *s, const char *verb, const char *what,
                        const char *why)
{
    struct trib_error err = {0};
    char line[CTL_LINE], answer[CTL_LINE + 16];
    bool done = false;

    if (!s->socket[0]) {
        fprintf(
            stderr,
            "tribctl: %s needs tribd's socket: set \"socket = /run/tribd/socket\" in "
            "the configuration file of both, or set TRIBD_SOCKET\n",
            verb);
        return WRONG;
    }
    if (snprintf(line, sizeof(line), "%s%s%s%s%s", verb, what[0] ? " " : "", what,
                 why[0] ? " " : "", why) >= (int)sizeof(line) - 1 ||
        strchr(line, '\n')) {
        fprintf(
            stderr,
            "tribctl: JOB and WHY must be one line of at most %d characters together\n",
            CTL_LINE - 8);
        return WRONG;
    }
    tool_ticker_begin(waiting);
    const trib_status_t st =
        ctl_client_command(s->socket, line, &err, answer, sizeof(answer), &done);
    tool_ticker_end();
    if (st != TRIB_OK)
        return fail(&err);
    fprintf(done ? stdout : stderr, "%s%s\n", done ? "" : "tribctl: ", answer);
    return done ? 0 : FAILED;
}

static int run(const struct settings *s, int argc, char **argv)
{
    const char *verb = argc ? argv[0] : "";
    const bool kick = strcmp(verb, "kick") == 0;
    const bool forget = strcmp(verb, "forget") == 0;

    if (argc == 1 && strcmp(verb, "status") == 0)
        return show(s, print_status);
    if (argc == 1 && strcmp(verb, "jobs") == 0)
        return show(s, print_jobs);
    if (argc == 1 && strcmp(verb, "snapshots") == 0)
        return show(s, print_snapshots);
    if (argc == 1 && strcmp(verb, "drain") == 0)
        return send_command(s, verb, "", "");
    if (forget && (argc == 2 || argc == 3) && argv[1][0] && !strchr(argv[1], ' '))
        return send_command(s, verb, argv[1], argc == 3 ? argv[2] : "");
    if (kick && (argc == 2 || argc == 3) && argv[1][0] && !strchr(argv[1], ' '))
        return send_command(s, verb, argv[1], argc == 3 ? argv[2] : "");
    if (!argc)
        fputs("tribctl: missing command: status, jobs, snapshots, drain, kick JOB or "
              "forget JOB\n",
              stderr);
    else if (kick)
        fputs("tribctl: kick requires one job, by name or number, and accepts a reason "
              "in quotes\n",
              stderr);
    else if (forget)
        fputs("tribctl: forget requires a job, and accepts one of its vectors\n",
              stderr);
    else if (argc == 1)
        fprintf(stderr, "tribctl: unknown command '%s'; see tribctl --help.\n", verb);
    else
        fprintf(stderr, "tribctl: too many arguments for '%s'; see tribctl --help.\n",
                verb);
    return WRONG;
}

static enum mode mode_of(const char *verb)
{
    return verb && (strcmp(verb, "jobs") == 0 || strcmp(verb, "snapshots") == 0)
               ? TABLE
               : OTHER;
}

static int tribctl_main(int argc, char **argv)
{
    struct settings settings;
    struct trib_error err = {0};
    struct arguments args = {0};
    const int code = tool_parse_program(&command, argc, argv, &args, stderr);
    int words = 0;

    if (code >= 0)
        return code;
    if (!tool_check_mode(&command, &args, mode_of(args.words[0]), stderr))
        return WRONG;
    if (settings_load(args.file, &settings, &err) != TRIB_OK)
        return fail(&err);
    while (args.words[words])
        words++;
    tool_fold_stdout();
    return run(&settings, words, args.words);
}

int main(int argc, char **argv)
{
    tool_begin();
    return tool_end("tribctl", tribctl_main(argc, argv));
}
