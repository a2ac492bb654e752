/* SPDX-License-Identifier: BSD-3-Clause */
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <string.h>

#include "perf/common/sizes.h"
#include "perf/report/perf_report.h"

enum {
    BAR = 38, /* columns, after 22 of size and value */
    PARTS = 8, /* of a column, as block characters */
};

/* Characters of a picture: eighths of a column, the range from the bar up to p99, and
 * the micro sign. */
struct ink {
    const char *part[PARTS + 1];
    const char *behind;
    const char *micro;
};

static const struct ink blocks = {
    {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"},
    "░",
    "µs",
};
static const struct ink letters = {
    {"", "", "", "", "#", "#", "#", "#", "#"}, ".", "us"};

/* Maps values to columns, logarithmically or linearly from 0. */
struct axis {
    bool powers;
    double from, to; /* logarithmic: exponents */
};

bool report_utf8(void)
{
    bool is = false;
    locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);

    if (locale == (locale_t)0)
        return false;
    is = strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
    freelocale(locale);
    return is;
}

static double columns(const struct axis *axis, double value)
{
    const double at = axis->powers ? log10(value) : value;

    return fmin(fmax((at - axis->from) / (axis->to - axis->from), 0), 1) * BAR;
}

/* --- axes --- */

static double least_of(const struct report_row *rows, size_t n)
{
    double least = INFINITY;

    for (size_t i = 0; i < n; i++)
        least = rows[i].p50 > 0 ? fmin(least, rows[i].p50) : least;
    return least;
}

static double most_of(const struct report_row *rows, size_t n, bool time)
{
    double most = 0;

    for (size_t i = 0; i < n; i++)
        most = fmax(most, time ? fmax(rows[i].p50, rows[i].p99) : rows[i].GBps);
    return most;
}

/* Round up to one of 1, 2, 5, 10, … */
static double round_up(double value)
{
    const double power = pow(10, floor(log10(value)));
    const double times = value / power;

    return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

static void write_mark(char *line, double at, double value)
{
    char text[16];
    int column = (int)at;

    snprintf(text, sizeof(text), "%g", value);
    const int n = (int)strlen(text);
    if (column + n > BAR)
        column = BAR - n;
    for (int i = -1; i <= n; i++)
        if (column + i >= 0 && column + i < BAR && line[column + i] != ' ')
            return; /* another mark is in the way */
    memcpy(line + column, text, (size_t)n);
}

/* Print the line above the bars, with the values of some columns. */
static void draw_axis(const struct axis *axis, const char *unit, FILE *f)
{
    char line[BAR + 1];

    memset(line, ' ', BAR);
    line[BAR] = '\0';
    if (axis->powers)
        for (double e = axis->from; e <= axis->to; e++)
            write_mark(line, columns(axis, pow(10, e)), pow(10, e));
    else
        for (int i = 0; i <= 2; i++)
            write_mark(line, i * BAR / 2.0, axis->to * i / 2);
    for (size_t n = strlen(line); n > 0 && line[n - 1] == ' '; n--)
        line[n - 1] = '\0';
    const int bytes = (int)strlen(unit), wide = strstr(unit, "µ") != NULL;
    fprintf(f, "%10s %*s  %s\n", "size", 9 + (bytes > 0 && wide), unit, line);
}

/* --- bars --- */

static void draw_bar(const struct ink *ink, double to, double behind, FILE *f)
{
    const int eighths = (int)lround(to * PARTS);
    int at = eighths / PARTS;

    for (int i = 0; i < at; i++)
        fputs(ink->part[PARTS], f);
    const char *rest = ink->part[eighths % PARTS];
    fputs(rest, f);
    for (at += *rest != '\0'; at < (int)lround(behind); at++)
        fputs(ink->behind, f);
    fputc('\n', f);
}

static void draw_rows(const struct report_row *rows, size_t n, bool time,
                      const struct axis *axis, const struct ink *ink, FILE *f)
{
    for (size_t i = 0; i < n; i++) {
        const double value = time ? rows[i].p50 : rows[i].GBps;
        const double to = columns(axis, value);
        const double behind = time ? columns(axis, rows[i].p99) : 0;
        char size[32];
        const int digits = value < 10 ? 3 : value < 100 ? 2 : value < 10000 ? 1 : 0;

        fprintf(f, "%10s %9.*f%s",
                perf_size_text((size_t)rows[i].bytes, size, sizeof(size)), digits,
                value, to > 0 || behind > 0 ? "  " : "");
        draw_bar(ink, to, behind, f);
    }
}

void report_bars(const struct report_row *rows, size_t n, bool utf8, FILE *f)
{
    const struct ink *ink = utf8 ? &blocks : &letters;
    const double least = least_of(rows, n), most = most_of(rows, n, true);
    const double rate = most_of(rows, n, false);

    if (isfinite(least) && most > 0) {
        struct axis axis = {true, floor(log10(least)), ceil(log10(most))};
        axis.to += axis.to <= axis.from;
        fprintf(f, "\ntime: %s up to p50, %s on to p99\n", ink->part[PARTS],
                ink->behind);
        draw_axis(&axis, ink->micro, f);
        draw_rows(rows, n, true, &axis, ink, f);
    }
    if (rate > 0) {
        const struct axis axis = {false, 0, round_up(rate)};
        fputs("\nbus bandwidth\n", f);
        draw_axis(&axis, "GB/s", f);
        draw_rows(rows, n, false, &axis, ink, f);
    }
}
