/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Leader SGD: each rank takes local steps and is pulled towards the rank with the
 * lowest mean loss, in its group and among all. A group elects its leader every
 * `period` steps, and all ranks elect one every `global` steps; a leader broadcasts its
 * parameters. Each step pulls slightly towards the last elected leaders; leaders are
 * not pulled towards themselves. With late > 0 an election overlaps with `late` steps,
 * so that a slow rank does not delay the others at once.
 *
 * Teng et al., Leader Stochastic Gradient Descent, NeurIPS 2019.
 */
#include <stdio.h>

#include <tributary/topology.h>

#include "train/strategies/election.h"
#include "train/trainer/trainer.h"

enum { PERIOD, GLOBAL, PULL, GROUPS, LATE, KEYS };
enum { GROUPS_OF_HOSTS = -1 };

static const char *const group_words[] = {"host", NULL};
static const struct trib_keyed_key keys[KEYS] = {
    [PERIOD] = {"period", 1, 1e6, true, "a number of steps from 1 to 1e6"},
    [GLOBAL] = {"global", 0, 1e6, true, "a multiple of the period, or 0"},
    [PULL] = {"pull", 0, 1, false, "a number from 0 to 1"},
    [GROUPS] = {"groups", 1, 65536, true, "a number of groups, or host", group_words},
    [LATE] = {"late", 0, 1e6, true, "a number of steps below the period"},
};
static const double defaults[KEYS] = {[PERIOD] = 4, [PULL] = 0.1, [GROUPS] = 1};

struct leader {
    float *x; /* [count] the rank's parameters */
    float *gradient; /* [count] */
    struct trib_train_election group, all;
    double loss; /* sum since the group's last election */
    uint64_t losses;
    double newest; /* mean loss at the last election */
};

static const struct trib_train_vector vectors[] = {
    {.at = offsetof(struct leader, x), .params = true, .model = true},
    {.at = offsetof(struct leader, gradient)},
};

static trib_status_t check_numbers(struct trib_trainer *t)
{
    const double period = trib_train_number(t, PERIOD);
    const double global = trib_train_number(t, GLOBAL);

    if (trib_train_number(t, GROUPS) > t->ranks && !t->moves)
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "strategy lsgd: groups=%g, but there are %d ranks",
                         trib_train_number(t, GROUPS), t->ranks);
    if ((uint64_t)global % (uint64_t)period != 0)
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "strategy lsgd: global=%g is not a multiple of period=%g",
                         global, period);
    if (global > 0 && trib_train_number(t, GROUPS) == 1 && !t->moves)
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "strategy lsgd: global=%g is for several groups: add groups=, "
                         "or remove it",
                         global);
    if (trib_train_number(t, LATE) >= period)
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "strategy lsgd: late=%g is not below period=%g",
                         trib_train_number(t, LATE), period);
    return TRIB_OK;
}

/* Return the number of groups, and this rank's group. */
static int group_of(const struct trib_trainer *t, int *group)
{
    const int asked = (int)trib_train_number(t, GROUPS),
              groups = asked > t->ranks ? t->ranks : asked;
    int n = 0;

    *group = (int)((int64_t)t->rank * groups / t->ranks);
    if (groups != GROUPS_OF_HOSTS)
        return groups;
    *group = trib_host_of(t->comm, t->rank);
    for (int r = 0; r < t->ranks; r++)
        n = trib_host_of(t->comm, r) >= n ? trib_host_of(t->comm, r) + 1 : n;
    return n;
}

static trib_status_t make_groups(struct trib_trainer *t, struct leader *l)
{
    const uint64_t period = (uint64_t)trib_train_number(t, PERIOD);
    const uint64_t late = (uint64_t)trib_train_number(t, LATE);
    uint64_t global = (uint64_t)trib_train_number(t, GLOBAL);
    trib_status_t st = check_numbers(t);
    trib_comm_t *comm;
    int group;

    if (st != TRIB_OK)
        return st;
    if (group_of(t, &group) == 1)
        return trib_train_election_open(t, t->comm, period, late, &l->all);

    global = global ? global : 4 * period;
    st = trib_train_split(t, group, &comm);
    if (st == TRIB_OK)
        st = trib_train_election_open(t, comm, period, late, &l->group);
    return st == TRIB_OK ? trib_train_election_open(t, t->comm, global, late, &l->all)
                         : st;
}

static trib_status_t leader_create(struct trib_trainer *t)
{
    const trib_status_t st = trib_train_refuse_codecs(t, "broadcasts parameters");

    return st == TRIB_OK ? make_groups(t, t->strategy) : st;
}

static void leader_destroy(struct trib_trainer *t)
{
    struct leader *l = t->strategy;

    trib_train_election_close(t, &l->group);
    trib_train_election_close(t, &l->all);
}

static void pull(const struct trib_trainer *t, float *restrict x,
                 const float *restrict leader, double by)
{
    const float a = (float)by;

    for (size_t i = 0; i < t->count; i++)
        x[i] += a * (leader[i] - x[i]);
}

/* Pull slightly towards the last leader at each step, and more strongly when an
 * election ends. */
static trib_status_t follow(struct trib_trainer *t, struct leader *l,
                            struct trib_train_election *e)
{
    const double by = trib_train_number(t, PULL);
    bool ended;

    if (!e->comm)
        return TRIB_OK;
    if (e->follows)
        pull(t, l->x, e->leader, by / (double)e->period);

    const trib_status_t st =
        trib_train_election_step(t, e, t->number, l->x, l->newest, &ended);
    if (st == TRIB_OK && ended && e->follows)
        pull(t, l->x, e->leader, by);
    return st;
}

static trib_status_t leader_end(struct trib_trainer *t, double loss)
{
    struct leader *l = t->strategy;

    trib_train_update(t, l->x, l->gradient, trib_train_rate_at(&t->rate, t->number));
    l->loss += loss;
    l->losses++;
    if ((t->number + 1) % (uint64_t)trib_train_number(t, PERIOD) == 0) {
        l->newest = l->loss / (double)l->losses;
        l->loss = 0;
        l->losses = 0;
    }
    const trib_status_t st = follow(t, l, &l->group);
    return st == TRIB_OK ? follow(t, l, &l->all) : st;
}

static trib_status_t finish(struct trib_trainer *t, struct leader *l,
                            struct trib_train_election *e)
{
    bool ended;
    const trib_status_t st = trib_train_election_finish(t, e, &ended);

    if (st == TRIB_OK && ended && e->follows)
        pull(t, l->x, e->leader, trib_train_number(t, PULL));
    return st;
}

static trib_status_t leader_finish(struct trib_trainer *t, float *model_out)
{
    struct leader *l = t->strategy;
    trib_status_t st = finish(t, l, &l->group);

    if (st == TRIB_OK)
        st = finish(t, l, &l->all);
    return st == TRIB_OK ? trib_train_mean(t, l->x, model_out) : st;
}

static bool goes_on(const struct trib_train_election *e)
{
    return e->votes || e->parameters;
}

static bool leader_busy(const struct trib_trainer *t)
{
    const struct leader *l = t->strategy;

    return goes_on(&l->group) || goes_on(&l->all);
}

static int leader_fields(struct trib_trainer *t,
                         struct trib_train_field out[TRIB_TRAIN_FIELDS])
{
    struct leader *l = t->strategy;
    struct trib_train_election *group = &l->group, *all = &l->all;
    const size_t bytes = t->count * sizeof(float);
    int n = 0;

    out[n++] = (struct trib_train_field){"leader", all->leader, bytes, true};
    out[n++] =
        (struct trib_train_field){"elected", &all->elected, sizeof(all->elected), true};
    out[n++] = (struct trib_train_field){"follows", &all->follows, sizeof(all->follows),
                                         false};
    out[n++] = (struct trib_train_field){"own", l->x, bytes, false};
    out[n++] = (struct trib_train_field){"loss", &l->loss, sizeof(l->loss), false};
    out[n++] =
        (struct trib_train_field){"losses", &l->losses, sizeof(l->losses), false};
    out[n++] =
        (struct trib_train_field){"newest", &l->newest, sizeof(l->newest), false};
    if (!group->comm)
        return n;
    out[n++] = (struct trib_train_field){"group leader", group->leader, bytes, false};
    out[n++] = (struct trib_train_field){"group follows", &group->follows,
                                         sizeof(group->follows), false};
    return n;
}

/* The groups have changed, so each must elect before it pulls. */
static trib_status_t leader_moved(struct trib_trainer *t,
                                  const struct trib_train_move *m)
{
    struct leader *l = t->strategy;

    (void)m;
    l->group.follows = false;
    l->all.follows = l->all.follows && l->all.elected;
    return TRIB_OK;
}

static void leader_explain(const struct trib_trainer *t, char *text, size_t bytes)
{
    const struct leader *l = t->strategy;
    char group[64] = "";

    if (l->group.comm)
        snprintf(group, sizeof(group),
                 "%g steps towards the best rank of the group, every ",
                 trib_train_number(t, PERIOD));
    snprintf(text, bytes,
             "every %s%llu steps towards the best of all, by %g; this rank led %llu of "
             "%llu times",
             group, (unsigned long long)l->all.period, trib_train_number(t, PULL),
             (unsigned long long)(l->group.led + l->all.led),
             (unsigned long long)(l->group.held + l->all.held));
}

const struct trib_strategy_ops trib_strategy_lsgd = {
    .apart = true,
    .keys = keys,
    .defaults = defaults,
    .n_keys = KEYS,
    .state_bytes = sizeof(struct leader),
    .vectors = vectors,
    .n_vectors = sizeof(vectors) / sizeof(*vectors),
    .create = leader_create,
    .destroy = leader_destroy,
    .end = leader_end,
    .finish = leader_finish,
    .busy = leader_busy,
    .fields = leader_fields,
    .moved = leader_moved,
    .explain = leader_explain,
};
