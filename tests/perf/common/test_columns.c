/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/common/columns.h"
#include "tests/harness/tribtest.h"

#include <math.h>

struct row {
    const char *name;
    size_t bytes;
    double us, rate, wrong;
};

#define AT(member) offsetof(struct row, member)
static const struct perf_column all[] = {
    {"name", PERF_UNSHOWN, PERF_QUOTED, 0, 0, 0, AT(name)},
    {"bytes", "size", "", 10, 0, PERF_BYTES, 0, 0, 0, AT(bytes)},
    {"us", "time", "µs ", 10, 0, PERF_US, 2, 0, PERF_NO_JSON, AT(us)},
    {"GBps", "rate", "GB/s", 10, 0, PERF_FIXED, 3, 1, PERF_OPTIONAL, AT(rate)},
    {"wrong", "wrong", "", 10, 0, PERF_COUNT, 0, 0, PERF_IF_A, AT(wrong)},
    {"twice", PERF_UNSHOWN, PERF_GENERAL, 2, 0, PERF_NO_CSV, AT(us)}};

/* Write two rows as csv and json; return the csv. */
static const char *written(unsigned conditions, struct perf_output *o, char *csv,
                           size_t bytes)
{
    const struct perf_columns columns = {all, sizeof(all) / sizeof(*all), conditions};
    const struct row rows[] = {{"a,b", 65536, 1.234, 2.5, 3}, {"c", 8, 9, NAN, 0}};

    memset(o, 0, sizeof(*o));
    o->csv = fmemopen(csv, bytes, "w");
    o->results = json_array();
    perf_columns_head(o, &columns);
    perf_columns_row(o, &columns, &rows[0]);
    assert_non_null(perf_columns_row(o, &columns, &rows[1]));
    fclose(o->csv);
    o->csv = NULL;
    return csv;
}

TEST(test_csv)
{
    struct perf_output o;
    char csv[400];

    assert_string_equal(written(PERF_IF_A, &o, csv, sizeof(csv)),
                        "name,bytes,us,GBps,wrong\n"
                        "\"a,b\",65536,1.23,2.500,3\n"
                        "\"c\",8,9.00,,0\n");
    perf_output_free(&o);
    assert_string_equal(written(0, &o, csv, sizeof(csv)),
                        "name,bytes,us,GBps,wrong\n"
                        "\"a,b\",65536,1.23,2.500,\n"
                        "\"c\",8,9.00,,\n");
    perf_output_free(&o);
}

TEST(test_json)
{
    struct perf_output o;
    char csv[400];

    written(PERF_IF_A, &o, csv, sizeof(csv));
    char *text = json_dumps(o.results, JSON_COMPACT | JSON_REAL_PRECISION(3));
    assert_string_equal(text,
                        "[{\"name\":\"a,b\",\"bytes\":65536,\"GBps\":2.5,\"wrong\":3,"
                        "\"twice\":1.23},{\"name\":\"c\",\"bytes\":8,\"GBps\":null,"
                        "\"wrong\":0,\"twice\":9.0}]");
    free(text);
    perf_output_free(&o);
    written(0, &o, csv, sizeof(csv));
    assert_null(json_object_get(json_array_get(o.results, 0), "wrong"));
    perf_output_free(&o);
}
