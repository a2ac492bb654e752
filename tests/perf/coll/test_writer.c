/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files of trib-perf: whole or absent, and readable by programs.
 */
#include "perf/coll/arguments.h"
#include "perf/coll/measure.h"
#include "perf/coll/writer.h"
#include "tests/harness/tribtest.h"

#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <sys/stat.h>


struct place {
    char directory[64];
    char csv[128];
    char json[128];
};

static int make_place(void **state)
{
    struct place *p = calloc(1, sizeof(*p));

    snprintf(p->directory, sizeof(p->directory), "/tmp/tribtest-writer-XXXXXX");
    if (mkdtemp(p->directory) == NULL)
        return -1;
    snprintf(p->csv, sizeof(p->csv), "%s/out.csv", p->directory);
    snprintf(p->json, sizeof(p->json), "%s/out.json", p->directory);
    *state = p;
    return 0;
}

static int remove_place(void **state)
{
    struct place *p = *state;

    unlink(p->csv);
    unlink(p->json);
    int left = rmdir(p->directory); /* fails where a temporary file was left */
    free(p);
    return left;
}

static struct perf_args arguments(const struct place *p)
{
    static char *argv[] = {"trib-perf", "allreduce"};

    return (struct perf_args){
        .argc = 2,
        .argv = argv,
        .codec = "qsgd:bits=4,bucket=512",
        .configured_feedback = "codec",
        .algorithm = "ring",
        .check = true,
        .csv = p->csv,
        .json = p->json,
    };
}

static const struct perf_result result = {
    .bytes = 1024,
    .count = 256,
    .batch = 3,
    .us =
        {.n = 100, .p50 = 1.5, .p99 = 2, .p999 = 2.5, .min = 1, .max = 3, .mean = 1.6},
    .algbw_GBps = 0.5,
    .busbw_GBps = 0.75,
    .wire_bytes = 768,
    .ratio = 7.5,
    .nmse = 0.01,
    .wrong = 2,
};

static char *contents(const char *path)
{
    static char text[8192];
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    return text;
}

static void write_all(const struct perf_args *args)
{
    trib_stats_t stats = {
        .size = sizeof(stats), .shared_bytes = 4096, .slot_bytes = 1024, .peers = 3};
    char why[256] = "";
    struct perf_writer *w = perf_writer_open(args, 4, why, sizeof(why));

    assert_non_null(w);
    perf_writer_add(w, &result);
    if (!perf_writer_finish(w, &stats, why, sizeof(why)))
        fail_msg("%s", why);
    perf_writer_free(w);
}

TEST(test_csv, make_place, remove_place)
{
    struct perf_args args = arguments(*state);

    args.json = NULL;
    write_all(&args);
    char *text = contents(args.csv);
    char *row = strchr(text, '\n') + 1;
    assert_ptr_equal(strstr(text,
                            "collective,algorithm,codec,dtype,op,ranks,bytes,iters,"
                            "p50_us,p99_us,p999_us,min_us,max_us,algbw_GBps,"
                            "busbw_GBps,wire_bytes,nmse,wrong,"),
                     text);
    assert_ptr_equal(strstr(row,
                            "allreduce,ring,\"qsgd:bits=4,bucket=512\",f32,sum,4,1024,"
                            "100,1.5000,2.0000,2.5000,1.0000,3.0000,0.5000,0.7500,"
                            "768.0,0.01,2,"),
                     row);
    assert_ptr_equal(strchr(row, '\n'), row + strlen(row) - 1); /* one row */
    struct stat st;
    assert_int_equal(stat(args.csv, &st), 0);
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(st.st_mode & 0777, 0666 & ~mask);
}

TEST(test_json, make_place, remove_place)
{
    struct perf_args args = arguments(*state);
    json_error_t error;

    args.csv = NULL;
    write_all(&args);
    json_t *all = json_load_file(args.json, 0, &error);
    assert_non_null(all);
    const char *cpu = "", *codec = "", *word = "";
    double p50 = 0, nmse = 0;
    int ranks = 0;
    assert_int_equal(
        json_unpack(all, "{s:{s:s}, s:{s:s, s:i}, s:[{s:f, s:f}], s:[s, s]}", "machine",
                    "cpu", &cpu, "run", "codec", &codec, "ranks", &ranks, "results",
                    "p50_us", &p50, "nmse", &nmse, "argv", &word, &word),
        0);
    assert_true(strlen(cpu) > 0);
    assert_string_equal(codec, "qsgd:bits=4,bucket=512");
    assert_string_equal(word, "allreduce");
    assert_int_equal(ranks, 4);
    assert_true(p50 > 1.499 && p50 < 1.501 && nmse > 0.0099 && nmse < 0.0101);
    json_t *memory = json_object_get(all, "memory");
    assert_int_equal(json_integer_value(json_object_get(memory, "peers")), 3);
    json_decref(all);
}

/* A run that ends early keeps the old file and leaves no other file in its folder. */
TEST(test_unfinished, make_place, remove_place)
{
    struct perf_args args = arguments(*state);
    char why[256];
    FILE *f = fopen(args.csv, "w");

    fputs("old", f);
    fclose(f);
    args.json = NULL;
    struct perf_writer *w = perf_writer_open(&args, 2, why, sizeof(why));
    assert_non_null(w);
    perf_writer_add(w, &result);
    perf_writer_free(w);
    assert_string_equal(contents(args.csv), "old");
}

TEST(test_no_such_place, make_place, remove_place)
{
    struct perf_args args = arguments(*state);
    char why[256] = "";

    args.csv = "/no/such/place/out.csv";
    assert_null(perf_writer_open(&args, 2, why, sizeof(why)));
    assert_string_equal(why, "cannot write /no/such/place/out.csv: "
                             "No such file or directory");
}

/* A full device: the error is reported, not swallowed. */
TEST(test_full_device, make_place, remove_place)
{
    struct perf_args args = arguments(*state);
    trib_stats_t stats = {.size = sizeof(stats)};
    char why[256] = "";

    args.json = "/dev/full";
    args.csv = NULL;
    struct perf_writer *w = perf_writer_open(&args, 2, why, sizeof(why));
    assert_non_null(w);
    assert_false(perf_writer_finish(w, &stats, why, sizeof(why)));
    assert_string_equal(why, "cannot write /dev/full: No space left on device");
    perf_writer_free(w);
}
