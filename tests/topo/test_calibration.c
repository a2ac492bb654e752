/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include <sys/stat.h>

#include "base/error.h"
#include "topo/calibration.h"

static char folder[] = "/tmp/tributary-calibration-XXXXXX";
static char path[80];

/* A file, and a /proc/cpuinfo of a machine whose processor is "Eight". */
static void put(const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static trib_status_t take(const char *transport, bool hosts, const char *words,
                          struct trib_calibration *out)
{
    struct trib_error err = {0};
    const trib_status_t st =
        trib_calibration_read(path, transport, hosts, folder, &err, out);

    if (words && !strstr(trib_error_text(&err), words))
        fail_msg("\"%s\" does not say: %s", trib_error_text(&err), words);
    return st;
}

#define LINK(t, scope, hop) \
    "{\"transport\": \"" t "\", \"scope\": \"" scope "\", \"measured\": " \
    "\"2026-11-27\", \"ranks\": 4, \"hop_us\": " hop ", \"message_us\": 2, " \
    "\"wire_Bps\": 1.2e8, \"sum_Bps\": 1e10}"

static void put_machine(const char *cpu, long cores, const char *links)
{
    char text[2000];

    snprintf(text, sizeof(text),
             "{\"machine\": {\"cpu\": \"%s\", \"cores\": %ld}, \"links\": [%s]}", cpu,
             cores, links);
    put(text);
}

TEST(test_read)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct trib_calibration c;

    put_machine("Eight", cores,
                LINK("tcp", "hosts", "12.5") "," LINK("tcp", "host", "3"));
    assert_int_equal(take("tcp", true, NULL, &c), TRIB_OK);
    assert_int_equal(c.known, 1);
    assert_int_equal(c.measured, 20261127);
    assert_true(c.hop_us > 12.4 && c.hop_us < 12.6 && c.wire_Bps > 1.1e8);
    assert_int_equal(take("tcp", false, NULL, &c), TRIB_OK);
    assert_true(c.hop_us < 3.1);
    const struct trib_cost_model m = trib_calibration_cost(&c);
    assert_true(m.hop_us < 3.1 && m.sum_Bps > 0.9e10 && m.switch_us > 0);
    assert_false(m.shared_cores);
    assert_int_equal(take("ucx", true, NULL, &c), TRIB_OK); /* constants stay in use */
    assert_int_equal(c.known, 0);
    assert_int_equal(trib_calibration_read("", "tcp", true, folder, NULL, &c), TRIB_OK);
    assert_int_equal(c.known, 0);
}

static void refused(const char *words)
{
    struct trib_calibration c;

    assert_int_equal(take("tcp", true, words, &c), TRIB_ERR_INVALID);
    assert_int_equal(c.known, 0);
}

TEST(test_refused)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);

    put_machine("Nine", cores, LINK("tcp", "hosts", "1"));
    refused("is from another machine (Nine");
    put_machine("Eight", cores + 1, LINK("tcp", "hosts", "1"));
    refused("run trib-perf calibrate here");
    put("{\"links\": []}");
    refused("another machine (unknown");
    put("{\"machine\": 5}");
    refused("another machine");
    put("{\"format\": 2, \"links\": []}");
    refused("has format 2, this library (");
    put("[1, 2");
    refused("line 1");
    put_machine("Eight", cores, LINK("tcp", "hosts", "0"));
    refused("above 0");
    put_machine("Eight", cores, LINK("tcp", "hosts", "\"3\""));
    refused("above 0");
    put_machine("Eight", cores,
                "{\"transport\": \"tcp\", \"scope\": \"hosts\", "
                "\"measured\": \"soon\"}");
    refused("lacks measured");
    assert_int_equal(unlink(path), 0);
    refused("--out writes");
}

/* The slowest values of all ranks; none if one rank has no valid calibration. */
TEST(test_agreed)
{
    struct trib_calibration of[3] = {
        {1, 20261127, 10, 2, 1e8, 1e10},
        {1, 20250101, 30, 1, 2e8, 2e10},
        {1, 20260101, 20, 3, 3e8, 5e9},
    };

    const struct trib_calibration all = trib_calibration_agree(of, 3);
    assert_int_equal(all.known, 1);
    assert_int_equal(all.measured, 20250101);
    assert_true(all.hop_us > 29 && all.message_us > 2.9);
    assert_true(all.wire_Bps < 1.1e8 && all.sum_Bps < 5.1e9);
    of[1].wire_Bps = 0;
    assert_int_equal(trib_calibration_agree(of, 3).known, 0);
    of[1] = (struct trib_calibration){0};
    assert_int_equal(trib_calibration_agree(of, 3).known, 0);
    assert_int_equal(trib_calibration_agree(of, 1).known, 1);
}

static int set_up(void **state)
{
    char name[80];
    FILE *f;

    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/c.json", folder);
    snprintf(name, sizeof(name), "%s/proc", folder);
    if (mkdir(name, 0700) != 0)
        return -1;
    snprintf(name, sizeof(name), "%s/proc/cpuinfo", folder);
    f = fopen(name, "w");
    return f && fputs("processor\t: 0\nmodel name\t: Eight\n", f) >= 0 &&
                   fclose(f) == 0
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    char name[80];

    (void)state;
    (void)unlink(path);
    snprintf(name, sizeof(name), "%s/proc/cpuinfo", folder);
    (void)unlink(name);
    snprintf(name, sizeof(name), "%s/proc", folder);
    (void)rmdir(name);
    return rmdir(folder);
}

TEST_GROUP(set_up, tear_down)
