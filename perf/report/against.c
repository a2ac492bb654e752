/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A row is slower beyond the spread if its median is above the old third quartile and
 * the old median is below its first quartile. So each median is outside the middle half
 * of the other's samples.
 */
#include "perf/common/output.h"
#include "perf/common/sizes.h"
#include "perf/report/perf_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>


static const struct report_row *find(const struct report_file *file,
                                     const struct report_row *like)
{
    for (size_t i = 0; i < file->own; i++)
        if (file->rows[i].bytes == like->bytes &&
            strcmp(file->rows[i].name, like->name) == 0 && file->rows[i].p50 > 0)
            return &file->rows[i];
    return NULL;
}

/* --- differences between the runs --- */

/* Return the value as text, which the caller frees. Settings have a unit and an
 * origin. */
static char *value_text(const json_t *value)
{
    const json_t *inner = json_object_get(value, "value");

    if (value == NULL)
        return strdup("unset");
    return json_dumps(inner != NULL ? inner : value,
                      JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
}

/* Print "ranks 2 and 4" for a key whose values differ. */
static void say_difference(const struct report_file *old, const struct report_file *new,
                           const char *object, const char *key, FILE *f)
{
    const json_t *a = json_object_get(json_object_get(old->document, object), key);
    const json_t *b = json_object_get(json_object_get(new->document, object), key);
    char *was = value_text(a), *is = value_text(b);

    if (!json_equal(a, b) && was != NULL && is != NULL) {
        const bool fits = strlen(key) + strlen(was) + strlen(is) <= 62;
        fprintf(f, "differs: %s %s%sand %s\n", key, was, fits ? " " : "\n           ",
                is);
    }
    free(was);
    free(is);
}

/* Print the keys of old, then those only in new. */
static void say_differences(const struct report_file *old,
                            const struct report_file *new, const char *object, FILE *f)
{
    json_t *a = json_object_get(old->document, object);
    json_t *b = json_object_get(new->document, object);
    const char *key;
    json_t *value;

    json_object_foreach(a, key, value)
    {
        say_difference(old, new, object, key, f);
    }
    json_object_foreach(b, key, value)
    {
        if (json_object_get(a, key) == NULL)
            say_difference(old, new, object, key, f);
    }
}

static const char *text_of(const json_t *document, const char *key)
{
    const char *text = json_string_value(json_object_get(document, key));

    return text != NULL ? text : "";
}

static void say_head(const struct report_file *old, const struct report_file *new,
                     FILE *f)
{
    static const char *const objects[] = {"machine", "settings", "run"};
    char title[256];

    fprintf(f, "%s\n", report_title(new, title, sizeof(title)));
    for (int i = 0; i < 2; i++) {
        const json_t *document = (i == 0 ? old : new)->document;
        fprintf(f, "%s: %s, tributary %s, %s\n", i == 0 ? "old" : "new",
                (i == 0 ? old : new)->path, text_of(document, "tributary"),
                text_of(document, "time"));
    }
    for (size_t i = 0; i < sizeof(objects) / sizeof(*objects); i++)
        say_differences(old, new, objects[i], f);
    fprintf(f, "%10s %10s %10s %8s %8s\n%10s %11s %11s\n", "size", "old p50", "new p50",
            "ratio", "spread", "", "µs", "µs");
}

/* --- rows --- */

static double spread(const struct report_row *row)
{
    return (row->upper - row->lower) / 2 / row->p50;
}

static const char *judge(const struct report_row *old, const struct report_row *new,
                         double limit, struct report_verdict *out)
{
    const bool above = limit > 0 && new->p50 > limit * old->p50;

    out->rows++;
    if (new->p50 > old->upper && old->p50 < new->lower) {
        out->slower++;
        out->above += above;
        return above ? "slower, above the limit" : "slower";
    }
    if (new->p50 < old->lower && old->p50 > new->upper) {
        out->faster++;
        return "faster";
    }
    return above ? "within the spread" : "";
}

static void say_row(const struct report_row *old, const struct report_row *new,
                    const char *verdict, FILE *f)
{
    char size[32];
    const int digits = old->p50 < 10 ? 3 : old->p50 < 100 ? 2 : 1;
    const double most = fmax(spread(old), spread(new));

    fprintf(f, "%10s %10.*f %10.*f %8.2f %6.0f %%%s%s\n",
            perf_size_text((size_t) new->bytes, size, sizeof(size)), digits, old->p50,
            digits, new->p50, new->p50 / old->p50, 100 * most, *verdict ? "  " : "",
            verdict);
}

static void say_sums(const struct report_verdict *v, size_t old_rows, size_t new_rows,
                     FILE *f)
{
    fprintf(f, "%zu row%s: %zu slower beyond the spread, %zu faster", v->rows,
            v->rows == 1 ? "" : "s", v->slower, v->faster);
    if (old_rows > v->rows)
        fprintf(f, "; %zu only in old", old_rows - v->rows);
    if (new_rows > v->rows)
        fprintf(f, "; %zu only in new", new_rows - v->rows);
    fputc('\n', f);
}

/* Print the rows of one name. */
static void say_rows(const struct report_file *old, const struct report_file *new,
                     const char *name, double limit, FILE *f,
                     struct report_verdict *out)
{
    bool named = *name == '\0';

    for (size_t i = 0; i < new->own; i++) {
        const struct report_row *now = &new->rows[i], *was = find(old, now);
        if (was == NULL || !(now->p50 > 0) || strcmp(name, now->name) != 0)
            continue;
        if (out->rows == 0)
            say_head(old, new, f);
        if (!named)
            fprintf(f, "%s\n", name);
        named = true;
        say_row(was, now, judge(was, now, limit, out), f);
    }
}

static bool is_first_of_name(const struct report_file *file, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(file->rows[i].name, file->rows[at].name) == 0)
            return false;
    return true;
}

bool report_against(const struct report_file *old, const struct report_file *new,
                    double limit, FILE *f, struct report_verdict *out, char *why,
                    size_t why_bytes)
{
    *out = (struct report_verdict){0};
    for (size_t i = 0; i < new->own; i++)
        if (is_first_of_name(new, i))
            say_rows(old, new, new->rows[i].name, limit, f, out);
    if (out->rows > 0) {
        say_sums(out, old->own, new->own, f);
        return true;
    }
    snprintf(why, why_bytes, "%s and %s have no row in common with times: %s",
             old->path, new->path, "measure the same sizes");
    return false;
}
