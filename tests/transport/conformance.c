/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/transport/conformance.h"

#include "tests/harness/tribtest.h"

bool rig_swap(struct rig *rig, const struct trib_region *region,
              struct trib_remote *remote[RIG_RANKS_MAX])
{
    struct trib_transport *t = rig->t;
    struct trib_blob blobs[RIG_RANKS_MAX], own;
    trib_status_t status = t->ops->export_region(t, region, &own);

    SPAWN_CHECK(rig->s, status == TRIB_OK);
    if (!spawn_allgather(rig->s, &own, sizeof(own), blobs))
        return false;
    for (int i = 0; i < rig->s->size; i++) {
        if (i == rig->s->rank)
            continue;
        status = t->ops->import_region(t, i, &blobs[i], &remote[i]);
        if (!SPAWN_CHECK(rig->s, status == TRIB_OK)) {
            fprintf(stderr, "  %s\n", trib_error_text(&rig->err));
            return false;
        }
    }
    return true;
}

static bool rig_connect(struct rig *rig)
{
    struct trib_transport *t = rig->t;
    struct trib_address all[RIG_RANKS_MAX], own;

    SPAWN_CHECK(rig->s, t->ops->address(t, &own) == TRIB_OK);
    if (!spawn_allgather(rig->s, &own, sizeof(own), all))
        return false;
    uint32_t caps[RIG_RANKS_MAX], mine;
    SPAWN_CHECK(rig->s, t->ops->caps(t, all, &mine) == TRIB_OK);
    if (!spawn_allgather(rig->s, &mine, sizeof(mine), caps))
        return false;
    t->ops->agree(t, caps);
    for (int i = 0; i < rig->s->size; i++) {
        if (i == rig->s->rank)
            continue;
        SPAWN_CHECK(rig->s, t->ops->reach(t, i, &all[i]) == TRIB_OK);
        if (!SPAWN_CHECK(rig->s, t->ops->connect(t, i, &all[i]) == TRIB_OK)) {
            fprintf(stderr, "  %s\n", trib_error_text(&rig->err));
            return false;
        }
        SPAWN_CHECK(rig->s, t->ops->connect(t, i, &all[i]) == TRIB_OK);
    }
    return spawn_barrier(rig->s);
}

static bool rig_alloc(struct rig *rig, size_t len)
{
    void *mem = NULL;
    trib_status_t status = rig->t->ops->alloc(rig->t, len, &mem, &rig->region);

    rig->mem = mem;
    return SPAWN_CHECK(rig->s, status == TRIB_OK);
}

/* The same for all ranks; a build without libsodium has none. */
static void make_secret(struct trib_secret *out)
{
    char why[160];

    *out = (struct trib_secret){.is_set = true, .bytes = "conformance"};
    (void)trib_secret_arm(out, why, sizeof(why));
}

static bool open_with(struct rig *rig, struct spawn *s, const struct row *row,
                      size_t len, int stop_ms)
{
    memset(rig, 0, sizeof(*rig));
    rig->s = s;
    rig->row = row;
    if (!stop_ms)
        stop_ms = row->flags & ROW_PATIENT  ? RIG_PATIENT_MS
                  : row->flags & ROW_REMOTE ? RIG_SILENT_MS
                                            : RIG_STOP_MS;
    rig->cfg.stop_timeout_ms = stop_ms;
    trib_log_init(&rig->log, TRIB_LOG_WARN, tribtest_log, &s->failures);
    make_secret(&rig->secret);
    rig->cfg.seal = (row->flags & ROW_SEALED) && rig->secret.is_set;
    struct trib_transport_opts opts = {
        .self = s->rank,
        .size = s->size,
        .params = "",
        .cfg = &rig->cfg,
        .log = &rig->log,
        .err = &rig->err,
        .secret = &rig->secret,
    };
    if (!SPAWN_CHECK(s, trib_transport_open(row->text, &opts, &rig->t) == TRIB_OK)) {
        fprintf(stderr, "  %s\n", trib_error_text(&rig->err));
        return false;
    }
    return rig_connect(rig) && rig_alloc(rig, len) &&
           rig_swap(rig, rig->region, rig->remote) && spawn_barrier(s);
}

bool rig_open_len(struct rig *rig, struct spawn *s, const struct row *row, size_t len)
{
    return open_with(rig, s, row, len, 0);
}

bool rig_open_patient(struct rig *rig, struct spawn *s, const struct row *row,
                      int stop_ms)
{
    return open_with(rig, s, row, RIG_LEN, stop_ms);
}

bool rig_open(struct rig *rig, struct spawn *s, const struct row *row)
{
    return rig_open_len(rig, s, row, RIG_LEN);
}

void rig_drop(struct rig *rig)
{
    if (rig->t)
        rig->t->ops->close(rig->t);
    rig->t = NULL;
}

/* Keep polling: events of the last writes of other ranks may still be pending. */
void rig_close(struct rig *rig)
{
    struct trib_event event;

    if (rig->t) {
        rig->t->ops->poll(rig->t, &event, 1);
        spawn_barrier(rig->s);
    }
    rig_drop(rig);
}

bool rig_next(struct rig *rig, struct trib_event *event)
{
    unsigned turns = 0;

    while (rig->t->ops->poll(rig->t, event, 1) == 0) {
        if (spawn_expired(rig->s))
            return SPAWN_CHECK(rig->s, !"an event comes in time");
        tribtest_rest(&turns);
    }
    return true;
}

bool rig_expect(struct rig *rig, enum trib_event_kind kind, int peer,
                struct trib_event *event)
{
    memset(event, 0, sizeof(*event));
    if (!rig_next(rig, event))
        return false;
    if (event->kind == kind && event->peer == peer)
        return true;
    fprintf(stderr, "  got event %d of peer %d: %s\n", (int)event->kind, event->peer,
            event->kind == TRIB_EVENT_PEER_LOST ? event->why : "");
    return SPAWN_CHECK(rig->s, !"the event is the one expected");
}

bool rig_write(struct rig *rig, int peer, const struct trib_write *write,
               void (*seen)(void *arg, const struct trib_event *event), void *arg)
{
    struct trib_event event;
    trib_status_t status;
    unsigned turns = 0;

    while ((status = rig->t->ops->write(rig->t, peer, write)) == TRIB_ERR_NO_RESOURCE) {
        if (spawn_expired(rig->s))
            return SPAWN_CHECK(rig->s, !"there is room in time");
        if (rig->t->ops->poll(rig->t, &event, 1) == 0) {
            tribtest_rest(&turns);
            continue;
        }
        if (!SPAWN_CHECK(rig->s, seen != NULL))
            return false;
        seen(arg, &event);
    }
    if (status != TRIB_OK)
        fprintf(stderr, "  write: %s: %s\n", trib_status_name(status),
                trib_error_text(&rig->err));
    return SPAWN_CHECK(rig->s, status == TRIB_OK);
}

bool rig_note(struct rig *rig, int peer, uint32_t imm)
{
    return rig_write(rig, peer, &(struct trib_write){.imm = imm}, NULL, NULL);
}

void fill(uint8_t *bytes, size_t len, uint32_t seed)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)((seed + i) * 167u + (seed >> 8) + (i >> 8));
}

bool filled(const uint8_t *bytes, size_t len, uint32_t seed)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != (uint8_t)((seed + i) * 167u + (seed >> 8) + (i >> 8)))
            return false;
    }
    return true;
}
