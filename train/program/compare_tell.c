/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "train/program/compare.h"
#include "train/program/compare_parts.h"

static int lines_of_task(const struct compare *c, int first)
{
    int n = 1;

    while (first + n < c->n && c->lines[first + n].task == c->lines[first].task)
        n++;
    return n;
}

static void print_title(FILE *out, const struct train_line *first, const char *mark)
{
    char target[64] = "";
    double number;
    const bool has = train_target(first, &number, target, sizeof(target));

    fprintf(out, "\n%s%s: %s; %.0f ranks, %.0f steps, %d seed%s%s%s%s\n\n", mark,
            first->task->name, first->task->summary, first->results[0].ranks,
            first->results[0].steps, first->seeds,
            first->seeds == 1 ? "" : "s, mean ± standard deviation",
            has ? "; target " : "", target, mark);
}

/* Print the step time relative to dense at each rate, and the rates at which both are
 * equal, interpolated logarithmically. */
static void print_times(FILE *out, const struct train_line *line)
{
    double off_before = (double)NAN, bits_before = 0;

    fprintf(out, "- %s:", line->name);
    for (int l = 0; l < TRAIN_LINKS_MAX && line->links[l].rate; l++) {
        const char *rate = line->links[l].rate;
        const double bits = train_link_bits(rate);
        const double times = line->links[l].step_ms / line->dense->links[l].step_ms;
        const double off = log(times);

        if (!isfinite(off))
            continue;
        if (isfinite(off_before) && (off < 0) != (off_before < 0))
            fprintf(out, ", equal at about %.2g Gbit/s",
                    1e-9 * bits_before *
                        pow(bits / bits_before, off_before / (off_before - off)));
        fprintf(out, "%s %.2f at %s", bits_before > 0 ? "," : "", times, rate);
        off_before = off;
        bits_before = bits;
    }
    fputc('\n', out);
}

/* All ranks share a parameter server's link; dense sums use the links of all ranks. */
static void print_servers(FILE *out, const struct compare *c, int first)
{
    bool any = false;

    for (int i = first; i < first + lines_of_task(c, first); i++) {
        const struct train_line *line = &c->lines[i];

        if (!c->rows[i]->service || !line->dense || !isfinite(line->links[0].step_ms))
            continue;
        if (!any)
            fputs("\nParameter servers, whose tribd has one such link: step time "
                  "relative to dense:\n\n",
                  out);
        any = true;
        print_times(out, line);
    }
}

static void print_tables(const struct compare *c, FILE *out,
                         enum train_table_style style)
{
    for (int i = 0; i < c->n; i += lines_of_task(c, i)) {
        const struct train_line *first = &c->lines[i];

        print_title(out, first, style == TRAIN_TABLE_MARKDOWN ? "**" : "");
        train_table_print(out, first, lines_of_task(c, i), style);
        train_legend_print(out, first, lines_of_task(c, i), style);
        print_servers(out, c, i);
    }
    if (c->n_paces > 0)
        compare_paces_print(c, out, style);
}

static int write_markdown(const struct compare *c, const char *folder)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/compare.md", folder);
    file = train_file_open(path);
    if (!file)
        return -1;
    print_tables(c, file, TRAIN_TABLE_MARKDOWN);
    return train_file_close(file, path);
}

static int write_json(const struct compare *c, const char *path)
{
    struct train_slow slow[COMPARE_PACES_MAX * COMPARE_SLOW];

    return train_json_write(path, c->lines, c->n, slow, compare_paces_list(c, slow));
}

static int write_folder(const struct compare *c, const char *folder)
{
    char path[4096];
    int bad = write_markdown(c, folder);

    snprintf(path, sizeof(path), "%s/compare.csv", folder);
    bad |= train_csv_write(path, c->lines, c->n);
    snprintf(path, sizeof(path), "%s/compare.json", folder);
    bad |= write_json(c, path);
    snprintf(path, sizeof(path), "%s/stragglers.csv", folder);
    if (c->n_paces > 0)
        bad |= compare_paces_write(c, path);
    for (int i = 0; i < c->n; i += lines_of_task(c, i))
        bad |= compare_plot(folder, &c->lines[i], lines_of_task(c, i));
    return bad;
}

int compare_tell(const struct compare *c)
{
    const struct train_args *given = c->given;
    int bad = 0;

    if ((!given->csv || strcmp(given->csv, "-") != 0) &&
        (!given->json || strcmp(given->json, "-") != 0))
        print_tables(c, stdout, TRAIN_TABLE_TEXT);
    if (given->csv)
        bad |= train_csv_write(given->csv, c->lines, c->n);
    if (given->json)
        bad |= write_json(c, given->json);
    if (given->out)
        bad |= write_folder(c, given->out);
    return bad;
}
