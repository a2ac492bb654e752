/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time of a step when each rank is a host with its own link.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/program/compare_parts.h"

enum { STEPS = 64 /* the second half is timed */, STEPS_QUICK = 32, BATCH = 4 };
/* time of a gradient, unless --compute-ms is given */
static const double compute_ms = 5;

/* Estimate the time of a step if no hosts can be made: the time on this machine plus
 * the transfer time, without overlap. */
static void time_from_bytes(struct train_line *line, struct train_link *link,
                            bool server)
{
    const struct train_result *result = &line->results[0];
    const double links = server ? result->ranks : 1; /* links that share the server's */

    link->step_ms = train_step_ms(line) + 8e3 * links * result->wire_bytes /
                                              result->steps /
                                              train_link_bits(link->rate);
}

static void time_line(struct compare *c, int i, const struct hosts *hosts,
                      const char *service, struct train_link *link)
{
    struct train_line *line = &c->lines[i];
    struct train_args args = c->args[i];
    char title[64];
    struct train_result *result = train_results_make(1);
    const size_t steps = c->given->quick ? STEPS_QUICK : STEPS;
    const struct train_job job = {.args = &args,
                                  .task = line->task,
                                  .title = title,
                                  .results = result,
                                  .seeds = 1,
                                  .timed_from = steps / 2};

    args.steps = steps;
    args.epochs = 0;
    args.batch = BATCH;
    args.compute_ms = link->compute_ms;
    args.service = service;
    args.service_auth = NULL;
    snprintf(title, sizeof(title), "%s %s %s", link->rate, line->task->name,
             line->name);
    if (!result || !compare_start(c, &job, hosts)) {
        fprintf(stderr, "trib-train: compare: row %s %s failed at %s\n",
                line->task->name, line->name, link->rate);
        c->failed++;
        return;
    }
    link->step_ms = 1e3 * result->seconds / (result->steps - (double)job.timed_from);
    link->hidden = result->hidden;
    link->measured = true;
}

static bool any_service(const struct compare *c)
{
    bool any = false;

    for (int i = 0; i < c->n; i++)
        any |= c->rows[i]->service;
    return any;
}

/* Make a host for each rank, and one for tribd if a row needs it. */
static void time_link(struct compare *c, int l, const char *rate)
{
    const int ranks = c->args[0].ranks;
    const bool serves = any_service(c);
    struct own_tribd *tribd = NULL;
    struct hosts *hosts = NULL;
    char why[256];
    const bool refused = hosts_refused(why, sizeof(why)) ||
                         hosts_open(ranks + serves, rate, &hosts) != 0;
    const bool no_tribd =
        !refused && serves && own_tribd_start(hosts, ranks, false, &tribd) != 0;

    if (refused && l == 0)
        printf("Cannot create hosts (%s): times over links are computed from bytes.\n",
               why);
    for (int i = 0; i < c->n; i++) {
        struct train_link *link = &c->lines[i].links[l];

        if (c->lines[i].seeds == 0 || c->stopped)
            continue;
        *link = (struct train_link){
            .rate = rate,
            .compute_ms = c->given->compute_ms > 0 ? c->given->compute_ms : compute_ms,
            .step_ms = (double)NAN,
            .hidden = (double)NAN};
        if (refused)
            time_from_bytes(&c->lines[i], link, c->rows[i]->service);
        else if (!c->rows[i]->service)
            time_line(c, i, hosts, NULL, link);
        else if (!no_tribd)
            time_line(c, i, hosts, own_tribd_address(tribd), link);
    }
    own_tribd_end(tribd);
    hosts_close(hosts);
}

void compare_time(struct compare *c)
{
    static const char *const usual[] = {"1gbit", "10gbit"};
    const struct train_args *given = c->given;
    const int n = c->n == 0        ? 0
                  : given->n_links ? given->n_links
                                   : (int)(sizeof(usual) / sizeof(*usual));

    for (int l = 0; l < n && !c->stopped; l++)
        time_link(c, l, given->n_links ? given->link[l] : usual[l]);
}
