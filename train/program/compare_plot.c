/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Write a data file per line and a gnuplot script, and keep both with the images.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/program/compare.h"

enum { PATH_BYTES = 4096 };

static const char style[] =
    "set datafile separator ','\n"
    "set grid xtics ytics linetype 1 linecolor '#e4e4e4'\n"
    "set border 3 linecolor '#666666'\n"
    "set tics nomirror textcolor '#333333'\n"
    "# Okabe and Ito's colours, which colour-blind readers can tell apart.\n"
    "array colour[8] = ['#000000', '#0072b2', '#e69f00', '#009e73', '#cc79a7', "
    "'#d55e00', '#56b4e9', '#b8a800']\n"
    "array shape[8] = [7, 5, 9, 13, 11, 4, 6, 8]\n";

static FILE *open_in(const char *folder, const char *name, const char *ending)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof(path), "%s/%s%s", folder, name, ending);
    return train_file_open(path);
}

static int n_links(const struct train_line *line)
{
    int n = 0;

    while (n < TRAIN_LINKS_MAX && line->links[n].rate)
        n++;
    return n;
}

/* Write the points of a line: step, bytes, value, its spread, and seconds on this
 * machine and on each link. Values are means over the seeds. */
static int write_curve(const char *folder, const struct train_line *line)
{
    char name[160];
    FILE *file;

    snprintf(name, sizeof(name), "%s-%s", line->task->name, line->name);
    file = open_in(folder, name, ".csv");
    if (!file)
        return -1;
    fprintf(file, "step,wire_bytes,%s,sd,seconds", line->task->result);
    for (int l = 0; l < n_links(line); l++)
        fprintf(file, ",seconds_%s", line->links[l].rate);
    fputc('\n', file);
    for (int i = 0; i < line->results[0].n_points; i++) {
        const size_t at = offsetof(struct train_result, points) +
                          (size_t)i * sizeof(struct train_point);
        const double step = line->results[0].points[i].step;
        const struct train_spread value =
            train_spread_of(line, at + offsetof(struct train_point, value));

        fprintf(
            file, "%.0f,%.0f,%.4f,%.4f,%.4f", step,
            train_spread_of(line, at + offsetof(struct train_point, wire_bytes)).mean,
            value.mean, value.sd,
            train_spread_of(line, at + offsetof(struct train_point, seconds)).mean);
        for (int l = 0; l < n_links(line); l++)
            fprintf(file, ",%.4f", 1e-3 * step * line->links[l].step_ms);
        fputc('\n', file);
    }
    return fclose(file);
}

static void plot_curves(FILE *gp, const char *folder, const struct train_line *lines,
                        int n, int column, bool key)
{
    fprintf(gp, "plot ");
    for (int i = 0; i < n; i++) {
        char title[64] = "";

        if (key)
            snprintf(title, sizeof(title), "%s, %.2f", lines[i].name,
                     train_value_of(&lines[i]).mean);
        fprintf(
            gp,
            "%s '%s/%s-%s.csv' every ::1 using %d:3 with linespoints linewidth 2 "
            "pointsize 0.8 dashtype %d pointtype shape[%d] linecolor rgb colour[%d] "
            "title '%s'",
            i ? "," : "", folder, lines[i].task->name, lines[i].name, column, 1 + i / 8,
            1 + (i + 3 * (i / 8)) % 8, 1 + i % 8, title);
    }
    fputc('\n', gp);
}

static void value_axis(FILE *gp, const struct train_line *line)
{
    const struct train_spread dense = train_value_of(line);
    const bool lower = line->task->lower_is_better;

    fprintf(gp, "set ylabel 'test %s%s'\n", line->task->result, lower ? "" : " (%)");
    fprintf(gp, "set yrange [%.4g:%.4g]\n",
            lower ? dense.mean * 0.9 : fmax(0, dense.mean - 12),
            lower ? dense.mean * 2 : dense.mean + 1.5);
    fprintf(gp,
            "set object 1 rectangle from graph 0, first %.4f to graph 1, first %.4f "
            "behind fillcolor rgb '#dddddd' fillstyle solid noborder\n",
            dense.mean - dense.sd, dense.mean + dense.sd);
}

static void plot_bytes(FILE *gp, const char *folder, const struct train_line *lines,
                       int n)
{
    fprintf(
        gp,
        "set terminal pngcairo size 1200,750 font 'DejaVu Sans,13' background "
        "'#ffffff'\nset output '%s/bytes-%s.png'\n"
        "set title \"{/=19 %s on %.0f ranks: result per byte}\\n"
        "up and to the left is better; the band is dense\"\n"
        "set xlabel 'bytes sent per rank'\nset logscale x 10\nset format x '10^{%%T}'\n"
        "set key outside right center\n",
        folder, lines->task->name, lines->task->name, lines->results[0].ranks);
    value_axis(gp, lines);
    plot_curves(gp, folder, lines, n, 2, true);
}

/* The key is next to the plots, so that it hides no line. */
static void plot_seconds(FILE *gp, const char *folder, const struct train_line *lines,
                         int n)
{
    const int links = n_links(lines), width = 560 * links + 240;
    const double left = 70.0 / width, right = 1 - 225.0 / width;

    fprintf(
        gp,
        "set output\nset terminal pngcairo size %d,700 font 'DejaVu Sans,12' "
        "background '#ffffff'\nset output '%s/seconds-%s.png'\n"
        "set multiplot layout 1,%d title '{/=17 %s: %s over time, for each link rate}' "
        "margins screen %.4f,%.4f,0.1,0.88 spacing screen %.4f\nset xlabel 'seconds'\n"
        "set format x '%%g'\n",
        width, folder, lines->task->name, links, lines->task->name, lines->task->result,
        left, right, 70.0 / width);
    for (int l = 0; l < links; l++) {
        fprintf(gp, "set title '%s%s'\n", lines->links[l].rate,
                lines->links[l].measured ? "" : ", from bytes");
        fprintf(gp, "set key %s\n",
                l == links - 1 ? "at screen 0.995,0.88 right top font ',11'" : "off");
        plot_curves(gp, folder, lines, n, 6 + l, l == links - 1);
        fputs("unset ylabel\n", gp);
    }
    fputs("unset multiplot\n", gp);
}

static int write_hidden(const char *folder, const struct train_line *lines, int n)
{
    char name[96];
    FILE *file;

    snprintf(name, sizeof(name), "hidden-%s", lines->task->name);
    file = open_in(folder, name, ".csv");
    if (!file)
        return -1;
    for (int i = 0; i < n; i++) {
        fprintf(
            file, "%s,%.2f", lines[i].name,
            100 *
                train_spread_of(&lines[i], offsetof(struct train_result, hidden)).mean);
        for (int l = 0; l < n_links(lines); l++)
            fprintf(file, ",%.2f",
                    lines[i].links[l].measured ? 100 * lines[i].links[l].hidden
                                               : (double)NAN);
        fputc('\n', file);
    }
    return fclose(file);
}

static void plot_hidden(FILE *gp, const char *folder, const struct train_line *lines,
                        int n)
{
    const char *task = lines->task->name;

    fprintf(
        gp,
        "set output\nreset\n%sset terminal pngcairo size %d,560 font 'DejaVu Sans,12' "
        "background '#ffffff'\nset output '%s/hidden-%s.png'\n"
        "set title '{/=17 %s: share of a step without waiting for the sum}'\n"
        "set ylabel '%% of a step'\nset yrange [0:110]\nset style data histogram\n"
        "set style histogram clustered gap 1\nset style fill solid noborder\n"
        "set xtics rotate by -40\nset key top left horizontal\n"
        "plot '%s/hidden-%s.csv' using 2:xtic(1) linecolor rgb colour[1] title 'shared "
        "memory'",
        style, 300 + 46 * n, folder, task, task, folder, task);
    for (int l = 0; l < n_links(lines); l++)
        if (lines->links[l].measured)
            fprintf(gp, ", '' using %d linecolor rgb colour[%d] title '%s'", 3 + l,
                    2 + l % 7, lines->links[l].rate);
    fputc('\n', gp);
}

/* Run gnuplot; return 0 on success, or if gnuplot is not installed. */
static int draw(const char *folder, const char *name)
{
    char command[2 * PATH_BYTES];

    if (system("command -v gnuplot >/dev/null") != 0) {
        puts("No plots: gnuplot is not installed (package gnuplot-nox).");
        return 0;
    }
    snprintf(command, sizeof(command), "gnuplot '%s/%s.gp'", folder, name);
    if (system(command) == 0)
        return 0;
    fprintf(stderr, "trib-train: command failed: %s\n", command);
    return -1;
}

int compare_plot(const char *folder, const struct train_line *lines, int n)
{
    char name[64];
    int bad = 0;
    FILE *gp;

    if (strchr(folder, '\'')) {
        fprintf(stderr,
                "trib-train: --out %s: a folder for plots must not have a quote in its "
                "name\n",
                folder);
        return -1;
    }
    snprintf(name, sizeof(name), "plot-%s", lines->task->name);
    gp = open_in(folder, name, ".gp");
    if (!gp)
        return -1;
    for (int i = 0; i < n; i++)
        bad |= write_curve(folder, &lines[i]);
    bad |= write_hidden(folder, lines, n);
    fputs(style, gp);
    plot_bytes(gp, folder, lines, n);
    if (n_links(lines) > 0)
        plot_seconds(gp, folder, lines, n);
    plot_hidden(gp, folder, lines, n);
    bad |= fclose(gp);
    return bad ? -1 : draw(folder, name);
}
