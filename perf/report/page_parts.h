/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The page of results: what its files share.
 *
 *     page_series.c  rows of all documents -> series, and what each is called
 *     page_charts.c  the charts and tables of these
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

/** page_charts - time, bandwidth, ratio, figures, errors of codecs: those there are. */
bool page_charts(const struct page *page, FILE *f);

/** page_about - where, when and how all of it was measured. */
void page_about(const struct page *page, FILE *f);

#endif
