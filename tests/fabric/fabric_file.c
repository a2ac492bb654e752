/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabric create FILE [SETTING]...  make a fabric for processes that load the fake
 * fabric set FILE SETTING...       change it while they run
 * fabric show FILE                 print its ports, queue pairs and misuses
 * fabric sysfs FILE HOST FOLDER    write what Linux shows of a host's devices
 *
 * A setting is NAME=VALUE, for the machine, or for what host=N, device=N and port=N
 * before it select: "rate=100000000 device=1 rate=10000000 host=0 mtu=3".
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fabric/fabric_settings.h"
#include "tests/harness/fake_hub.h"

static int change(char **settings)
{
    struct fabric_where where = {-1, -1, -1};
    int status = 0;

    fake_lock();
    for (; *settings && !status; settings++) {
        if (fabric_set(&where, *settings))
            continue;
        fprintf(stderr, "fabric: %s is no setting of this fabric\n", *settings);
        status = 1;
    }
    fake_unlock();
    return status;
}

static int fail(const char *path)
{
    perror(path);
    return 1;
}

static int create(const char *path, char **settings)
{
    if (!fake_hub_create(path))
        return fail(path);
    (void)fake_verbs_machine();
    return change(settings);
}

static void show_port(int host, int device, int port)
{
    const struct fake_port *at = fake_port(host, device, port);

    printf("host %d device %d port %d: %d requests", host, device, port, at->carried);
    for (int i = 0; i < FAKE_COUNTERS; i++)
        if (at->counters[i])
            printf(" %s %" PRIu64, fake_verbs_counter_name((enum fake_counter)i),
                   at->counters[i]);
    printf("\n");
}

static void show_qp(const struct fake_qp *qp)
{
    const struct fake_qp *peer = fake_qp_row(qp->remote);

    printf("qp %u: host %d device %d port %d to host %d device %d port %d state %d "
           "pkey 0x%04x sl %u tclass %u flow_label %u hop_limit %u sgid_index %u "
           "path_mtu %d timeout %u retry_cnt %u rnr_retry %u min_rnr_timer %u "
           "max_send_wr %u max_recv_wr %u srq %d\n",
           qp->number, qp->host, qp->device, qp->port, peer->host, peer->device,
           peer->port, qp->live ? (int)qp->state : -1, qp->pkey, qp->sl,
           qp->traffic_class, qp->flow_label, qp->hop_limit, qp->sgid_index,
           qp->mtu ? 128 << qp->mtu : 0, qp->timeout, qp->retry_cnt, qp->rnr_retry,
           qp->min_rnr_timer, qp->max_send_wr, qp->max_recv_wr, qp->has_srq);
}

static int show(void)
{
    struct fake_qp qp;

    fake_lock();
    for (int host = 0; host < fake_opts.hosts; host++)
        for (int device = 0; device < fake_opts.devices; device++)
            for (int port = 1; port <= fake_opts.ports; port++)
                show_port(host, device, port);
    fake_unlock();
    for (int i = 0; fake_verbs_qp(i, &qp); i++)
        if (qp.remote)
            show_qp(&qp);
    printf("time: %" PRIu64 " us\n", fake_verbs_time() / 1000);
    printf("misuses: %d\n", fake_verbs_mistakes());
    return 0;
}

int main(int argc, char **argv)
{
    const char *verb = argc >= 3 ? argv[1] : "";

    if (strcmp(verb, "create") == 0)
        return create(argv[2], argv + 3);
    if (*verb && !fake_hub_open(argv[2]))
        return fail(argv[2]);
    if (argc > 3 && strcmp(verb, "set") == 0)
        return change(argv + 3);
    if (argc == 3 && strcmp(verb, "show") == 0)
        return show();
    if (argc == 5 && strcmp(verb, "sysfs") == 0)
        return fake_verbs_sysfs(argv[4], atoi(argv[3])) ? 0 : fail(argv[4]);
    fprintf(stderr, "usage: fabric create FILE [SETTING]... | set FILE SETTING... | "
                    "show FILE | sysfs FILE HOST FOLDER\n");
    return 2;
}
