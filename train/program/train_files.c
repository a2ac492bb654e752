/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trainings as files: one object or line per training and seed.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include <tributary.h>

#include "train/program/train_table.h"

static bool to_stdout(const char *path)
{
    return strcmp(path, "-") == 0;
}

static int cannot(const char *path)
{
    fprintf(stderr, "trib-train: %s: %s\n", path, strerror(errno));
    return -1;
}

FILE *train_file_open(const char *path)
{
    FILE *file = to_stdout(path) ? stdout : fopen(path, "w");

    if (!file)
        cannot(path);
    return file;
}

int train_file_close(FILE *file, const char *path)
{
    errno = 0;
    const int bad = fflush(file) != 0 || ferror(file);

    if (bad || (file != stdout && fclose(file) != 0)) {
        errno = errno ? errno : EIO;
        return cannot(path);
    }
    return 0;
}

struct figure {
    const char *key;
    size_t offset;
    int decimals;
};

#define FIGURE(field, decimals) \
    { \
#field, offsetof(struct train_result, field), decimals \
    }
static const struct figure figures[] = {
    FIGURE(value, 4),         FIGURE(ranks, 0),          FIGURE(params, 0),
    FIGURE(steps, 0),         FIGURE(rounds, 0),         FIGURE(message_ratio, 3),
    FIGURE(wire_ratio, 3),    FIGURE(wire_bytes, 0),     FIGURE(hidden, 4),
    FIGURE(seconds, 4),       FIGURE(gradient_error, 9), FIGURE(encoded_bytes, 0),
    FIGURE(encoded_ratio, 4), FIGURE(waited, 3),
};
enum { FIGURES = sizeof(figures) / sizeof(*figures) };

static double figure_of(const struct train_result *result, int i)
{
    double number;

    memcpy(&number, (const char *)result + figures[i].offset, sizeof(number));
    return number;
}

static void csv_number(FILE *file, double number, int decimals)
{
    if (isfinite(number))
        fprintf(file, ",%.*f", decimals, number);
    else
        fputc(',', file);
}

static void csv_link(FILE *file, const struct train_line *line, int link)
{
    const struct train_link *l = &line->links[link];

    fprintf(file, ",%s", l->rate);
    csv_number(file, l->step_ms, 3);
    csv_number(file, train_wait_ms(l), 3);
    csv_number(file, train_target_s(line, link), 3);
    fprintf(file, ",%s", l->measured ? "measured" : "bytes");
}

/* The text is last and quoted, because it may contain commas. */
static void csv_line(FILE *file, const struct train_line *line, int s)
{
    const struct train_result *result = &line->results[s];

    fprintf(file, "%s,%s,%s,%llu", line->task->name, line->name ? line->name : "",
            line->task->result, (unsigned long long)line->seed + (unsigned long long)s);
    for (int i = 0; i < FIGURES; i++)
        csv_number(file, figure_of(result, i), figures[i].decimals);
    fprintf(file, ",%016llx,%s", (unsigned long long)result->hash,
            result->identical ? "yes" : "no");
    for (int i = 0; i < TRAIN_LINKS_MAX && line->links[i].rate; i++)
        csv_link(file, line, i);
    fprintf(file, ",\"%s\"\n", line->what);
}

int train_csv_write(const char *path, const struct train_line *lines, int n)
{
    FILE *file = train_file_open(path);

    if (!file)
        return -1;
    fputs("task,row,result,seed", file);
    for (int i = 0; i < FIGURES; i++)
        fprintf(file, ",%s", figures[i].key);
    fputs(",hash,identical", file);
    for (int i = 0; i < TRAIN_LINKS_MAX && n > 0 && lines[0].links[i].rate; i++)
        fprintf(file,
                ",link%d,link%d_step_ms,link%d_wait_ms,link%d_to_target_s,link%d_by", i,
                i, i, i, i);
    fputs(",strategy\n", file);
    for (int i = 0; i < n; i++)
        for (int s = 0; s < lines[i].seeds; s++)
            csv_line(file, &lines[i], s);
    return train_file_close(file, path);
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *links_json(const struct train_line *line)
{
    json_t *array = json_array();

    for (int i = 0; i < TRAIN_LINKS_MAX && line->links[i].rate; i++) {
        const struct train_link *l = &line->links[i];

        json_array_append_new(
            array, json_pack("{s:s, s:f, s:o, s:o, s:o, s:o, s:b}", "rate", l->rate,
                             "compute_ms", l->compute_ms, "step_ms", number(l->step_ms),
                             "hidden", number(l->hidden), "wait_ms",
                             number(train_wait_ms(l)), "to_target_s",
                             number(train_target_s(line, i)), "measured", l->measured));
    }
    return array;
}

static json_t *points_json(const struct train_result *result)
{
    json_t *array = json_array();

    for (int i = 0; i < result->n_points; i++) {
        const struct train_point *p = &result->points[i];

        json_array_append_new(array, json_pack("[f, o, o, o, f]", p->step,
                                               number(p->wire_bytes), number(p->value),
                                               number(p->loss), p->seconds));
    }
    return array;
}

static json_t *line_json(const struct train_line *line, int s)
{
    const struct train_result *result = &line->results[s];
    char hash[17];
    json_t *object =
        json_pack("{s:s, s:s?, s:s, s:s, s:I, s:s?}", "task", line->task->name, "row",
                  line->name, "strategy", line->what, "result", line->task->result,
                  "seed", (json_int_t)(line->seed + (uint64_t)s), "paper", line->paper);

    for (int i = 0; i < FIGURES && object; i++)
        json_object_set_new(object, figures[i].key, number(figure_of(result, i)));
    snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)result->hash);
    json_object_set_new(object, "hash", json_string(hash));
    json_object_set_new(object, "identical", json_boolean(result->identical));
    json_object_set_new(object, "links", links_json(line));
    json_object_set_new(object, "points", points_json(result));
    return object;
}

static json_t *slow_json(const struct train_slow *slow, int n)
{
    json_t *array = json_array();

    for (int i = 0; i < n; i++)
        json_array_append_new(array, json_pack("{s:s, s:s, s:o, s:o}", "row",
                                               slow[i].row, "slow", slow[i].slow,
                                               "samples_s", number(slow[i].samples_s),
                                               "of_dense", number(slow[i].of_dense)));
    return array;
}

int train_json_write(const char *path, const struct train_line *lines, int n,
                     const struct train_slow *slow, int n_slow)
{
    FILE *file = train_file_open(path);
    json_t *array = json_array();

    for (int i = 0; i < n; i++)
        for (int s = 0; s < lines[i].seeds; s++)
            json_array_append_new(array, line_json(&lines[i], s));
    json_t *document = json_pack("{s:i, s:s, s:o}", "format", 1, "tributary",
                                 trib_version(), "trainings", array);
    if (n_slow > 0)
        json_object_set_new(document, "stragglers", slow_json(slow, n_slow));
    if (file &&
        json_dumpf(document, file, JSON_INDENT(1) | JSON_REAL_PRECISION(8)) == 0)
        fputc('\n', file);
    json_decref(document);
    return file ? train_file_close(file, path) : -1;
}

int train_curve_write(const char *path, const struct train_line *line)
{
    const struct train_result *result = &line->results[0];
    FILE *file = train_file_open(path);

    if (!file)
        return -1;
    fprintf(file, "step,wire_bytes,%s,loss,seconds\n", line->task->result);
    for (int i = 0; i < result->n_points; i++) {
        const struct train_point *p = &result->points[i];

        fprintf(file, "%.0f,", p->step);
        if (isfinite(p->wire_bytes))
            fprintf(file, "%.0f", p->wire_bytes);
        fprintf(file, ",%.3f,%.4f,%.3f\n", p->value, p->loss, p->seconds);
    }
    return train_file_close(file, path);
}

trib_status_t train_files_try(const struct train_args *args, struct trib_error *err)
{
    const char *const paths[] = {args->csv, args->json, args->curve};

    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
        FILE *file = paths[i] && !to_stdout(paths[i]) ? fopen(paths[i], "a") : stdout;

        if (!file)
            return trib_fail(err, TRIB_ERR_SYSTEM, "%s: %m", paths[i]);
        if (file != stdout)
            fclose(file);
    }
    return TRIB_OK;
}
