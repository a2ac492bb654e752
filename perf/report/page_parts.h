/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The page of results: what its files share.
 *
 *     page_series.c  rows of all documents -> series, and what each is called
 *     page_charts.c  the charts and tables of these
 *     page_across.c  what changes from document to document: link rate, ranks
 *     page_lanes.c   bars side by side: one size alone, sums beside computing
 *     page_codecs.c  errors over bytes
 *     page_about.c   machine, versions, settings and commands
 *     html_page.c    the whole
 */
#ifndef PERF_REPORT_PAGE_PARTS_H
#define PERF_REPORT_PAGE_PARTS_H

#include "perf/report/perf_report.h"
#include "perf/report/svg_chart.h"

/* A line of the charts shows the rows of a document that have one name. */
struct page_series {
    const struct report_file *file;
    const char *name; /* of its rows, or "" */
    char label[160];
    struct report_row *rows; /* by size */
    size_t n;
    bool timed; /* a row has a time */
    bool peer; /* of another library */
};

struct page {
    const struct report_file *files;
    size_t n_files;
    struct page_series *series;
    size_t n;
    size_t n_timed; /* of the series, the first ones: those with times */
};

/** page_series_make - fill page->series; false: no memory. The caller frees them by
 * page_series_free in either case. */
bool page_series_make(struct page *page);
void page_series_free(struct page *page);

/** page_series_words - what sets the run of a document apart, but for the keys of skip,
 * which ends with NULL, behind a comma if text is not empty. */
void page_series_words(const struct page *page, const struct report_file *file,
                       const char *const *skip, char *text, size_t bytes);

/** page_same_value - true if the runs of both have one value, or neither has one. */
bool page_same_value(const struct report_file *a, const struct report_file *b,
                     const char *key);

/** page_same_place - true if two documents were measured over the same links, by as
 * many ranks: what else sets them apart stands beside each other. */
bool page_same_place(const struct report_file *a, const struct report_file *b);

/** page_codec_of - the codec of a series, or its name. */
const char *page_codec_of(const struct page_series *s);

/** page_row_of - the row of a size that has a time; NULL: none. */
const struct report_row *page_row_of(const struct page_series *s, double bytes);

/* The lines of one chart. */
struct page_drawing {
    struct svg_line *lines;
    size_t n;
    struct svg_point *points; /* of all lines */
    size_t used;
    char (*labels)[24]; /* as many as points */
};

/** page_drawing_open - memory for two lines of each series, two points of each row, and
 * the limits; page_drawing_close follows in any case. */
bool page_drawing_open(const struct page *page, struct page_drawing *d);
void page_drawing_close(struct page_drawing *d);

/** page_charts - time, bandwidth, ratio, figures, and all that follows of those there
 * are. */
bool page_charts(const struct page *page, FILE *f);

/** page_across - speed-up over link rate, and time over ranks: where several documents
 * have them. */
bool page_across(const struct page *page, FILE *f);

/** page_bars - the times of series that have one size each. */
bool page_bars(const struct page *page, FILE *f);

/** page_overlap - the timeline of sums beside computing. */
bool page_overlap(const struct page *page, FILE *f);

/** page_codecs - errors over bytes. */
void page_codecs(const struct page *page, struct page_drawing *d, FILE *f);

/** page_about - where, when and how all of it was measured. */
void page_about(const struct page *page, FILE *f);

#endif
