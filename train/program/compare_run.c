/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs of single rows: their selection, options, tribd and training.
 */
#include <signal.h>
#include <string.h>

#include "train/program/compare_parts.h"

bool compare_is_row(const char *word)
{
    const struct compare_row *row;

    for (int i = 0; (row = compare_row_at(i)); i++)
        if (strcmp(row->name, word) == 0)
            return true;
    return false;
}

bool compare_selects(const struct train_args *args, bool (*kind)(const char *),
                     const char *name)
{
    bool any = false;

    for (int i = 1; i < args->n_words; i++) {
        if (!kind(args->word[i]))
            continue;
        any = true;
        if (strcmp(args->word[i], name) == 0)
            return true;
    }
    return !any;
}

bool compare_names(const struct train_args *args, const char *row)
{
    return compare_selects(args, compare_is_row, row);
}

struct train_args compare_args(const struct train_args *given,
                               const struct compare_row *row)
{
    const struct compare_length *length = compare_length_of(row->task);
    struct train_args args = *given;

    args.strategy = row->strategy;
    args.codec = row->codec;
    args.feedback = row->feedback;
    args.parts = row->parts;
    args.optimizer = row->optimizer;
    args.rate = row->rate;
    args.code = row->code;
    if (!row->service)
        args.service = NULL;
    args.ranks = given->ranks ? given->ranks : 4;
    args.seeds = given->seeds ? given->seeds : given->quick ? 1 : 3;
    if (!given->steps && !given->epochs)
        args.steps = given->quick ? length->quick_steps
                     : row->steps ? row->steps
                                  : length->steps;
    return args;
}

int compare_serve(struct compare *c, const struct compare_row *row,
                  struct train_args *args)
{
    if (!row->service || args->service)
        return 0;
    if (!c->tribd) {
        /* Sealing would take half of the time of these rows. */
        const bool alone = hosts_be_alone();

        if (own_tribd_start(NULL, 0, alone, &c->tribd) != 0)
            return -1;
    }
    args->service = own_tribd_address(c->tribd);
    args->service_auth = own_tribd_auth(c->tribd);
    return 0;
}

/* The launcher has forwarded the signal to the ranks and reports it in its exit
 * code. */
static bool ended_by_user(int code)
{
    return code == 128 + SIGINT || code == 128 + SIGTERM || code == 128 + SIGHUP;
}

bool compare_start(struct compare *c, const struct train_job *job,
                   const struct hosts *hosts)
{
    const int code = c->stopped ? c->stopped : train_start(job, hosts, NULL);

    if (ended_by_user(code))
        c->stopped = code;
    return code == 0;
}
