/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Figures derived from results: means, spreads, ties, time to a target.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/program/train_table.h"

/* The margin between the dense result and the target. */
static const double points_off = 1, times_off = 1.05;

static double number_at(const struct train_result *result, size_t offset)
{
    double number;

    memcpy(&number, (const char *)result + offset, sizeof(number));
    return number;
}

struct train_spread train_spread_of(const struct train_line *line, size_t offset)
{
    struct train_spread s = {0, 0};

    for (int i = 0; i < line->seeds; i++)
        s.mean += number_at(&line->results[i], offset) / line->seeds;
    for (int i = 0; i < line->seeds && line->seeds > 1; i++) {
        const double off = number_at(&line->results[i], offset) - s.mean;

        s.sd += off * off / (line->seeds - 1);
    }
    s.sd = sqrt(s.sd);
    return s;
}

struct train_spread train_value_of(const struct train_line *line)
{
    return train_spread_of(line, offsetof(struct train_result, value));
}

double train_step_ms(const struct train_line *line)
{
    return 1e3 * train_spread_of(line, offsetof(struct train_result, seconds)).mean /
           line->results[0].steps;
}

bool train_is_tie(const struct train_line *line)
{
    if (!line->dense || line->seeds < 2 || line->dense->seeds < 2)
        return false;
    const struct train_spread mine = train_value_of(line),
                              dense = train_value_of(line->dense);

    return fabs(mine.mean - dense.mean) <= hypot(mine.sd, dense.sd);
}

bool train_target(const struct train_line *line, double *target_out, char *why,
                  size_t bytes)
{
    if (!line->dense)
        return false;
    const double dense = train_value_of(line->dense).mean;

    if (line->task->lower_is_better) {
        *target_out = dense * times_off;
        snprintf(why, bytes, "%.2f: dense + %.0f %%", *target_out,
                 100 * (times_off - 1));
    } else {
        *target_out = dense - points_off;
        snprintf(why, bytes, "%.2f %%: dense - %.0f", *target_out, points_off);
    }
    return true;
}

/* Return the steps to a result, interpolated on the mean curve; NAN: never reached. */
static double steps_to(const struct train_line *line, double target)
{
    const double sign = line->task->lower_is_better ? -1 : 1;
    double step_before = 0, off_before = 0;

    for (int i = 0; i < line->results[0].n_points; i++) {
        const size_t at = offsetof(struct train_result, points) +
                          (size_t)i * sizeof(struct train_point) +
                          offsetof(struct train_point, value);
        const double step = line->results[0].points[i].step;
        const double off = sign * (train_spread_of(line, at).mean - target);

        if (off >= 0 && i == 0)
            return step;
        if (off >= 0)
            return step - (step - step_before) * off / (off - off_before);
        step_before = step;
        off_before = off;
    }
    return (double)NAN;
}

double train_target_s(const struct train_line *line, int link)
{
    char why[64];
    double target;

    if (!line->links[link].rate || !train_target(line, &target, why, sizeof(why)))
        return (double)NAN;
    return 1e-3 * line->links[link].step_ms * steps_to(line, target);
}

double train_link_bits(const char *rate)
{
    char *unit;
    const double number = strtod(rate, &unit);

    return number * (strcmp(unit, "gbit") == 0 ? 1e9 : 1e6);
}

double train_wait_ms(const struct train_link *link)
{
    return (1 - link->hidden) * link->step_ms;
}
