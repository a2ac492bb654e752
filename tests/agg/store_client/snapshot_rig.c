/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/agg/store_client/snapshot_rig.h"

void snapshot_rig_need(const struct ranks_self *self, const trib_store_t *store,
                       trib_status_t st, const char *what)
{
    if (st != TRIB_OK)
        ranks_die(self, "%s: %s", what, trib_store_error(store));
}

void snapshot_rig_refused(const struct ranks_self *self, const trib_store_t *store,
                          trib_status_t st, trib_status_t wanted, const char *words)
{
    if (st != wanted || !strstr(trib_store_error(store), words))
        ranks_die(self, "wanted %s and \"%s\", got %s: %s", trib_status_name(wanted),
                  words, trib_status_name(st), trib_store_error(store));
}

bool snapshot_rig_open(struct snapshot_rig *rig, int n, bool keeps)
{
    const char *tmp = getenv("TMPDIR");

    memset(rig, 0, sizeof(*rig));
    for (rig->n = 0; rig->n < n; rig->n++) {
        struct daemon_process *d = &rig->d[rig->n];
        *d = (struct daemon_process){.threads = 2};
        if (rig->n)
            snprintf(d->folder, sizeof(d->folder), "%s", rig->d[0].folder);
        else
            assert_true(daemon_folder(d->folder));
        snprintf(rig->folder[rig->n], DAEMON_PATH, "%.300s/snapshots.XXXXXX",
                 tmp ? tmp : "/tmp");
        assert_non_null(mkdtemp(rig->folder[rig->n]));
        setenv("TRIBD_SNAPSHOTS", keeps ? rig->folder[rig->n] : "", 1);
        if (!daemon_run(d))
            return false;
    }
    return true;
}

void snapshot_rig_close(struct snapshot_rig *rig)
{
    int status;

    for (int i = 0; i < rig->n; i++) {
        daemon_signal(&rig->d[i], SIGKILL);
        while (rig->d[i].pid > 0 && !daemon_ended(&rig->d[i], &status))
            usleep(1000);
        daemon_remove(rig->folder[i]);
    }
    daemon_remove(rig->d[0].folder);
    unsetenv("TRIBD_SNAPSHOTS");
}

void snapshot_rig_config(const struct snapshot_rig *rig, const char *transport,
                         char config[200])
{
    int at = snprintf(config, 200, "transport=%s;service=", transport);

    for (int i = 0; i < rig->n; i++)
        at += snprintf(config + at, 200 - (size_t)at, "%s127.0.0.1:%d", i ? "," : "",
                       rig->d[i].port);
}

void snapshot_rig_start(const struct ranks_self *self, struct snapshot_rig *rig, int i)
{
    struct daemon_process *d = &rig->d[i];

    setenv("TRIBD_SNAPSHOTS", rig->folder[i], 1);
    ranks_assert(self, daemon_start(d));
    while (!daemon_up(d))
        usleep(1000);
}

void snapshot_rig_kill(const struct ranks_self *self, struct snapshot_rig *rig, int i)
{
    ranks_ok(self, trib_barrier(self->comm));
    if (self->rank == 0) {
        kill(rig->d[i].pid, SIGKILL);
        snapshot_rig_start(self, rig, i);
    }
    ranks_ok(self, trib_barrier(self->comm));
}

trib_store_t *snapshot_rig_store(const struct ranks_self *self, const char *key,
                                 uint64_t pushes)
{
    trib_store_t *store = NULL;
    trib_store_opts_t o =
        sized(trib_store_opts_t, .key = key, .snapshot_pushes = pushes);

    if (trib_store_open_with(self->comm, &o, &store) != TRIB_OK)
        ranks_die(self, "open: %s", trib_last_error(self->comm));
    return store;
}
