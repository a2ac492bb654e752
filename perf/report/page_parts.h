/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Declarations shared by the files of the page of results.
 *
 *     page_series.c  rows of all documents -> series and their labels
 *     page_charts.c  charts and tables of the series
 *     page_across.c  charts across documents: over link rate, over ranks
 *     page_lanes.c   horizontal bars: a single size, and sums during computation
 *     page_codecs.c  error over encoded bytes
 *     page_about.c   machine, versions, settings and commands
 *     html_page.c    the whole page
 */
#ifndef PERF_REPORT_PAGE_PARTS_H
#define PERF_REPORT_PAGE_PARTS_H

#include "perf/report/perf_report.h"
#include "perf/report/svg_chart.h"

/* A line of the charts: the rows of a document that have the same name. */
struct page_series {
    const struct report_file *file;
    const char *name; /* of its rows, or "" */
    char label[160];
    struct report_row *rows; /* by ascending size */
    size_t n;
    bool timed; /* some row has a time */
    bool peer; /* of another library */
};

struct page {
    const struct report_file *files;
    size_t n_files;
    struct page_series *series;
    size_t n;
    size_t n_timed; /* number of series with times, which come first */
};

/** page_series_make - fill page->series; false: out of memory. Call page_series_free
 * even if it fails. */
bool page_series_make(struct page *page);
void page_series_free(struct page *page);

/** page_series_words - write how the document's run differs from the others, except for
 * the keys in skip, which ends with NULL. Appends after a comma if text is not
 * empty. */
void page_series_words(const struct page *page, const struct report_file *file,
                       const char *const *skip, char *text, size_t bytes);

/** page_same_value - return true if both runs have the same value, or neither has
 * one. */
bool page_same_value(const struct report_file *a, const struct report_file *b,
                     const char *key);

/** page_same_place - return true if both documents were measured over the same links,
 * with the same number of ranks. Such documents share charts. */
bool page_same_place(const struct report_file *a, const struct report_file *b);

/** page_codec_of - return the codec of a series, or its name. */
const char *page_codec_of(const struct page_series *s);

/** page_row_of - return the row of a size that has a time; NULL: none. */
const struct report_row *page_row_of(const struct page_series *s, double bytes);

/* The lines of one chart. */
struct page_drawing {
    struct svg_line *lines;
    size_t n;
    struct svg_point *points; /* points of all lines */
    size_t used;
    char (*labels)[24]; /* one per point */
};

/** page_drawing_open - allocate two lines per series, two points per row, and the
 * limits. Call page_drawing_close even if it fails. */
bool page_drawing_open(const struct page *page, struct page_drawing *d);
void page_drawing_close(struct page_drawing *d);

/** page_charts - write time, bandwidth, ratio, figures, and all other charts with
 * data. */
bool page_charts(const struct page *page, FILE *f);

/** page_across - write speed-up over link rate, and time over ranks, if several
 * documents have them. */
bool page_across(const struct page *page, FILE *f);

/** page_bars - write the times of series with one size each. */
bool page_bars(const struct page *page, FILE *f);

/** page_overlap - write the timeline of sums during computation. */
bool page_overlap(const struct page *page, FILE *f);

/** page_codecs - write error over encoded bytes. */
void page_codecs(const struct page *page, struct page_drawing *d, FILE *f);

/** page_about - write where, when and how all was measured. */
void page_about(const struct page *page, FILE *f);

#endif
