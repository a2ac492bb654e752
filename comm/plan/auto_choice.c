/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/plan/auto_choice.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "compress/codec.h"

#define BUDGET "max_nmse="
#define LIST "of="

/* Codecs without residual or model: the loss of a start is final. f16 is not included
 * because a sum may overflow it. */
static const char *const candidates[] = {
    "blocks",
    "bf16",
    "f8:round=random",
    "int16:result=requantised",
    "int8",
    "int8:result=requantised",
    "qsgd:bits=8",
    "qsgd:bits=4",
    "int4:result=requantised",
    "topk:ratio=0.1,ef=0",
    "topk:ratio=0.01,ef=0",
    "bound:rel=0.01",
    "bound:rel=0.001",
    NULL,
};

static const double MARGIN = 0.5; /* fraction of the budget that a sample's error may
                                   * use */
static const double VARIED = 0.85; /* expected time of a variant relative to its base */
static const double TRY = 0.9, LEAVE = 0.95, DRIFT = 1.25, OPTIMISM_MOST = 4;
enum { DRIFTS = 2 };
static const double COPY_BPS = 8e9; /* bytes per second of dense sums in memory */
static const double HIDDEN = 0.7; /* fraction of the shorter of CPU and wire time that
                                   * is overlapped */
static const double CLEAR = 0.6; /* of the time of dense sums; below, they are not
                                  * measured again */

/* Parsing -------------------------------------------------------------------------- */

bool trib_auto_wanted(const char *text)
{
    const size_t n = strlen(TRIB_AUTO);

    return strncmp(text, TRIB_AUTO, n) == 0 && (!text[n] || text[n] == ':');
}

static trib_status_t add(struct trib_auto_choice *c, const char *text, size_t len,
                         struct trib_error *err)
{
    struct trib_auto_candidate *next = &c->of[c->n];
    struct trib_codec *codec;

    if (c->n == TRIB_AUTO_CODECS || len >= sizeof(next->text))
        return trib_fail(err, TRIB_ERR_CODEC,
                         "codec auto: of= takes at most %d codecs of %zu characters",
                         TRIB_AUTO_CODECS - 1, sizeof(next->text) - 1);
    *next = (struct trib_auto_candidate){.nmse = -1, .like = c->n, .merges = 1};
    memcpy(next->text, text, len);
    trib_status_t st = trib_codec_create(next->text, NULL, err, &codec);
    if (st != TRIB_OK)
        return st;
    const uint32_t flags = trib_codec_info(codec)->flags;
    trib_codec_destroy(codec);
    if (flags & TRIB_CODEC_IDENTITY && c->n)
        return TRIB_OK; /* dense sums are candidate 0 */
    if (flags & (TRIB_CODEC_MODEL | TRIB_CODEC_VOTE))
        return trib_fail(err, TRIB_ERR_CODEC,
                         "codec auto: %s %s, so auto cannot switch to it between "
                         "starts: use it without auto",
                         next->text,
                         flags & TRIB_CODEC_MODEL ? "is trained over the starts of a "
                                                    "plan"
                                                  : "returns signs, not sums");
    next->holds = flags & TRIB_CODEC_FEEDBACK;
    c->n++;
    c->codecs = c->n;
    return TRIB_OK;
}

static trib_status_t add_list(struct trib_auto_choice *c, const char *list,
                              struct trib_error *err)
{
    trib_status_t st = TRIB_OK;

    while (st == TRIB_OK && *list) {
        const size_t len = strcspn(list, "|");
        st =
            len ? add(c, list, len, err)
                : trib_fail(err, TRIB_ERR_CODEC, "codec auto: an empty name in of=…|…");
        list += len + (list[len] == '|');
    }
    return st;
}

static trib_status_t add_all(struct trib_auto_choice *c, struct trib_error *err)
{
    trib_status_t st = TRIB_OK;

    for (int i = 0; candidates[i] && st == TRIB_OK; i++)
        st = add(c, candidates[i], strlen(candidates[i]), err);
    return st;
}

trib_status_t trib_auto_parse(const char *text, struct trib_error *err,
                              struct trib_auto_choice *out)
{
    const char *rest = text + strlen(TRIB_AUTO);

    assert(trib_auto_wanted(text));
    *out = (struct trib_auto_choice){
        .max_nmse = -1, .ranks = 1, .crowd = 1, .optimism = 1};
    trib_status_t st = add(out, "none", strlen("none"), err);
    if (st != TRIB_OK)
        return st;
    rest += *rest == ':';
    if (strncmp(rest, LIST, strlen(LIST)) == 0 && rest[strlen(LIST)])
        return add_list(out, rest + strlen(LIST), err);
    if (strncmp(rest, BUDGET, strlen(BUDGET)) != 0)
        return trib_fail(err, TRIB_ERR_CODEC,
                         "codec \"%s\": set an error budget, as in auto:max_nmse=1e-3, "
                         "or list the codecs to choose from, as in auto:of=int8|bf16",
                         text);
    if (!trib_number_take(rest + strlen(BUDGET), &out->max_nmse) ||
        !(out->max_nmse >= 0) || out->max_nmse > 1)
        return trib_fail(err, TRIB_ERR_CODEC,
                         "codec \"%s\": max_nmse is the squared error over the squared "
                         "sum and must be from 0 to 1",
                         text);
    return add_all(out, err);
}

trib_status_t trib_auto_feedback(const char *feedback, struct trib_error *err)
{
    if (strcmp(feedback, "codec") == 0 || strcmp(feedback, "none") == 0)
        return TRIB_OK;
    return trib_fail(err, TRIB_ERR_UNSUPPORTED,
                     "codec auto supports only the codecs' own feedback: feedback is "
                     "%s, omit it or name a codec",
                     feedback);
}

/* Choosing ------------------------------------------------------------------------- */

bool trib_auto_allowed(const struct trib_auto_choice *choice, int i)
{
    assert(i >= 0 && i < choice->n);
    const struct trib_auto_candidate *c = &choice->of[choice->of[i].like];

    if (c == choice->of)
        return true;
    if (choice->max_nmse < 0)
        return c->bytes > 0;
    return c->nmse >= 0 && c->nmse <= MARGIN * choice->max_nmse;
}

/* Return the part of a start's time that does not depend on bytes. */
static double fixed_us(const struct trib_auto_choice *choice)
{
    assert(choice->fixed >= 0 && choice->fixed <= 1);
    return choice->fixed * choice->of[0].took_us;
}

/* Return the modelled time of a start with candidate i, if dense elements take wire_us
 * on the wire. */
static double model_us(const struct trib_auto_choice *choice, int i, double wire_us)
{
    const struct trib_auto_candidate *c = &choice->of[i];
    const double copy_us = choice->count * choice->element / COPY_BPS * 1e6;
    const double wire = wire_us * (i ? c->bytes / choice->element : 1);
    const double work = i ? choice->count * c->work_ns * 1e-3 * choice->crowd : copy_us;
    const double shorter = fmin(wire, work);

    return fixed_us(choice) + fmax(wire, work) + (1 - HIDDEN) * shorter;
}

/* Return the wire time of dense elements: solve model_us(…, 0, x) == measured for x. */
static double wire_us(const struct trib_auto_choice *choice)
{
    const double copy_us = choice->count * choice->element / COPY_BPS * 1e6;
    const double took = choice->of[0].took_us - fixed_us(choice);
    const double wire = took - (1 - HIDDEN) * copy_us;

    return wire > copy_us ? wire : fmax((took - copy_us) / (1 - HIDDEN), 0);
}

double trib_auto_expect_us(const struct trib_auto_choice *choice, int i, double link)
{
    const struct trib_auto_candidate *c = &choice->of[i];
    assert(link > 0 && choice->optimism >= 1);
    const bool here = !(link > 1) && !(link < 1);

    if (here && c->took_us > 0)
        return c->took_us;
    if (c->like != i)
        return VARIED * trib_auto_expect_us(choice, c->like, link);
    if (!(choice->of[0].took_us > 0) || (i && !(c->bytes > 0)))
        return 0;
    return model_us(choice, i, wire_us(choice) / link) * (i ? choice->optimism : 1);
}

/* Return true for dense sums, and for candidates that beat them by more than noise. */
static bool worth(const struct trib_auto_choice *choice, int i)
{
    const struct trib_auto_candidate *c = &choice->of[i], *dense = choice->of;

    return i == 0 ||
           (trib_auto_allowed(choice, i) && c->took_us > 0 &&
            c->took_us + c->noise_us < LEAVE * (dense->took_us - dense->noise_us));
}

static int best_measured(const struct trib_auto_choice *choice)
{
    int best = 0;

    for (int i = 1; i < choice->n; i++)
        if (worth(choice, i) && choice->of[i].took_us < choice->of[best].took_us)
            best = i;
    return best;
}

/* Return the most promising candidate among those that have not run; 0: none. */
static int best_promise(const struct trib_auto_choice *choice)
{
    int best = 0;
    double least = HUGE_VAL;

    for (int i = 1; i < choice->n; i++) {
        const double us = trib_auto_expect_us(choice, i, 1);
        if (!trib_auto_allowed(choice, i) || choice->of[i].took_us > 0 || !(us > 0) ||
            us >= least)
            continue;
        best = i;
        least = us;
    }
    return best;
}

/* Return true if the running candidate's time has changed permanently. */
static bool drifted(struct trib_auto_choice *choice)
{
    const double us = choice->of[choice->now].took_us, was = choice->adopted_us;
    const bool apart = us > 0 && was > 0 && (us > DRIFT * was || was > DRIFT * us);

    choice->drifts = apart ? choice->drifts + 1 : 0;
    return choice->drifts >= DRIFTS;
}

/* Learn from a candidate's first time how optimistic its estimate was. Estimates of the
 * others may be better, so only the square root of the ratio applies to them. */
static void learn(struct trib_auto_choice *choice)
{
    const int now = choice->now;
    const double us = choice->of[now].took_us;

    if (now == 0 || now >= choice->codecs || choice->adopted_us > 0 || !(us > 0))
        return;
    const double model = model_us(choice, now, wire_us(choice));
    if (model > 0)
        choice->optimism = fmin(fmax(sqrt(us / model), 1), OPTIMISM_MOST);
}

static int adopt(struct trib_auto_choice *choice, int i)
{
    assert(i == 0 || trib_auto_allowed(choice, i));
    choice->adopted_us = choice->of[i].took_us;
    choice->now = i;
    choice->drifts = 0;
    choice->settled = false;
    return i;
}

static void forget_others(struct trib_auto_choice *choice)
{
    for (int i = 0; i < choice->n; i++)
        if (i != choice->now)
            choice->of[i].took_us = 0;
    choice->adopted_us = choice->of[choice->now].took_us;
    choice->optimism = 1;
    choice->confirmed = false;
    choice->changes++;
}

/* Return true if dense sums must be measured again: a plan's first starts are slower
 * than later ones. */
static bool in_doubt(const struct trib_auto_choice *choice, int best)
{
    return best && !choice->confirmed &&
           choice->of[best].took_us > CLEAR * choice->of[0].took_us;
}

int trib_auto_next(struct trib_auto_choice *choice)
{
    learn(choice);
    if (drifted(choice))
        forget_others(choice);
    if (!(choice->of[0].took_us > 0))
        return adopt(choice, 0);
    const int best = best_measured(choice), promise = best_promise(choice);
    if (promise &&
        trib_auto_expect_us(choice, promise, 1) < TRY * choice->of[best].took_us)
        return adopt(choice, promise);
    if (in_doubt(choice, best)) {
        choice->confirmed = true;
        return adopt(choice, 0);
    }
    if (worth(choice, choice->now) &&
        choice->of[best].took_us > LEAVE * choice->of[choice->now].took_us) {
        if (!(choice->adopted_us > 0))
            choice->adopted_us = choice->of[choice->now].took_us;
        choice->settled = true;
        return choice->now;
    }
    return adopt(choice, best);
}

bool trib_auto_vary(struct trib_auto_choice *choice, const char *algorithm,
                    size_t chunk)
{
    const int like = choice->of[choice->now].like;

    assert(algorithm || chunk);
    for (int i = choice->codecs; i < choice->n; i++)
        if (choice->of[i].like == like && choice->of[i].algorithm == algorithm &&
            choice->of[i].chunk == chunk)
            return false;
    if (choice->n == TRIB_AUTO_CANDIDATES)
        return false;
    struct trib_auto_candidate *c = &choice->of[choice->n++];
    *c = (struct trib_auto_candidate){.holds = choice->of[like].holds,
                                      .nmse = -1,
                                      .like = like,
                                      .merges = choice->of[like].merges,
                                      .algorithm = algorithm,
                                      .chunk = chunk};
    memcpy(c->text, choice->of[like].text, sizeof(c->text));
    return true;
}

bool trib_auto_holds(const struct trib_auto_choice *choice)
{
    for (int i = 0; i < choice->codecs; i++)
        if (choice->of[i].holds)
            return true;
    return false;
}

/* Explanations --------------------------------------------------------------------- */

/* Return the second best by measured or expected time; -1: none. */
static int runner_up(const struct trib_auto_choice *choice)
{
    int second = -1;

    for (int i = 0; i < choice->n; i++) {
        const double us = trib_auto_expect_us(choice, i, 1);
        if (i == choice->now || !trib_auto_allowed(choice, i) || !(us > 0))
            continue;
        if (second < 0 || us < trib_auto_expect_us(choice, second, 1))
            second = i;
    }
    return second;
}

static int best_at(const struct trib_auto_choice *choice, double link)
{
    int best = 0;

    for (int i = 1; i < choice->codecs; i++)
        if (trib_auto_allowed(choice, i) && trib_auto_expect_us(choice, i, link) <
                                                trib_auto_expect_us(choice, best, link))
            best = i;
    return best;
}

/* Return the nearest rate, higher or lower, at which another candidate should win. */
static double changes_at(const struct trib_auto_choice *choice, int *to)
{
    const int here = best_at(choice, 1.0000001);

    for (double link = 1.05; link < 1e4; link *= 1.05) {
        const double both[] = {link, 1 / link};
        for (int k = 0; k < 2; k++) {
            *to = best_at(choice, both[k]);
            if (*to != here)
                return both[k];
        }
    }
    return 0;
}

static int describe_change(const struct trib_auto_choice *choice, char *text,
                           size_t bytes)
{
    const double p = choice->ranks, wire = wire_us(choice);
    int to;

    assert(p >= 1);
    const double link = changes_at(choice, &to);
    /* A ring moves this much through each rank's link, in each direction. */
    const double gbit =
        wire > 0 ? 2 * (p - 1) / p * choice->count * choice->element * 8e-3 / wire : 0;

    if (!(gbit > 0) || !(link > 0))
        return snprintf(text, bytes, "changes    at no link rate\n");
    return snprintf(text, bytes,
                    "changes    to %s on links of %s than %.3g Gbit/s per rank; this "
                    "link carried %.3g\n",
                    choice->of[to].text, link > 1 ? "more" : "less", link * gbit, gbit);
}

const char *trib_auto_name(const struct trib_auto_choice *choice, int i, char *name,
                           size_t bytes)
{
    const struct trib_auto_candidate *c = &choice->of[i];

    if (c->algorithm)
        snprintf(name, bytes, "%.100s by %s", c->text, c->algorithm);
    else if (c->chunk)
        snprintf(name, bytes, "%.100s in chunks of %zu bytes", c->text, c->chunk);
    else
        snprintf(name, bytes, "%.100s", c->text);
    return name;
}

void trib_auto_explain(const struct trib_auto_choice *choice, char *text, size_t bytes)
{
    const struct trib_auto_candidate *now = &choice->of[choice->now];
    const int second = runner_up(choice);
    size_t n = 0;

    assert(text && bytes > 0 && choice->now < choice->n);
    char error[64] = "", other[220] = "", name[150];

    if (choice->max_nmse >= 0)
        snprintf(error, sizeof(error), ", at most %.3g", choice->max_nmse);
    if (!(choice->of[0].took_us > 0)) {
        snprintf(text, bytes,
                 "auto       none until its first starts are measured; %d codecs to "
                 "choose from%s%s\n",
                 choice->codecs - 1, choice->max_nmse >= 0 ? ", NMSE" : "", error);
        return;
    }
    if (second >= 0)
        snprintf(other, sizeof(other), "; next is %s, %.3g ms (%s)",
                 trib_auto_name(choice, second, name, sizeof(name)),
                 trib_auto_expect_us(choice, second, 1) * 1e-3,
                 choice->of[second].took_us > 0 ? "measured" : "expected");
    n += (size_t)snprintf(text, bytes, "auto       %s, %.3g ms per start (%s)%s\n",
                          trib_auto_name(choice, choice->now, name, sizeof(name)),
                          trib_auto_expect_us(choice, choice->now, 1) * 1e-3,
                          now->took_us > 0 ? "measured" : "expected", other);
    if (n < bytes && choice->now)
        n += (size_t)snprintf(
            text + n, bytes - n,
            "           %.2f times as fast as none; NMSE %.2g on a sample%s%s\n",
            choice->of[0].took_us / trib_auto_expect_us(choice, choice->now, 1),
            fmax(choice->of[now->like].nmse, 0), error,
            now->holds ? ", corrected by later starts" : "");
    if (n < bytes)
        (void)describe_change(choice, text + n, bytes - n);
}
