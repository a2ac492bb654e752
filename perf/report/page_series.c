/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/report/page_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- rows --- */

static int by_size(const void *x, const void *y)
{
    const struct report_row *a = x, *b = y;

    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static struct page_series *find(struct page *page, const struct report_file *file,
                                const char *name)
{
    for (size_t i = 0; i < page->n; i++)
        if (page->series[i].file == file && strcmp(page->series[i].name, name) == 0)
            return &page->series[i];
    return NULL;
}

static bool add_row(struct page *page, const struct report_file *file, size_t at)
{
    const struct report_row *row = &file->rows[at];
    struct page_series *s = find(page, file, row->name);

    if (s == NULL) {
        s = &page->series[page->n];
        *s = (struct page_series){
            .file = file, .name = row->name, .peer = at >= file->own};
        s->rows = calloc(file->n, sizeof(*s->rows));
        if (s->rows == NULL)
            return false;
        page->n++;
    }
    s->rows[s->n++] = *row;
    s->timed = s->timed || row->p50 > 0;
    return true;
}

/* --- names --- */

static const json_t *run_of(const struct report_file *file)
{
    return json_object_get(file->document, "run");
}

/* Return true if the value differs between measurements with times. */
static bool differs(const struct page *page, const char *key)
{
    const json_t *first = json_object_get(run_of(page->series[0].file), key);

    for (size_t i = 1; i < page->n_timed; i++) {
        const json_t *other = json_object_get(run_of(page->series[i].file), key);
        if (other != first && !json_equal(first, other)) /* both may lack it */
            return true;
    }
    return false;
}

static void add_word(char *text, size_t bytes, const char *word)
{
    const size_t used = strlen(text);

    if (*word && used < bytes)
        snprintf(text + used, bytes - used, "%s%s", used > 0 ? ", " : "", word);
}

/* Write "int8", "no codec", "4 ranks", "density 0.1" or "in place"; "" for options that
 * are off. */
static char *run_word(const char *key, const json_t *value, char *word, size_t bytes)
{
    const char *text = json_string_value(value);
    const double number = json_number_value(value);

    word[0] = '\0';
    if (text != NULL && strcmp(text, "none") == 0)
        snprintf(word, bytes, "no %s", key);
    else if (text != NULL)
        snprintf(word, bytes, "%s", text);
    else if (json_is_number(value) && strcmp(key, "ranks") == 0)
        snprintf(word, bytes, "%g rank%s", number, number == 1 ? "" : "s");
    else if (json_is_number(value) && strcmp(key, "link_gbps") == 0)
        snprintf(word, bytes, "links of %g Gbit/s", number);
    else if (json_is_number(value) && strcmp(key, "round_trip_ms") == 0)
        snprintf(word, bytes, "round trip of %g ms", number);
    else if (json_is_number(value))
        snprintf(word, bytes, "%s %g", key, number);
    else if (json_is_true(value))
        snprintf(word, bytes, "%s", key);
    for (char *at = word; (at = strchr(at, '_')) != NULL && text == NULL;)
        *at = ' ';
    return word;
}

static bool is_kind(const char *key)
{
    return strcmp(key, "command") == 0 || strcmp(key, "collective") == 0;
}

static bool is_skipped(const char *key, const char *const *skip)
{
    for (; *skip != NULL; skip++)
        if (strcmp(key, *skip) == 0)
            return true;
    return false;
}

/* Add the values of the run that differ between documents, or only the command. */
static void add_differences(const struct page *page, const struct report_file *file,
                            bool kind_alone, const char *const *skip, char *text,
                            size_t bytes)
{
    const char *key;
    json_t *value;
    char word[96];

    json_object_foreach((json_t *)run_of(file), key, value)
    {
        if (differs(page, key) && !is_skipped(key, skip) &&
            (is_kind(key) || !kind_alone))
            add_word(text, bytes, run_word(key, value, word, sizeof(word)));
    }
}

void page_series_words(const struct page *page, const struct report_file *file,
                       const char *const *skip, char *text, size_t bytes)
{
    add_differences(page, file, false, skip, text, bytes);
}

const char *page_codec_of(const struct page_series *s)
{
    return s->name[0] != '\0' ? s->name : report_text(s->file, "run", "codec");
}

/* Return "old" for "/tmp/old.json". */
static void base_name(const char *path, char *text, size_t bytes)
{
    const char *slash = strrchr(path, '/');
    const char *from = slash != NULL ? slash + 1 : path;
    const size_t n = strlen(from);
    const bool ends = n > 5 && strcmp(from + n - 5, ".json") == 0;

    snprintf(text, bytes, "%.*s", (int)(ends ? n - 5 : n), from);
}

static bool is_taken(const struct page *page, size_t at)
{
    for (size_t i = 0; i < page->n_timed; i++)
        if (i != at && page->series[i].file != page->series[at].file &&
            strcmp(page->series[i].label, page->series[at].label) == 0)
            return true;
    return false;
}

enum naming { BY_KIND, BY_RUN, BY_FILE };

static void name_one(const struct page *page, struct page_series *s, enum naming naming)
{
    static const char *const none[] = {NULL};

    s->label[0] = '\0';
    if (naming == BY_FILE)
        base_name(s->file->path, s->label, sizeof(s->label));
    else if (s->timed)
        add_differences(page, s->file, naming == BY_KIND, none, s->label,
                        sizeof(s->label));
    const bool has_peers = s->name[0] == '\0' && s->file->n > s->file->own;
    const bool dense = strcmp(s->name, "none") == 0;
    add_word(s->label, sizeof(s->label),
             has_peers ? "Tributary"
             : dense      ? "no codec"
                          : s->name);
    if (s->label[0] == '\0')
        report_title(s->file, s->label, sizeof(s->label));
}

/* Give each series the shortest label that is unique. */
static void name_all(struct page *page)
{
    bool alike = true;

    const bool kinds = differs(page, "command") || differs(page, "collective");
    for (int naming = kinds ? BY_KIND : BY_RUN; naming <= BY_FILE && alike; naming++) {
        for (size_t i = 0; i < page->n; i++)
            name_one(page, &page->series[i], (enum naming)naming);
        alike = false;
        for (size_t i = 0; i < page->n_timed; i++)
            alike = alike || is_taken(page, i);
    }
}

/* Move series with times to the front, in the same order. */
static void sort_timed(struct page *page)
{
    page->n_timed = 0;
    for (size_t i = 0; i < page->n; i++) {
        const struct page_series s = page->series[i];
        if (!s.timed)
            continue;
        memmove(&page->series[page->n_timed + 1], &page->series[page->n_timed],
                (i - page->n_timed) * sizeof(s));
        page->series[page->n_timed++] = s;
    }
}

/* --- common values --- */

bool page_same_value(const struct report_file *a, const struct report_file *b,
                     const char *key)
{
    const json_t *x = json_object_get(json_object_get(a->document, "run"), key);
    const json_t *y = json_object_get(json_object_get(b->document, "run"), key);

    return x == y || json_equal(x, y);
}

/* Return true if contenders measured side by side may differ in this key. */
static bool is_contender(const char *key)
{
    static const char *const keys[] = {
        "codec",   "feedback", "algorithm",   "in_place", "call",       "sync",
        "rewrite", "density",  "same_blocks", "launches", "interrupted"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

static bool has_all_of(const struct report_file *a, const struct report_file *b)
{
    json_t *run = json_object_get(a->document, "run");
    const char *key;
    json_t *value;

    json_object_foreach(run, key, value)
    {
        if (!is_contender(key) && !page_same_value(a, b, key))
            return false;
    }
    return true;
}

bool page_same_place(const struct report_file *a, const struct report_file *b)
{
    return has_all_of(a, b) && has_all_of(b, a);
}

const struct report_row *page_row_of(const struct page_series *s, double bytes)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->rows[i].bytes == bytes && s->rows[i].p50 > 0)
            return &s->rows[i];
    return NULL;
}

bool page_drawing_open(const struct page *page, struct page_drawing *d)
{
    size_t points = 1, lines = 1;

    for (size_t i = 0; i < page->n; i++)
        points += 2 * page->series[i].n;
    for (size_t i = 0; i < page->n_files; i++)
        lines += page->files[i].n_limits;
    points += lines * points;
    lines += 2 * page->n;
    *d = (struct page_drawing){
        .lines = calloc(lines, sizeof(*d->lines)),
        .points = calloc(points, sizeof(*d->points)),
        .labels = calloc(points, sizeof(*d->labels)),
    };
    return d->lines != NULL && d->points != NULL && d->labels != NULL;
}

void page_drawing_close(struct page_drawing *d)
{
    free(d->lines);
    free(d->points);
    free(d->labels);
}

/* --- all --- */

bool page_series_make(struct page *page)
{
    size_t most = 0;

    for (size_t i = 0; i < page->n_files; i++)
        most += page->files[i].n;
    page->n = 0;
    page->series = calloc(most, sizeof(*page->series));
    if (page->series == NULL)
        return false;
    for (size_t i = 0; i < page->n_files; i++)
        for (size_t j = 0; j < page->files[i].n; j++)
            if (!add_row(page, &page->files[i], j))
                return false;
    for (size_t i = 0; i < page->n; i++)
        qsort(page->series[i].rows, page->series[i].n, sizeof(struct report_row),
              by_size);
    sort_timed(page);
    name_all(page);
    return true;
}

void page_series_free(struct page *page)
{
    for (size_t i = 0; i < page->n; i++)
        free(page->series[i].rows);
    free(page->series);
    page->series = NULL;
    page->n = 0;
}
