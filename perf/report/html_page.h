/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_REPORT_HTML_PAGE_H
#define PERF_REPORT_HTML_PAGE_H

#include "perf/report/perf_report.h"

/**
 * html_page - one page of all files, the first of which the others stand beside.
 *
 * returns  a text that the caller frees, of *bytes_out; NULL: no memory
 */
char *html_page(const struct report_file *files, size_t n, size_t *bytes_out);

/** html_page_write - likewise, into a file, or "-" for standard output; false: why[]
 * has the sentence. */
bool html_page_write(const char *path, const struct report_file *files, size_t n,
                     char *why, size_t why_bytes);

#endif
