/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program of the last release: it is built with only frozen.h and linked to the
 * current library. Before the first release it is built with the current headers. Each
 * struct that it passes ends at an inaccessible page.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if __has_include("tests/abi/frozen.h")
#include "tests/abi/frozen.h"
#else
#include <tributary.h>
#endif

enum { COUNT = 1237 };

#define CHECK(what) \
    do { \
        if (!(what)) \
            die(__LINE__, #what); \
    } while (0)
#define OK(call) CHECK((call) == TRIB_OK)

static trib_comm_t *comm;
static float in[COUNT], out[COUNT];

static void die(int line, const char *what)
{
    fprintf(stderr, "frozen_program.c:%d: %s: %s\n", line, what,
            trib_last_error(comm));
    exit(1);
}

/* Return a copy of the struct that ends at an inaccessible page. */
static void *guarded(const void *from, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0);
    return memcpy(pages + page - bytes, from, bytes);
}

/* Return element i of a rank's contribution. */
static float given(int rank, size_t i)
{
    return (float)((i % 97) * (size_t)(rank + 1));
}

static void check_sum(void)
{
    const int n = trib_size(comm);

    for (size_t i = 0; i < COUNT; i++)
        CHECK(out[i] == (float)((i % 97) * (size_t)(n * (n + 1) / 2)));
}

static void calls(void)
{
    static float all[8 * COUNT];
    const int rank = trib_rank(comm), n = trib_size(comm);

    CHECK(n <= 8);
    for (size_t i = 0; i < COUNT; i++)
        in[i] = given(rank, i);
    OK(trib_allreduce(comm, in, out, COUNT, TRIB_F32, TRIB_SUM));
    check_sum();
    memset(out, 0, sizeof(out));
    OK(trib_reduce(comm, in, out, COUNT, TRIB_F32, TRIB_SUM, 0));
    OK(trib_broadcast(comm, out, COUNT, TRIB_F32, 0));
    check_sum();
    OK(trib_allgather(comm, in, all, COUNT, TRIB_F32));
    for (int k = 0; k < n; k++)
        CHECK(all[(size_t)k * COUNT + 96] == given(k, 96));
    for (int k = 0; k < n; k++)
        memcpy(all + (size_t)k * COUNT, in, sizeof(in));
    OK(trib_reduce_scatter(comm, all, out, COUNT, TRIB_F32, TRIB_SUM));
    check_sum();
    OK(trib_barrier(comm));
}

static void plans(void)
{
    trib_desc_t first = TRIB_DESC_INIT, *desc = guarded(&first, sizeof(first));
    trib_plan_stats_t none = {.size = sizeof(none)},
                      *stats = guarded(&none, sizeof(none));
    const unsigned char *mask;
    size_t sent, absent[8], bytes;
    trib_plan_t *plan;
    char text[1000];

    desc->recv = out;
    desc->count = COUNT;
    desc->codec = "topk:ratio=0.1";
    desc->name = "layer";
    OK(trib_plan_allreduce(comm, desc, &plan));
    OK(trib_plan_start_with(plan, in, out));
    OK(trib_plan_wait(plan));
    OK(trib_plan_sent(plan, &mask, &sent));
    CHECK(sent > 0 && sent < COUNT);
    OK(trib_plan_absent(plan, absent));
    CHECK(absent[0] == 0);
    OK(trib_plan_explain(plan, text, sizeof(text)));
    CHECK(strstr(text, "layer"));
    OK(trib_plan_stats(plan, stats));
    CHECK(stats->size == sizeof(none) && stats->elements == COUNT);
    OK(trib_plan_state_save(plan, NULL, 0, &bytes));
    void *state = malloc(bytes);
    CHECK(state);
    OK(trib_plan_state_save(plan, state, bytes, &bytes));
    OK(trib_plan_state_load(plan, state, bytes));
    free(state);
    OK(trib_plan_free(plan));
    desc->codec = "none";
    desc->send = in;
    desc->feed = TRIB_FEED_FORWARD;
    OK(trib_plan_create(comm, TRIB_ALLREDUCE, desc, &plan));
    OK(trib_plan_start(plan));
    OK(trib_plan_ready(plan, 0, COUNT));
    OK(trib_plan_wait(plan));
    check_sum();
    OK(trib_plan_free(plan));
}

static void ask(void)
{
    trib_reach_t reach = {.size = sizeof(reach)}, *r = guarded(&reach, sizeof(reach));
    trib_stats_t stats = {.size = sizeof(stats)}, *s = guarded(&stats, sizeof(stats));

    OK(trib_reach(comm, (trib_rank(comm) + 1) % trib_size(comm), r));
    CHECK(r->size == sizeof(reach) && r->transport[0] && r->why[0]);
    OK(trib_stats(comm, s));
    CHECK(s->size == sizeof(stats) && s->operations > 0 && s->messages > 0);
}

static void count_line(void *arg, const char *line)
{
    *(int *)arg += line[0] != '\0';
}

static void count_finding(void *arg, const trib_finding_t *finding)
{
    *(int *)arg += finding->topic[0] && finding->text[0];
}

static void pictures(void)
{
    trib_topology_opts_t t = TRIB_TOPOLOGY_OPTS_INIT;
    trib_schedule_opts_t s = TRIB_SCHEDULE_OPTS_INIT;
    trib_opts_t alone = TRIB_OPTS_INIT;
    trib_doctor_opts_t d = TRIB_DOCTOR_OPTS_INIT;
    int lines = 0, findings = 0;

    OK(trib_topology_draw(guarded(&t, sizeof(t)), count_line, &lines));
    CHECK(lines > 0);
    s.algorithm = "ring";
    s.ranks = 4;
    s.bytes = 4096;
    lines = 0;
    OK(trib_schedule_draw(guarded(&s, sizeof(s)), count_line, &lines));
    CHECK(lines > 0);
    alone.rank_plus_1 = alone.ranks = 1;
    d.join = guarded(&alone, sizeof(alone));
    OK(trib_doctor(guarded(&d, sizeof(d)), count_finding, &findings, NULL));
    CHECK(findings > 0);
}

static void see_sheet(void *arg, const trib_codec_sheet_t *sheet)
{
    CHECK(sheet->sparse && !sheet->vote && strcmp(sheet->row, "topk") == 0);
    for (size_t i = 0; i < sheet->n_params; i++)
        *(int *)arg += strcmp(sheet->params[i].key, "ratio") == 0 &&
                       strcmp(sheet->params[i].value, "0.25") == 0;
}

static void see_item(void *arg, const trib_item_t *item)
{
    *(int *)arg += item->name[0] && item->detail[0];
}

/* Constants compiled into a program keep their meaning. */
static void names(void)
{
    trib_dtype_t dtype;
    trib_op_t op;
    trib_coll_t coll;
    int seen = 0;

#define SAME_NAME(name, value, scope, text) \
    CHECK(strcmp(trib_status_name(TRIB_##name), "TRIB_" #name) == 0); \
    CHECK(trib_status_scope(TRIB_##name) == TRIB_SCOPE_##scope);
    TRIB_STATUS_MAP(SAME_NAME)
    CHECK(trib_dtype_parse("i64", &dtype) == TRIB_OK && dtype == TRIB_I64);
    CHECK(trib_op_parse("clipped-mean", &op) == TRIB_OK && op == TRIB_CLIPPED_MEAN);
    CHECK(trib_coll_parse("barrier", &coll) == TRIB_OK && coll == TRIB_BARRIER);
    CHECK(trib_dtype_size(TRIB_BF16) == 2);
    OK(trib_codec_describe("topk:ratio=0.25", see_sheet, &seen));
    CHECK(seen == 1);
    OK(trib_list_each(TRIB_LIST_MEMORY, see_item, &seen));
    CHECK(seen > 1);
}

int main(void)
{
    trib_opts_t opts = TRIB_OPTS_INIT;

    opts.config = "stats=1";
    OK(trib_init(guarded(&opts, sizeof(opts)), &comm));
    calls();
    plans();
    ask();
    names();
    if (trib_rank(comm) == 0)
        pictures();
    OK(trib_free_comm(comm));
    return 0;
}
