/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_REPORT_HTML_PAGE_H
#define PERF_REPORT_HTML_PAGE_H

#include "perf/report/perf_report.h"

/**
 * html_page - make one page of all files; the others are compared with the first.
 *
 * returns  a string of *bytes_out that the caller frees; NULL: out of memory
 */
char *html_page(const struct report_file *files, size_t n, size_t *bytes_out);

/** html_page_write - write the page to a file, or to standard output for "-". false:
 * why[] has the message. */
bool html_page_write(const char *path, const struct report_file *files, size_t n,
                     char *why, size_t why_bytes);

#endif
