/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Print the rows of all commands.
 */
#include "perf/common/columns.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "perf/common/sizes.h"

#define CONDITIONS (PERF_IF_A | PERF_IF_B | PERF_IF_C)

static bool is_present(const struct perf_columns *c, const struct perf_column *column)
{
    return (column->flags & CONDITIONS & ~c->conditions) == 0;
}

static bool is_real(enum perf_type type)
{
    return type >= PERF_FIXED;
}

static bool is_missing(const struct perf_column *column, const void *at)
{
    return (column->flags & PERF_OPTIONAL) != 0 && !isfinite(*(const double *)at);
}

static long long integer_of(enum perf_type type, const void *at)
{
    switch (type) {
    case PERF_FLAG:
        return *(const bool *)at;
    case PERF_INT:
        return *(const int *)at;
    case PERF_UINT32:
        return *(const uint32_t *)at;
    case PERF_UINT64:
        return (long long)*(const uint64_t *)at;
    case PERF_LONG:
        return *(const long *)at;
    case PERF_COUNT:
        return (long long)*(const double *)at;
    default:
        return (long long)*(const size_t *)at;
    }
}

static const char *text_at(const void *at)
{
    return *(const char *const *)at;
}

void perf_columns_head(struct perf_output *o, const struct perf_columns *c)
{
    const char *comma = "";

    for (size_t i = 0; i < c->n; i++) {
        const struct perf_column *column = &c->column[i];
        if (o->csv != NULL && column->key != NULL && !(column->flags & PERF_NO_CSV)) {
            fprintf(o->csv, "%s%s", comma, column->key);
            comma = ",";
        }
        if (column->head != NULL && is_present(c, column))
            tool_table_add(&o->rows, column->head, column->unit, column->width,
                           column->rank);
    }
    if (o->csv != NULL)
        fputc('\n', o->csv);
    if (o->table)
        tool_table_head(&o->rows);
    perf_output_flush(o);
}

static void pair_cell(struct tool_table *t, int digits, const double *pair)
{
    if (!isfinite(pair[0]))
        tool_table_cell(t, "%6s %5s", "-", "");
    else if (!isfinite(pair[1]))
        tool_table_cell(t, "%6.*f %5s", digits, pair[0], "");
    else
        tool_table_cell(t, "%6.*f %5.*f", digits, pair[0], digits, pair[1]);
}

static void table_cell(struct tool_table *t, const struct perf_column *column,
                       const void *at)
{
    char size[32];

    if (column->type <= PERF_QUOTED)
        tool_table_cell(t, "%s", text_at(at));
    else if (column->type == PERF_BYTES)
        tool_table_cell(t, "%s",
                        perf_size_text(*(const size_t *)at, size, sizeof(size)));
    else if (column->type == PERF_PAIR)
        pair_cell(t, column->shown, at);
    else if (!is_real(column->type))
        tool_table_cell(t, "%lld", integer_of(column->type, at));
    else if (is_missing(column, at))
        tool_table_cell(t, "-");
    else if (column->type == PERF_US)
        perf_output_us(t, *(const double *)at);
    else if (column->type == PERF_GENERAL)
        tool_table_cell(t, "%.*g", column->shown, *(const double *)at);
    else
        tool_table_cell(t, "%.*f", column->shown, *(const double *)at);
}

static void csv_cell(FILE *f, const struct perf_column *column, const void *at)
{
    if (column->type == PERF_TEXT)
        fputs(text_at(at), f);
    else if (column->type == PERF_QUOTED)
        fprintf(f, "\"%s\"", text_at(at));
    else if (!is_real(column->type))
        fprintf(f, "%lld", integer_of(column->type, at));
    else if (is_missing(column, at))
        return;
    else if (column->type == PERF_GENERAL)
        fprintf(f, "%.*g", column->digits, *(const double *)at);
    else
        fprintf(f, "%.*f", column->digits, *(const double *)at);
}

static json_t *json_cell(const struct perf_column *column, const void *at)
{
    if (column->type <= PERF_QUOTED)
        return json_string(text_at(at));
    if (column->type == PERF_FLAG)
        return json_boolean(*(const bool *)at);
    if (!is_real(column->type) || column->type == PERF_COUNT)
        return json_integer(integer_of(column->type, at));
    return is_missing(column, at) ? json_null() : json_real(*(const double *)at);
}

static void csv_row(FILE *f, const struct perf_columns *c, const char *row)
{
    const char *comma = "";

    for (size_t i = 0; i < c->n; i++) {
        const struct perf_column *column = &c->column[i];
        if (column->key == NULL || (column->flags & PERF_NO_CSV))
            continue;
        fputs(comma, f);
        comma = ",";
        if (is_present(c, column))
            csv_cell(f, column, row + column->offset);
    }
    fputc('\n', f);
}

static const char *title_of(const struct perf_columns *c, const char *row)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->column[i].flags & PERF_TITLE)
            return text_at(row + c->column[i].offset);
    return NULL;
}

json_t *perf_columns_row(struct perf_output *o, const struct perf_columns *c,
                         const void *row)
{
    json_t *object = o->results != NULL ? json_object() : NULL;
    const char *title = o->table ? title_of(c, row) : NULL;

    if (title != NULL && o->rows.narrow)
        puts(title);
    for (size_t i = 0; i < c->n; i++) {
        const struct perf_column *column = &c->column[i];
        const void *at = (const char *)row + column->offset;
        if (!is_present(c, column))
            continue;
        if (o->table && column->head != NULL)
            table_cell(&o->rows, column, at);
        if (object != NULL && column->key != NULL && !(column->flags & PERF_NO_JSON))
            json_object_set_new(object, column->key, json_cell(column, at));
    }
    if (title != NULL && !o->rows.narrow)
        printf("  %s", title);
    if (o->table)
        tool_table_row_end(&o->rows);
    if (o->csv != NULL)
        csv_row(o->csv, c, row);
    if (object != NULL)
        json_array_append_new(o->results, object);
    perf_output_flush(o);
    return object;
}
