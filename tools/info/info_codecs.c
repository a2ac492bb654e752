/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Print the table of codecs, or the sheet of one codec.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include <tributary.h>

#include "tools/common/tool_table.h"
#include "tools/info/info_commands.h"

#define LINE_WIDTH 100
#define NUMBER_BYTES 24

/* Three digits: "0.0535", "1.01", "1250". */
static const char *number_text(double v, char text[NUMBER_BYTES])
{
    snprintf(text, NUMBER_BYTES, v >= 100 ? "%.0f" : "%.3g", v);
    return text;
}

static const char *delta_text(const trib_codec_sheet_t *sheet, char text[NUMBER_BYTES])
{
    return sheet->delta > 0 ? number_text(sheet->delta, text) : "-";
}

/* --- the table --- */

/* Column widths: the longest text of each, found in a separate pass. */
struct table {
    int row;
    int shared;
};

/* "norms" of "norms of the buckets" */
static int word_width(const char *text)
{
    return (int)strcspn(text, " ");
}

static void measure_row(void *arg, const trib_codec_sheet_t *sheet)
{
    struct table *table = arg;
    int row = tool_text_width(sheet->row), shared = word_width(sheet->shared);
    table->row = row > table->row ? row : table->row;
    table->shared = shared > table->shared ? shared : table->shared;
}

/* Print a text, cut with "…" if it does not fit. */
static void print_cut(const char *text, int width)
{
    if (tool_text_width(text) <= width) {
        puts(text);
        return;
    }
    for (; width > 1 && *text != '\0'; width--) {
        do
            putchar(*text++);
        while (((unsigned char)*text & 0xc0) == 0x80);
    }
    puts("…");
}

static void print_row(void *arg, const trib_codec_sheet_t *sheet)
{
    const struct table *table = arg;
    char bytes[NUMBER_BYTES], delta[NUMBER_BYTES];
    int n = printf("  %-*s  %7s  %6s  %8s  %5s  ", table->row, sheet->row,
                   number_text(sheet->bytes, bytes), sheet->linear ? "yes" : "-",
                   sheet->unbiased ? "yes" : "-", delta_text(sheet, delta));
    const char *shared = sheet->shared[0] != '\0' ? sheet->shared : "-";
    n += printf("%-*.*s  ", table->shared, word_width(shared), shared);
    print_cut(sheet->detail, LINE_WIDTH - n);
}

static trib_status_t print_table(const char *title)
{
    struct table table = {.shared = (int)strlen("shared")};
    trib_status_t status = trib_codec_describe(NULL, measure_row, &table);
    if (status != TRIB_OK)
        return status;
    printf("%-*s   B/elem  linear  unbiased  delta  %-*s\n", table.row + 2, title,
           table.shared, "shared");
    status = trib_codec_describe(NULL, print_row, &table);
    puts("  B/elem: bytes per element for 65536 normal values. "
         "See trib-info --codecs NAME for details.");
    return status;
}

/* --- a sheet --- */

static void widen(int *column, const char *text)
{
    int width = tool_text_width(text);
    if (width > *column)
        *column = width;
}

static const char *or_dash(const char *text)
{
    return text[0] != '\0' ? text : "-";
}

/* Omit the value column if all values are the default. */
static void print_params(const trib_codec_sheet_t *sheet)
{
    int value = 0, fallback = (int)strlen("default"), range = (int)strlen("range"),
        key = 10;
    const char *row = sheet->row;
    for (size_t i = 0; i < sheet->n_params; i++) {
        if (strcmp(sheet->params[i].value, sheet->params[i].fallback) != 0)
            widen(&value, "value  ");
        if (tool_text_width(sheet->params[i].key) + 2 >
            key) /* keys are indented by 2 */
            key = tool_text_width(sheet->params[i].key) + 2;
        widen(&fallback, sheet->params[i].fallback);
        widen(&range, sheet->params[i].range);
    }
    for (size_t i = 0; i < sheet->n_params && value > 0; i++)
        widen(&value, sheet->params[i].value);
    if (sheet->n_params > 0)
        printf("  %-*s  %-*s%-*s  %-*s  meaning\n", key, "parameter", value,
               value > 0 ? "value" : "", fallback, "default", range, "range");
    for (size_t i = 0; i < sheet->n_params; i++) {
        const trib_codec_param_t *p = &sheet->params[i];
        if (strcmp(p->row, row) != 0)
            printf("  +%s\n", p->row);
        row = p->row;
        printf("    %-*s  %-*s%-*s  %-*s  %s\n", key - 2, p->key, value,
               value > 0 ? or_dash(p->value) : "", fallback, or_dash(p->fallback),
               range, p->range, p->meaning);
    }
}

static void print_sheet(void *arg, const trib_codec_sheet_t *sheet)
{
    char bytes[NUMBER_BYTES], most[NUMBER_BYTES], delta[NUMBER_BYTES];
    (void)arg;
    printf("%s: %s\n", sheet->row, sheet->detail);
    printf("  %-10s  %s\n", "grammar", sheet->grammar);
    printf("  %-10s  %s\n", "text", sheet->text);
    print_params(sheet);
    printf("  %-10s  transform %s, select %s, quantise %s, pack %s\n", "stages",
           sheet->stages[0], sheet->stages[1], sheet->stages[2], sheet->stages[3]);
    printf("  %-10s  %s\n", "linear",
           sheet->linear ? "yes: encoded chunks are added without decoding"
                         : "no: chunks are decoded, then added");
    printf("  %-10s  %s\n", "unbiased", sheet->unbiased ? "yes: E C(x) = x" : "no");
    if (sheet->delta > 0)
        printf("  %-10s  %s: E|C(x) - x|^2 <= (1 - 1/delta) |x|^2\n", "delta",
               number_text(sheet->delta, delta));
    else
        printf("  %-10s  no bound claimed\n", "delta");
    printf("  %-10s  %s\n", "shared",
           sheet->shared[0] != '\0' ? sheet->shared : "nothing");
    printf("  %-10s  %s per element %s; at most %s\n", "bytes",
           number_text(sheet->bytes, bytes),
           sheet->learns ? "after training, including the shared state sent first"
                         : "for 65536 normal values",
           number_text(sheet->bytes_most, most));
    if (sheet->paper[0] != '\0')
        printf("  %-10s  %s\n", "paper", sheet->paper);
    printf("  %-10s  trib-perf allreduce --codec %s\n", "example", sheet->example);
}

trib_status_t info_codecs(const char *title, const char *codec)
{
    return codec != NULL ? trib_codec_describe(codec, print_sheet, NULL)
                         : print_table(title);
}

/* --- json --- */

static json_t *params_json(const trib_codec_sheet_t *sheet)
{
    json_t *params = json_array();
    for (size_t i = 0; i < sheet->n_params; i++) {
        const trib_codec_param_t *p = &sheet->params[i];
        json_array_append_new(
            params, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "row", p->row, "name",
                              p->key, "value", p->value, "default", p->fallback,
                              "range", p->range, "meaning", p->meaning));
    }
    return params;
}

static void add_sheet(void *arg, const trib_codec_sheet_t *sheet)
{
    json_t *o = json_pack("{s:s, s:s, s:s, s:s}", "name", sheet->row, "value",
                          sheet->grammar, "detail", sheet->detail, "text", sheet->text);
    json_object_set_new(o, "parameters", params_json(sheet));
    json_object_set_new(o, "stages",
                        json_pack("[ssss]", sheet->stages[0], sheet->stages[1],
                                  sheet->stages[2], sheet->stages[3]));
    json_object_set_new(o, "linear", json_boolean(sheet->linear));
    json_object_set_new(o, "unbiased", json_boolean(sheet->unbiased));
    json_object_set_new(o, "sparse", json_boolean(sheet->sparse));
    json_object_set_new(o, "feedback", json_boolean(sheet->feedback));
    json_object_set_new(o, "learns", json_boolean(sheet->learns));
    json_object_set_new(o, "delta",
                        sheet->delta > 0 ? json_real(sheet->delta) : json_null());
    json_object_set_new(o, "shared", json_string(sheet->shared));
    json_object_set_new(o, "bytes_per_element", json_real(sheet->bytes));
    json_object_set_new(o, "bytes_per_element_most", json_real(sheet->bytes_most));
    json_object_set_new(o, "paper", json_string(sheet->paper));
    json_object_set_new(o, "example", json_string(sheet->example));
    json_array_append_new(arg, o);
}

trib_status_t info_codecs_json(json_t *list, const char *codec)
{
    return trib_codec_describe(codec, add_sheet, list);
}
