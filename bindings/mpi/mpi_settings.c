/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/mpi/mpi_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tributary.h>

#include "base/text.h"

const struct tmpi_kind_row tmpi_kinds[TMPI_KINDS] = {
#define X(kind, name, classes, timed) {name, classes, timed},
#include "bindings/mpi/call_kinds.def"
#undef X
};

/* clang-format off */
static const char *const names[TMPI_SETTINGS] = {
#define X(name, type, value, what) #name,
#include "bindings/mpi/settings.def"
#undef X
};

static const char *const defaults[TMPI_SETTINGS] = {
#define X(name, type, value, what) value,
#include "bindings/mpi/settings.def"
#undef X
};
/* clang-format on */

static bool wrong(const char *variable, const char *value, const char *cure)
{
    fprintf(stderr, "tributary: mpi: %s=%.60s is invalid: %s; MPI handles all calls\n",
            variable, value, cure);
    return false;
}

const char *tmpi_setting_variable(int at)
{
    static _Thread_local char variable[32];

    snprintf(variable, sizeof(variable), "TRIB_MPI_%s", names[at]);
    for (char *c = variable; *c; c++)
        *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
    return variable;
}

char *tmpi_environment(const char *variable)
{
    return getenv(variable);
}

static const char *value_of(int at)
{
    const char *value = secure_getenv(tmpi_setting_variable(at));
    return value && *value ? value : defaults[at];
}

static uint64_t digest_of(const char *text)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h >> 2; /* so that it can be negated as int64_t */
}

static bool add_kind(struct tmpi_settings *s, const char *name, size_t len)
{
    for (int k = 0; k < TMPI_KINDS; k++)
        if (strlen(tmpi_kinds[k].name) == len &&
            !memcmp(tmpi_kinds[k].name, name, len)) {
            s->calls |= 1u << k;
            return true;
        }
    return false;
}

static bool read_calls(struct tmpi_settings *s, const char *text)
{
    const uint32_t all = (1u << TMPI_KINDS) - 1;
    const bool but = *text == '^';

    s->calls = !strcmp(text, "all") ? all : 0;
    if (s->calls || !strcmp(text, "none"))
        return true;
    for (const char *at = text + but; *at;) {
        const size_t len = strcspn(at, ",");
        if (!add_kind(s, at, len))
            return wrong("TRIB_MPI_CALLS", text,
                         "expected a list of calls in lower case, such as "
                         "allreduce,barrier, or ^reduce,scan for all except these");
        at += len + (at[len] == ',');
    }
    s->calls = but ? all & ~s->calls : s->calls;
    return true;
}

/* Check that the codec can be used. In an MPI program, the next vector of the same
 * length may be a different one, to which a codec with error feedback would add its
 * residual. The library refuses such codecs in calls that do not name the vector. */
static bool read_codec(struct tmpi_settings *s, const char *text)
{
    trib_opts_t opts = TRIB_OPTS_INIT;
    trib_comm_t *self;
    char config[300], why[300] = "";
    float x[2 * TRIB_CODEC_ELEMENTS_MIN] = {0};

    s->codec = strcmp(text, "none") ? text : NULL;
    if (!s->codec)
        return true;
    snprintf(config, sizeof(config), "transport=loop;service=;codec=%s", text);
    opts.rank_plus_1 = opts.ranks = 1;
    opts.config = config;
    if (trib_init(&opts, &self) != TRIB_OK)
        return wrong("TRIB_MPI_CODEC", text, trib_last_error(NULL));
    if (trib_allreduce(self, NULL, x, sizeof(x) / sizeof(*x), TRIB_F32, TRIB_SUM) !=
        TRIB_OK)
        snprintf(why, sizeof(why), "%s", trib_last_error(self));
    trib_free_comm(self);
    return *why ? wrong("TRIB_MPI_CODEC", text, why) : true;
}

static bool read_prefer(struct tmpi_settings *s, const char *text)
{
    s->always = !strcmp(text, "tributary");
    return s->always || !strcmp(text, "faster") ||
           wrong("TRIB_MPI_PREFER", text, "expected faster or tributary");
}

static bool read_after(struct tmpi_settings *s, const char *text)
{
    enum { CALLS = 8 };
    char *end = NULL;

    s->pays = !strcmp(text, defaults[TMPI_SETTING_after]);
    s->after = s->pays ? CALLS : strtoul(text, &end, 10);
    return s->pays || (*text >= '0' && *text <= '9' && !*end) ||
           wrong("TRIB_MPI_AFTER", text, "expected a number of calls, or auto");
}

static void see_setting(void *arg, const trib_item_t *item)
{
    struct tmpi_settings *s = arg;

    if (!strcmp(item->name, "TRIB_STOP_TIMEOUT_MS"))
        s->waits_for_stopped = !strcmp(item->origin, "default");
    if (!strcmp(item->name, "TRIB_BOOT_TIMEOUT_MS"))
        s->boot_ms = atoi(item->value);
}

static bool read_all(struct tmpi_settings *s)
{
    for (int i = 0; i < TMPI_SETTINGS; i++)
        s->digest[i] = i == TMPI_SETTING_report ? 0 : digest_of(value_of(i));
    if (!trib_size_parse(value_of(TMPI_SETTING_min), &s->min))
        return wrong("TRIB_MPI_MIN", value_of(TMPI_SETTING_min),
                     "expected a number of bytes, such as 4096 or 64K");
    return read_calls(s, value_of(TMPI_SETTING_calls)) &&
           read_after(s, value_of(TMPI_SETTING_after)) &&
           read_prefer(s, value_of(TMPI_SETTING_prefer)) &&
           read_codec(s, value_of(TMPI_SETTING_codec));
}

/* With prefer=tributary a communicator need not pay. A non-blocking call cannot create
 * a library communicator. So if only such calls are listed, the blocking calls that
 * stay with MPI are counted instead. */
static void settle(struct tmpi_settings *s)
{
    s->pays = s->pays && !s->always;
    for (int k = 0; k < TMPI_KINDS; k++)
        s->counted |= (uint32_t)tmpi_kinds[k].timed << k;
    if (s->calls & s->counted || !s->calls)
        s->counted = 0;
}

void tmpi_settings_read(struct tmpi_settings *s)
{
    const char *whole = secure_getenv("TRIB_MPI");
    const char *report = value_of(TMPI_SETTING_report);

    *s = (struct tmpi_settings){.report = strcmp(report, "0") ? report : NULL};
    const bool is_wrong = !read_all(s);
    settle(s);
    (void)trib_list_each(TRIB_LIST_CONFIG, see_setting, s);
    s->off = (whole && !strcmp(whole, "off")) || is_wrong || !s->calls;
}
