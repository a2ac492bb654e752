/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both sides of trib-perf put as threads: the phases over each transport, and the
 * symptoms of a faulty transport.
 */
#include "tests/harness/tribtest.h"

#include <math.h>
#include <sys/socket.h>

#include "base/time.h"
#include "perf/put/put.h"

struct job {
    const char *transport;
    struct put_args args;
    size_t bytes;
    bool rude; /* the client sends an impossible request */
    int fds[2];
    struct trib_config cfg;
    struct put_result result;
    trib_status_t status[2];
    char said[2][512];
};

static trib_status_t be_client(struct job *job, struct put_endpoint *endpoint)
{
    snprintf(endpoint->setup.transport, sizeof(endpoint->setup.transport), "%s",
             job->transport);
    endpoint->setup.area = put_area(job->bytes);
    trib_status_t status = put_endpoint_open(endpoint);
    if (status == TRIB_OK && job->rude) {
        struct put_phase phase = {
            .kind = PUT_STREAM, .depth = 1, .bytes = endpoint->setup.area, .n = 1};
        uint64_t until = trib_deadline_ms(tribtest_patience_ms());
        put_wire_send(&endpoint->wire, PUT_PHASE, &phase, sizeof(phase), until);
        return put_wire_receive(&endpoint->wire, PUT_READY, NULL, 0, until);
    }
    if (status == TRIB_OK)
        status = put_measure(endpoint, &job->args, job->bytes, NULL, &job->result);
    return status == TRIB_OK ? put_wire_send(&endpoint->wire, PUT_END, NULL, 0,
                                             trib_deadline_ms(20000))
                             : status;
}

static int be_side(int rank, int size, void *arg)
{
    struct job *job = arg;
    struct put_endpoint endpoint;

    (void)size;
    put_endpoint_init(&endpoint, rank == 1, &job->cfg, NULL);
    trib_status_t status = put_endpoint_hello(
        &endpoint, job->fds[rank], rank ? "C" : "S", trib_deadline_ms(20000));
    if (status == TRIB_OK && rank == 0)
        status = be_client(job, &endpoint);
    if (status == TRIB_OK && rank == 1)
        status = put_endpoint_open(&endpoint);
    if (status == TRIB_OK && rank == 1)
        status = put_serve(&endpoint);
    job->status[rank] = status;
    snprintf(job->said[rank], sizeof(job->said[rank]), "%s", endpoint.err.text);
    put_endpoint_close(&endpoint);
    return 0;
}

static void run_job(struct job *job)
{
    job->cfg.timeout_ms = job->cfg.timeout_ms ? job->cfg.timeout_ms : 30000;
    job->cfg.stop_timeout_ms = 4000;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, job->fds), 0);
    assert_int_equal(tribtest_threads(2, be_side, job), 0);
}

static struct job plain(const char *transport, size_t bytes)
{
    return (struct job){
        .transport = transport,
        .bytes = bytes,
        .args = {.iters = 300,
                 .depth = 5,
                 .latency = true,
                 .bandwidth = true,
                 .check = true},
    };
}

static void assert_well(struct job *job)
{
    run_job(job);
    if (job->status[0] != TRIB_OK || job->status[1] != TRIB_OK)
        fail_msg("%s, %zu bytes: %s / %s", job->transport, job->bytes, job->said[0],
                 job->said[1]);
    const struct put_result *r = &job->result;
    assert_int_equal(r->us.n, 300);
    assert_true(r->us.min > 0 && r->us.min <= r->us.p50 && r->us.p50 <= r->us.max);
    assert_int_equal(r->writes, 300);
    assert_true(r->messages_per_s > 0);
    assert_true(r->wrong == 0.0);
    /* The figures describe the same run. */
    double GBps = 1e-9 * r->messages_per_s * (double)job->bytes;
    assert_true(fabs(r->GBps - GBps) <= 1e-9 * GBps);
    assert_true(job->bytes == 0 ? isnan(r->cpu_s_per_GB) : r->cpu_s_per_GB > 0);
}

TEST(test_transports)
{
    static const char *const transports[] = {"loop", "shm", "tcp"};
    static const size_t sizes[] = {0, 1, 13, 4096, 300001};

    for (size_t t = 0; t < 3; t++) {
        for (size_t s = 0; s < 5; s++) {
            struct job job = plain(transports[t], sizes[s]);
            job.args.bidirectional = s % 2 != 0;
            assert_well(&job);
        }
    }
}

/* One write at a time, and more than the transport accepts. */
TEST(test_depths)
{
    static const int depths[] = {1, 2, 3, 4096};

    for (size_t d = 0; d < 4; d++) {
        struct job job = plain("tcp", 4096);
        job.args.depth = depths[d];
        job.args.bidirectional = true;
        assert_well(&job);
    }
}

TEST(test_damage_is_counted)
{
    struct job job = plain("shm+corrupt:nth=3", 64);

    run_job(&job);
    assert_status(job.status[0], TRIB_OK);
    assert_true(job.result.wrong > 0);
}

/* A write is lost: the next write is not the expected one. */
TEST(test_loss_is_seen)
{
    struct job job = plain("shm+drop:nth=40", 64);

    job.args.latency = false;
    job.args.iters = 100;
    job.args.depth = 64;
    job.cfg.timeout_ms = 2000;
    run_job(&job);
    assert_int_not_equal(job.status[0], TRIB_OK);
    assert_int_not_equal(job.status[1], TRIB_OK);
    if (strstr(job.said[0], "instead of write") == NULL &&
        strstr(job.said[0], "received nothing") == NULL)
        fail_msg("%s", job.said[0]);
}

TEST(test_hostile_phase)
{
    struct job job = plain("shm", 64);

    job.rude = true;
    run_job(&job);
    assert_status(job.status[1], TRIB_ERR_PROTOCOL);
    if (strstr(job.said[0], "an invalid phase") == NULL)
        fail_msg("%s", job.said[0]);
}

TEST(test_no_transport)
{
    struct job job = plain("smh", 64);

    run_job(&job);
    assert_status(job.status[0], TRIB_ERR_CONFIG);
    assert_non_null(strstr(job.said[0], "smh"));
    assert_int_not_equal(job.status[1], TRIB_OK);
}
