/* SPDX-License-Identifier: BSD-3-Clause */
/* Documents of --json as rows, two of them side by side, and bars. */
#include "tests/harness/tribtest.h"

#include <math.h>

#include "perf/report/html_page.h"
#include "perf/report/perf_report.h"
#include "perf/report/svg_chart.h"

/* A document with these rows; the caller closes it. */
static struct report_file document(const char *rows)
{
    struct report_file file;
    char text[2048], why[512] = "";

    snprintf(text, sizeof(text),
             "{\"format\": 1, \"tributary\": \"0.1.0\", \"run\": {\"collective\": "
             "\"allreduce\", \"ranks\": 2}, \"results\": [%s]}",
             rows);
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    if (!report_file_take(json, "a.json", &file, why, sizeof(why)))
        fail_msg("%s", why);
    json_decref(json);
    return file;
}

static char *printed(struct report_verdict *verdict, double limit, const char *was,
                     const char *is)
{
    struct report_file old = document(was), new = document(is);
    char *text = NULL, why[512] = "";
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);

    assert_non_null(f);
    if (!report_against(&old, &new, limit, f, verdict, why, sizeof(why)))
        fprintf(f, "%s", why);
    fclose(f);
    report_file_close(&old);
    report_file_close(&new);
    return text;
}

#define ROW(bytes, p25, p50, p75) \
    "{\"bytes\": " #bytes ", \"p25_us\": " #p25 ", \"p50_us\": " #p50 \
    ", \"p75_us\": " #p75 "}"

TEST(test_verdicts)
{
    static const struct {
        const char *was, *is;
        size_t slower, faster, above;
    } cases[] = {
        {ROW(8, 9, 10, 11), ROW(8, 9, 10, 11), 0, 0, 0},
        {ROW(8, 9, 10, 11), ROW(8, 10.5, 10.9, 12), 0, 0, 0}, /* within the old box */
        {ROW(8, 9, 10, 11), ROW(8, 9, 15, 16), 0, 0, 0}, /* the old within the new */
        {ROW(8, 9, 10, 10.5), ROW(8, 10.2, 10.9, 12), 1, 0, 0}, /* below the limit */
        {ROW(8, 9, 10, 11), ROW(8, 11.5, 12, 13), 1, 0, 1},
        {ROW(8, 9, 10, 11), ROW(8, 6, 7, 8), 0, 1, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct report_verdict v;
        free(printed(&v, 1.1, cases[i].was, cases[i].is));
        if (v.rows != 1 || v.slower != cases[i].slower || v.faster != cases[i].faster ||
            v.above != cases[i].above)
            fail_msg("case %zu: %zu rows, %zu slower, %zu faster, %zu above", i, v.rows,
                     v.slower, v.faster, v.above);
    }
}

TEST(test_rows_in_common)
{
    struct report_verdict v;
    char *text = printed(&v, 0, ROW(8, 9, 10, 11) "," ROW(64, 9, 10, 11),
                         ROW(64, 19, 20, 21) "," ROW(512, 9, 10, 11));

    assert_int_equal(v.rows, 1);
    assert_int_equal(v.above, 0); /* there is no limit */
    assert_non_null(strstr(text, "allreduce, 2 ranks\n"));
    assert_non_null(strstr(text, "2.00"));
    assert_non_null(strstr(text, "1 row: 1 slower beyond the spread, 0 faster; 1 only "
                                 "in old; 1 only in new\n"));
    free(text);
    text = printed(&v, 0, ROW(8, 1, 1, 1), ROW(64, 1, 1, 1));
    assert_non_null(strstr(text, "no row in common"));
    free(text);
}

/* Rows of one size with a name each are compared by both. */
TEST(test_names)
{
    static const char rows[] = "{\"way\": \"push\", \"bytes\": 8, \"p50_us\": 1},"
                               "{\"way\": \"pull\", \"bytes\": 8, \"p50_us\": 5},"
                               "{\"way\": \"push\", \"bytes\": 64, \"p50_us\": 2}";
    struct report_verdict v;
    char *text = printed(&v, 0, rows, rows);

    assert_int_equal(v.rows, 3);
    assert_int_equal(v.slower + v.faster, 0);
    assert_non_null(strstr(text, "\npull\n"));
    const char *push = strstr(text, "\npush\n");
    assert_true(push != NULL && strstr(push + 1, "\npush\n") == NULL); /* once */
    free(text);
}

TEST(test_spread_without_quartiles)
{
    struct report_file file =
        document("{\"bytes\": 8, \"p50_us\": 10, \"min_us\": 8, \"p99_us\": 90},"
                 "{\"bytes\": 9, \"p50_us\": 10, \"p95_us\": 13}, {\"bytes\": -1}, 7");

    assert_int_equal(file.n, 2); /* the others have no size */
    assert_true(file.rows[0].lower == 8 && file.rows[0].upper == 12);
    assert_true(file.rows[1].lower == 7 && file.rows[1].upper == 13);
    assert_true(isnan(file.rows[1].p99));
    report_file_close(&file);
}

static char *bars(const struct report_row *rows, size_t n, bool utf8)
{
    char *text = NULL;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);

    assert_non_null(f);
    report_bars(rows, n, utf8, f);
    fclose(f);
    return text;
}

/* The most columns of a line. */
static size_t width(const char *text)
{
    size_t most = 0, now = 0;

    for (; *text; text++) {
        now = *text == '\n' ? 0 : now + ((*text & 0xC0) != 0x80);
        most = now > most ? now : most;
    }
    return most;
}

TEST(test_bars)
{
    const struct report_row rows[] = {
        {.name = "", .bytes = 8, .p50 = 1, .p99 = 10, .GBps = 5},
        {.name = "", .bytes = 64, .p50 = 100, .p99 = 100, .GBps = 10},
    };
    char *text = bars(rows, 2, false);

    /* 19 of 38 columns: 10 is between 1 and 100; 5 is half of 10. */
    assert_non_null(strstr(text, "\n       8 B     1.000  ...................\n"));
    assert_non_null(strstr(text, "\n      64 B     100.0  "
                                 "######################################\n"));
    assert_non_null(strstr(text, "\n       8 B     5.000  ###################\n"));
    assert_int_equal(width(text), 60);
    for (const char *at = text; *at; at++)
        assert_true((*at & 0x80) == 0);
    free(text);
    text = bars(rows, 2, true);
    assert_non_null(strstr(text, "\n       8 B     1.000  ░░░"));
    assert_int_equal(width(text), 60);
    free(text);
    text = bars(&(struct report_row){.p50 = (double)NAN, .p99 = (double)NAN}, 1, true);
    assert_string_equal(text, ""); /* there is nothing to draw */
    free(text);
}

/* --- pages --- */

TEST(test_text)
{
    char *text = NULL;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);

    assert_non_null(f);
    svg_text("<a href=\"x\"> & \x01 µs", f);
    svg_text("|\xff", f);
    fclose(f);
    assert_string_equal(text, "&lt;a href=&quot;x&quot;&gt; &amp; ? µs|?");
    free(text);
}

TEST(test_times)
{
    static const struct {
        double us;
        const char *text;
    } cases[] = {
        {0.1234, "0.123 µs"}, {999.4, "999 µs"}, {999.6, "1 ms"}, {1.5e6, "1.5 s"}};
    char text[32];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_string_equal(svg_time_text(cases[i].us, text, sizeof(text)),
                            cases[i].text);
}

/* Two points: the second is further right and up; values that are not above 0 are
 * omitted. */
TEST(test_chart)
{
    const struct svg_chart chart = {"t", SVG_SIZE, SVG_TIME, 300, true, false};
    struct svg_point points[] = {{.x = 0, .y = 1, .top = (double)NAN},
                                 {.x = 8, .y = 1, .top = 10},
                                 {.x = 64, .y = 100, .top = 100}};
    struct svg_line line = {points, 3, 0, false};
    char *text = NULL, *band, *path;
    size_t bytes;
    double x[2], y[2];
    FILE *f = open_memstream(&text, &bytes);

    assert_non_null(f);
    svg_chart_draw(&chart, &line, 1, f);
    fclose(f);
    path = strstr(text, "class=\"line ink0\"");
    assert_non_null(path);
    path = strstr(path, " d=\"");
    assert_int_equal(
        sscanf(path, " d=\"M%lf %lfL%lf %lf\"", &x[0], &y[0], &x[1], &y[1]), 4);
    assert_true(x[1] > x[0] + 200 && y[1] < y[0] - 200);
    band = strstr(text, "class=\"band ink0\"");
    assert_true(band != NULL && band < path);
    assert_non_null(strstr(text, ">8 B<"));
    assert_non_null(strstr(text, ">10 µs<"));
    free(text);
    f = open_memstream(&text, &bytes);
    line.n = 1;
    svg_chart_draw(&chart, &line, 1, f);
    fclose(f);
    assert_string_equal(text, ""); /* no point can be drawn */
    free(text);
}

/* Runs are named by their differences; the first run is the reference of the ratio. */
TEST(test_page)
{
    struct report_file files[2] = {document(ROW(8, 9, 10, 11) "," ROW(64, 9, 10, 11)),
                                   document(ROW(8, 19, 20, 21))};
    size_t bytes;

    json_object_set_new(json_object_get(files[1].document, "run"), "ranks",
                        json_integer(4));
    char *text = html_page(files, 2, &bytes);
    assert_non_null(text);
    assert_non_null(strstr(text, "<h1>allreduce</h1>"));
    assert_non_null(strstr(text, "time relative to <b>2 ranks</b>"));
    assert_non_null(strstr(text, "4 ranks, 8 B: 2 times"));
    assert_null(strstr(text, "nmse")); /* there are no codecs */
    free(text);
    json_object_set_new(json_object_get(files[1].document, "run"), "ranks",
                        json_integer(2));
    files[1].path = "/x/b.json";
    text = html_page(files, 2, &bytes);
    assert_non_null(strstr(text, "time relative to <b>a</b>")); /* otherwise equal */
    assert_non_null(strstr(text, "b, 8 B: 2 times"));
    free(text);
    report_file_close(&files[0]);
    report_file_close(&files[1]);
}

/* Return a document with the times of a codec that pays off up to 4 Gbit/s, next to the
 * dense sum, at one rate. */
static struct report_file link_document(int ranks, double gbps)
{
    char rows[512];
    const double dense = 100 / gbps, coded = 20 / gbps + 20;
    struct report_file file;

    snprintf(rows, sizeof(rows),
             "{\"codec\": \"none\", \"bytes\": 1048576, \"p50_us\": %g}, "
             "{\"codec\": \"int8\", \"bytes\": 1048576, \"p50_us\": %g}",
             dense, coded);
    file = document(rows);
    json_t *run = json_object_get(file.document, "run");
    json_object_set_new(run, "ranks", json_integer(ranks));
    json_object_set_new(run, "link_gbps", json_real(gbps));
    return file;
}

TEST(test_across)
{
    struct report_file files[4];
    size_t bytes;

    for (int i = 0; i < 4; i++)
        files[i] = link_document(i % 2 ? 8 : 2, i / 2 ? 16 : 1);
    char *text = html_page(files, 4, &bytes);
    assert_non_null(text);
    assert_non_null(strstr(text, "int8, 2 ranks: pays up to 3.28 Gbit/s"));
    assert_non_null(strstr(text, "int8, 2 ranks, 1 Gbit/s: 2.5 times"));
    assert_null(strstr(text, "no codec, 2 ranks: pays"));
    assert_non_null(strstr(text, "<h2>Scaling</h2>"));
    assert_non_null(strstr(text, "int8, links of 16 Gbit/s, 8 ranks: 21.2 µs"));
    free(text);
    text = html_page(files, 1, &bytes);
    assert_null(strstr(text, "pays")); /* there is one rate */
    assert_null(strstr(text, "Scaling"));
    free(text);
    for (int i = 0; i < 4; i++)
        report_file_close(&files[i]);
}

/* The limit is drawn at its rate, and at the time that the same bytes take by it. */
TEST(test_limit)
{
    struct report_file file, with;
    char why[256];
    size_t bytes;

    file = document("{\"bytes\": 8000, \"p50_us\": 10, \"busbw_GBps\": 1},"
                    "{\"bytes\": 80000, \"p50_us\": 50, \"busbw_GBps\": 2}");
    json_t *limits = json_pack("[{s:s, s:f}]", "name", "link, 32 Gbit/s", "GBps", 4.0);
    json_object_set_new(file.document, "limits", limits);
    assert_true(report_file_take(file.document, "a.json", &with, why, sizeof(why)));
    assert_int_equal(with.n_limits, 1);
    char *text = html_page(&with, 1, &bytes);
    assert_non_null(strstr(text, "<path class=\"limit\""));
    assert_non_null(strstr(text, ">link, 32 Gbit/s</text>"));
    free(text);
    text = html_page(&file, 1, &bytes);
    assert_null(strstr(text, "<path class=\"limit\"")); /* it was read before */
    free(text);
    report_file_close(&with);
    report_file_close(&file);
}

/* A collective's row without a rate gets its bus rate. */
TEST(test_rates)
{
    struct report_file file = document("{\"bytes\": 8000, \"p50_us\": 10}");

    assert_true(fabs(file.rows[0].GBps - 0.8) < 1e-9);
    report_file_close(&file);
}

#define HIDDEN(both, layers) \
    "{\"comm_us\": 10, \"compute_us\": 15, \"both_us\": " both \
    ", \"hidden\": 0.4, \"took_us\": " both ", \"layers_us\": [" layers "]}"

TEST(test_overlap)
{
    struct report_file file = document(
        "{\"bytes\": 8000, \"p50_us\": 10, \"overlap\": {\"alone_GBps\": {\"link\": 1, "
        "\"sum\": 2}, \"computing_here\": " HIDDEN(
            "21", "[0, 7], [8, 16]") ", \"computing_elsewhere\": " HIDDEN("17",
                                                                          "") "}}");
    size_t bytes;

    char *text = html_page(&file, 1, &bytes);
    assert_non_null(strstr(text, "computing by the same thread: 16 µs"));
    assert_non_null(strstr(text, "<title>8 µs to 16 µs</title>"));
    assert_non_null(strstr(text, "<title>16 µs to 21 µs</title>")); /* what is seen */
    assert_non_null(strstr(text, "the sum during it: 40 % hidden"));
    assert_non_null(strstr(text, "link: 8 µs"));
    assert_non_null(strstr(text, "sum: 4 µs"));
    free(text);
    report_file_close(&file);
}
