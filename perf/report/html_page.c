/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The page needs no scripts, pictures or fonts from elsewhere. It is also well-formed
 * XML, so that other programs can read it.
 */
#include "perf/report/html_page.h"

#include <stdlib.h>
#include <string.h>

#include "perf/common/output.h"
#include "perf/report/page_parts.h"

static const char style[] =
    ":root{color-scheme:light;"
    "--paper:#fff;--ink:#24292f;--faint:#57606a;--grid:#e4e7ea;"
    "--i0:#0072b2;--i1:#b86e00;--i2:#00805c;--i3:#b0508a;--i4:#6b4fc9;--i5:#7a6a00;"
    "--i6:#b3392f;--i7:#57606a}\n"
    "@media screen and (prefers-color-scheme:dark){:root{color-scheme:dark;"
    "--paper:#0d1117;--ink:#e6edf3;--faint:#9198a1;--grid:#262c34;--i0:#4aa8e0;"
    "--i1:#e8a33d;--i2:#2ebd92;--i3:#dd8fba;--i4:#a893f5;--i5:#c9b840;--i6:#f0837a;"
    "--i7:#9198a1}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;max-width:76rem;padding:1rem;background:var(--paper);"
    "color:var(--ink);font:1rem/1.5 system-ui,sans-serif}\n"
    "h1{font-size:1.5rem;line-height:1.25;margin:.5rem 0}\n"
    "h2{font-size:1.2rem;margin:2rem 0 .5rem}\n"
    "h3{font-size:1rem;margin:1rem 0 .25rem}\n"
    "h1,h3,dd,td,th,li,p{overflow-wrap:anywhere}\n"
    "p{margin:.25rem 0}\n"
    ".faint,figcaption,dt{color:var(--faint)}\n"
    ".legend{list-style:none;display:flex;flex-wrap:wrap;gap:.25rem 1.5rem;margin:1rem "
    "0;padding:0}\n"
    ".key{width:34px;height:12px;margin-right:.5rem}\n"
    ".charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,"
    "26rem),1fr));gap:1.5rem}\n"
    "figure{margin:0;min-width:0;break-inside:avoid}\n"
    "figcaption{font-size:.9rem;margin-bottom:.25rem}\n"
    "figcaption b{color:var(--ink)}\n"
    "svg{display:block;width:100%;height:auto}\n"
    ".legend svg{display:inline-block}\n"
    "svg text{fill:var(--faint);font-size:13px;font-family:inherit}\n"
    "svg text.mark{fill:var(--ink);stroke:var(--paper);stroke-width:4px;paint-order:"
    "stroke}\n"
    ".grid{stroke:var(--grid);stroke-width:1;fill:none}\n"
    ".rule{stroke:var(--faint);stroke-width:1;fill:none}\n"
    ".ink0{--i:var(--i0)}.ink1{--i:var(--i1)}.ink2{--i:var(--i2)}.ink3{--i:var(--i3)}"
    ".ink4{--i:var(--i4)}.ink5{--i:var(--i5)}.ink6{--i:var(--i6)}.ink7{--i:var(--i7)}\n"
    ".line{stroke:var(--i);fill:none;stroke-width:2;stroke-linejoin:round}\n"
    ".limit{stroke:var(--ink);fill:none;stroke-width:1.5;stroke-dasharray:5 4}\n"
    ".bar,.pale{fill:var(--i);stroke:var(--paper);stroke-width:.5}.pale{"
    "fill-opacity:.4}\n"
    ".down{flex-direction:column;flex-wrap:nowrap;margin:0}\n"
    ".band,.sign{fill:var(--i)}.band{stroke:none;fill-opacity:.15}\n"
    ".sign{stroke:var(--paper);stroke-width:.5}\n"
    ".wide{overflow-x:auto}\n"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}\n"
    "td,th{padding:.15rem .75rem .15rem 0;text-align:right;font-weight:normal;"
    "border-bottom:1px solid var(--grid);vertical-align:top}\n"
    "thead th{color:var(--faint);vertical-align:bottom}\n"
    "td,tbody th{white-space:nowrap}\n"
    "tbody th{position:sticky;left:0;background:var(--paper)}\n"
    ".codecs th{position:static;text-align:left;white-space:normal}\n"
    ".codecs thead th:nth-child(n+3){text-align:right}\n"
    ".lead{stroke:var(--faint);stroke-width:.5;fill:none}\n"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:.85rem;margin:.5rem 0;"
    "padding:.5rem;border:1px solid var(--grid);border-radius:4px}\n"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:0 1rem;margin:.5rem 0;"
    "font-size:.9rem}\n"
    "dd{margin:0}\n"
    ".about{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),"
    "1fr));gap:0 2rem}\n"
    "section{min-width:0}\n"
    "@media (min-width:56rem){svg text{font-size:10.5px}}\n"
    "@media print{body{max-width:none;padding:0;font-size:10pt}.charts{"
    "grid-template-columns:1fr 1fr}.about{grid-template-columns:1fr 1fr}svg text{"
    "font-size:11px}.wide{overflow:visible}tr,pre,section{break-inside:avoid}}\n";

/* Return true if the comma-separated title has this part. */
static bool has_part(const char *title, const char *part, size_t n)
{
    for (const char *at = title; at != NULL; at = strchr(at, ',')) {
        at += strspn(at, ", ");
        if (strncmp(at, part, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return true;
    }
    return false;
}

/* Use the parts of the first document's title that all others have, too. */
static void page_title(const struct page *page, char *text, size_t bytes)
{
    char first[256], other[256];
    size_t n, used = 0;

    text[0] = '\0';
    report_title(&page->files[0], first, sizeof(first));
    for (const char *at = first; (n = strcspn(at, ",")) > 0;
         at += n + strspn(at + n, ", ")) {
        bool all = true;
        for (size_t i = 1; i < page->n_files; i++)
            all = all &&
                  has_part(report_title(&page->files[i], other, sizeof(other)), at, n);
        if (all && used < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%s%.*s",
                                     used > 0 ? ", " : "", (int)n, at);
    }
    if (used == 0)
        snprintf(text, bytes, "results");
}

static void write_head(const struct page *page, FILE *f)
{
    char title[256];
    const struct report_file *first = &page->files[0];

    page_title(page, title, sizeof(title));
    fputs("<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">"
          "<head><meta charset=\"utf-8\"/><meta name=\"viewport\" "
          "content=\"width=device-width, initial-scale=1\"/>\n<title>trib-perf: ",
          f);
    svg_text(title, f);
    fprintf(f, "</title>\n<style>\n%s</style></head>\n<body>\n<h1>", style);
    svg_text(title, f);
    fputs("</h1>\n<p class=\"faint\">", f);
    svg_text(report_text(first, "machine", "cpu"), f);
    const json_t *cores =
        json_object_get(json_object_get(first->document, "machine"), "cores");
    if (json_is_integer(cores))
        fprintf(f, ", %lld cores", (long long)json_integer_value(cores));
    fputs(". Measured by trib-perf of Tributary.</p>\n", f);
}

static bool write_page(struct page *page, FILE *f)
{
    if (!page_series_make(page))
        return false;
    write_head(page, f);
    const bool whole = page_charts(page, f);
    page_about(page, f);
    fputs("</body></html>\n", f);
    return whole;
}

char *html_page(const struct report_file *files, size_t n, size_t *bytes_out)
{
    struct page page = {.files = files, .n_files = n};
    char *text = NULL;
    FILE *f = open_memstream(&text, bytes_out);

    if (f == NULL)
        return NULL;
    bool whole = write_page(&page, f);
    page_series_free(&page);
    whole = !ferror(f) && whole;
    if (fclose(f) == 0 && whole)
        return text;
    free(text);
    return NULL;
}

bool html_page_write(const char *path, const struct report_file *files, size_t n,
                     char *why, size_t why_bytes)
{
    size_t bytes;
    char *text = html_page(files, n, &bytes);
    bool done = true;

    if (text == NULL) {
        snprintf(why, why_bytes, "cannot make the page: out of memory");
        return false;
    }
    if (strcmp(path, "-") == 0)
        (void)fwrite(text, 1, bytes, stdout); /* tool_end reports write errors */
    else
        done = perf_output_write(path, text, bytes, why, why_bytes);
    free(text);
    return done;
}
