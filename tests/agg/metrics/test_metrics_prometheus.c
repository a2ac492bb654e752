/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output: the text format of Prometheus, checked by promtool, and JSON.
 */
#include "tests/harness/tribtest.h"

#include <jansson.h>
#include <locale.h>

#include "tests/agg/metrics/sample.h"

static struct trib_service_view view_of(struct sample *s)
{
    struct trib_service_view view;

    assert_true(sample_create(s));
    trib_metrics_reason_mt(s->metrics, TRIB_REFUSED_FOR_QUEUE);
    assert_ok(trib_metrics_view_mt(s->metrics, SAMPLE_T0 + 60 * SAMPLE_S, &view));
    view.process = (struct trib_process_view){true, 4096,       9,
                                              1024, 1250000000, 1700000000500000000};
    view.n_threads = 1;
    view.threads = calloc(1, sizeof(*view.threads));
    assert_non_null(view.threads);
    view.threads[0] = (struct trib_thread_view){"lane0", 2500000000, 7};
    view.n_rdma = 1;
    view.rdma[0] = (struct trib_rdma_counters){.device = "mlx5_0", .port = 1};
    view.rdma[0].has[TRIB_RDMA_RNR_NAK_RETRY] = true;
    view.rdma[0].count[TRIB_RDMA_RNR_NAK_RETRY] = 12;
    return view;
}

static void finish(struct sample *s, struct trib_service_view *view)
{
    trib_service_view_free(view);
    sample_destroy(s);
}

static void assert_line(const char *text, const char *line)
{
    size_t len = strlen(line);

    for (const char *at = text; (at = strstr(at, line)); at++)
        if ((at == text || at[-1] == '\n') && at[len] == '\n')
            return;
    fail_msg("no line \"%s\" in:\n%s", line, text);
}

TEST(test_lines)
{
    static const char *const lines[] = {
        "tribd_uptime_seconds 160",
        "tribd_draining 0",
        "tribd_jobs{state=\"queued\"} 1",
        "tribd_jobs{state=\"admitted\"} 2",
        "tribd_slots 512",
        "tribd_slots_held 448",
        "tribd_slots_lent 0",
        "tribd_memory_limit_bytes 1073741824",
        "tribd_jobs_admitted_total 2",
        "# HELP tribd_received_bytes_total Bytes received from the ranks, as on the "
        "wire.",
        "# TYPE tribd_received_bytes_total counter",
        "tribd_received_bytes_total 1000077",
        "tribd_busy_seconds_total 1.5",
        "tribd_job_info{id=\"1\",name=\"train-7\",user=\"ana\",state=\"admitted\","
        "phase=\"transfer\"} 1",
        "tribd_job_received_bytes_total{id=\"1\",name=\"train-7\",user=\"ana\"} "
        "1000000",
        "tribd_job_queue_position{id=\"3\",name=\"late\",user=\"bob\"} 1",
        "tribd_job_state_age_seconds{id=\"2\",name=\"<img src=x "
        "onerror=\\\"document.title='pwned'\\\">\\\\{},\",user=\"eve\"} 55",
        "tribd_job_operation_age_seconds{id=\"1\",name=\"train-7\",user=\"ana\"} 7",
        "tribd_job_stuck{id=\"1\",name=\"train-7\",user=\"ana\"} 1",
        "tribd_job_lag_seconds_bucket{id=\"1\",name=\"train-7\","
        "user=\"ana\",le=\"0.03\"} 121",
        "tribd_job_lag_seconds_bucket{id=\"1\",name=\"train-7\","
        "user=\"ana\",le=\"0.1\"} 160",
        "tribd_job_lag_seconds_bucket{id=\"1\",name=\"train-7\","
        "user=\"ana\",le=\"+Inf\"} 161",
        "tribd_job_lag_seconds_count{id=\"1\",name=\"train-7\",user=\"ana\"} 161",
        "tribd_lag_seconds_bucket{le=\"+Inf\"} 161",
        "tribd_lag_seconds_count 161",
        "tribd_job_rank_lag_seconds_sum{id=\"1\",name=\"train-7\","
        "user=\"ana\",rank=\"2\"} 6.20000078",
        "tribd_job_rank_lag_seconds_count{id=\"1\",name=\"train-7\","
        "user=\"ana\",rank=\"2\"} 41",
        "tribd_jobs_refused_total{reason=\"queue\"} 1",
        "tribd_jobs_refused_total{reason=\"limit\"} 0",
        "tribd_jobs_lost_total{reason=\"kicked\"} 0",
        "tribd_thread_busy_seconds_total{thread=\"lane0\"} 2.5",
        "tribd_thread_passes_total{thread=\"lane0\"} 7",
        "tribd_rdma_port_events_total{device=\"mlx5_0\",port=\"1\","
        "counter=\"rnr_nak_retry\"} 12",
        "process_open_fds 9",
        "process_max_fds 1024",
        "process_resident_memory_bytes 4096",
        "process_cpu_seconds_total 1.25",
        "process_start_time_seconds 1700000000.5",
    };
    struct sample s;
    struct trib_service_view view = view_of(&s);
    char *text = trib_metrics_text(&view);

    assert_non_null(text);
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
        assert_line(text, lines[i]);
    free(text);
    finish(&s, &view);
}

/* The rules of the text format where promtool is missing: each metric has one HELP and
 * one TYPE, its samples follow these together, and no two have the same labels. */
static void assert_exposition(const char *text)
{
    static char seen[1 << 21], metric[256];
    const char *end;
    size_t used = 0;

    metric[0] = seen[0] = 0;
    for (const char *line = text; *line; line = end + 1) {
        end = strchr(line, '\n');
        assert_non_null(end);
        const size_t series =
            strncmp(line, "# HELP ", 7) == 0 ? 7 + strcspn(line + 7, " ")
            : line[0] == '#'
                ? 0
                : (size_t)((const char *)memrchr(line, ' ', (size_t)(end - line)) -
                           line);
        if (line[0] == '#' && series) {
            snprintf(metric, sizeof(metric), "%.*s", (int)series - 7, line + 7);
        } else if (line[0] == '#') {
            assert_int_equal(strncmp(line, "# TYPE ", 7), 0);
            assert_int_equal(strncmp(line + 7, metric, strlen(metric)), 0);
            continue;
        } else {
            assert_true(metric[0] && strncmp(line, metric, strlen(metric)) == 0);
            assert_true(strspn(end - 1, "0123456789") == 1);
        }
        char key[1024];
        snprintf(key, sizeof(key), "\n%.*s\n", (int)series, line);
        if (strstr(seen, key))
            fail_msg("twice: %.*s", (int)series, line);
        assert_true(used + strlen(key) < sizeof(seen));
        used += (size_t)snprintf(seen + used, sizeof(seen) - used, "%s", key);
    }
}

static void assert_promtool(const char *text)
{
    assert_exposition(text);
    if (system("command -v promtool >/dev/null") != 0)
        tribtest_skip("promtool is not installed (package prometheus)");
    FILE *to = popen("promtool check metrics >&2", "w");
    assert_non_null(to);
    fputs(text, to);
    assert_int_equal(pclose(to), 0);
}

/* Names that no table of jobs accepts. */
static void make_hostile(struct trib_service_view *view)
{
    strcpy(view->jobs[0].job.name, "a\nb\\\"\xff\xc3(\x01} 1\n# HELP x");
    strcpy(view->jobs[0].job.user, "\"} 1\ntribd_slots 7\n");
    memset(view->jobs[1].job.name, 'x', TRIB_JOB_NAME_BYTES); /* without a terminator */
}

TEST(test_promtool)
{
    struct sample s;
    struct trib_service_view view = view_of(&s);
    char *text = trib_metrics_text(&view);

    assert_promtool(text);
    free(text);
    make_hostile(&view);
    text = trib_metrics_text(&view);
    assert_promtool(text);
    assert_null(strstr(text, "\ntribd_slots 7"));
    assert_non_null(strstr(text, "name=\"a\\nb\\\\\\\"?"
                                 "?(?} 1\\n# HELP x\","));
    free(text);
    finish(&s, &view);
}

TEST(test_promtool_without_jobs)
{
    struct trib_service_view view = {0};
    char *text = trib_metrics_text(&view);

    assert_promtool(text);
    free(text);
}

/* A job of many lagging ranks does not make the page large. */
TEST(test_many_ranks)
{
    enum { RANKS = 4096, MOST = 200 << 10 };
    struct sample s;
    struct trib_service_view view;

    assert_true(sample_many(&s, RANKS, &view));
    char *text = trib_metrics_text(&view), *json = trib_metrics_json(&view);
    assert_non_null(text);
    assert_non_null(json);
    printf("# a job of %d ranks: /metrics has %zu bytes, /status %zu\n", RANKS,
           strlen(text), strlen(json));
    assert_true(strlen(text) < MOST && strlen(json) < MOST);
    assert_exposition(text);
    assert_non_null(strstr(json, "\"late_left_out\":4088"));
    free(text);
    free(json);
    finish(&s, &view);
}

static json_t *parse(const struct trib_service_view *view)
{
    json_error_t error;
    char *text = trib_metrics_json(view);

    assert_non_null(text);
    json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!o)
        fail_msg("%s in %s", error.text, text);
    free(text);
    return o;
}

TEST(test_json)
{
    struct sample s;
    struct trib_service_view view = view_of(&s);
    json_t *o = parse(&view), *jobs = json_object_get(o, "jobs");
    json_t *train = json_array_get(jobs, 0), *late = json_array_get(jobs, 2);
    json_t *lag = json_object_get(train, "lag_seconds");
    json_t *worst = json_array_get(json_object_get(train, "late"), 0);
    const char *phase;
    int number, waits_for, stuck;
    double age_s, ratio, left_s;

    assert_int_equal(json_array_size(jobs), 3);
    assert_int_equal(json_unpack(train, "{s:F, s:{s:i, s:s, s:F, s:i, s:b}}", "ratio",
                                 &ratio, "operation", "number", &number, "phase",
                                 &phase, "age_s", &age_s, "waits_for", &waits_for,
                                 "stuck", &stuck),
                     0);
    assert_true(ratio > 3.999 && ratio < 4.001 && age_s > 6.999 && age_s < 7.001);
    assert_int_equal(number, 812);
    assert_string_equal(phase, "transfer");
    assert_int_equal(waits_for, 2);
    assert_int_equal(stuck, 1);
    assert_int_equal(
        json_integer_value(json_array_get(json_object_get(lag, "counts"), 3)), 40);
    assert_int_equal(json_integer_value(json_object_get(worst, "rank")), 2);
    assert_int_equal(json_integer_value(json_object_get(train, "late_left_out")), 0);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(o, "held"), "slots")), 448);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(jobs, 1), "name")),
        SAMPLE_EVIL);
    assert_int_equal(
        json_unpack(late, "{s:F, s:n, s:n}", "left_s", &left_s, "operation", "ratio"),
        0);
    assert_true(left_s > 59.999 && left_s < 60.001);
    json_decref(o);
    make_hostile(&view);
    o = parse(&view);
    assert_string_equal(json_string_value(json_object_get(
                            json_array_get(json_object_get(o, "jobs"), 0), "name")),
                        "a\nb\\\"?"
                        "?(?} 1\n# HELP x");
    json_decref(o);
    finish(&s, &view);
}

TEST(test_decimal_comma)
{
    if (!setlocale(LC_ALL, "de_DE.UTF-8"))
        tribtest_skip("locale de_DE.UTF-8 is missing");
    test_lines(state);
    test_json(state);
    setlocale(LC_ALL, "C");
}

/* A job that ends and starts again adds no series, and a job that has ended has
 * none. */
TEST(test_series)
{
    struct sample s;
    struct trib_service_view view = view_of(&s);
    struct trib_job_answer again = {.id = view.jobs[0].job.id};
    const struct trib_job_request train = {"train-7", "ana", 1,        4,
                                           1,         65536, SAMPLE_S, 0};

    trib_jobs_remove(s.jobs, SAMPLE_T0, view.jobs[1].job.id);
    for (int i = 0; i < 5; i++) {
        trib_metrics_close_mt(s.metrics, again.id);
        trib_jobs_remove(s.jobs, SAMPLE_T0, again.id);
        trib_jobs_submit(s.jobs, SAMPLE_T0, &train, &again);
        assert_int_not_equal(again.verdict, TRIB_JOB_REFUSE);
    }
    assert_ok(trib_metrics_publish(s.metrics, s.jobs, SAMPLE_T0));
    trib_service_view_free(&view);
    assert_ok(trib_metrics_view_mt(s.metrics, SAMPLE_T0, &view));
    char *text = trib_metrics_text(&view);
    assert_non_null(text);
    assert_line(text, "tribd_job_ranks{id=\"1\",name=\"train-7\",user=\"ana\"} 4");
    assert_line(text, "tribd_job_ranks{id=\"3\",name=\"late\",user=\"bob\"} 8");
    assert_null(strstr(text, "user=\"eve\""));
    free(text);
    finish(&s, &view);
}
