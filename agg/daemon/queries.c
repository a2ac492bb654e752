/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Session queries to munged and the user database. They are tasks of the request
 * worker, so that a hung munged delays only the clients that use it.
 */
#include <assert.h>
#include <stdlib.h>

#include "agg/daemon/server_parts.h"

struct query {
    struct request_worker_task task; /* first: the request worker returns it */
    struct client *client; /* NULL: freed */
    struct trib_question *question;
    struct credentials *credentials; /* held: the question uses its auth */
};

static void work(struct request_worker_task *task)
{
    trib_question_answer(((struct query *)task)->question);
}

/* A question that was not processed has timed out; its session ends by its own
 * timeout. */
static void done(struct request_worker_task *task)
{
    struct query *q = (struct query *)task;

    assert(!q->client || q->client->query == q);
    if (q->client)
        q->client->query = NULL;
    if (q->client && task->worked) {
        /* The next step returns the error, too. */
        (void)trib_session_answer(q->client->session, q->question);
        q->client->ready = true;
    } else {
        trib_question_free(q->question);
    }
    credentials_release(q->credentials);
    free(q);
}

trib_status_t query_begin(struct server *s, struct client *c)
{
    struct trib_question *question = trib_session_question(c->session);
    struct query *q = question ? calloc(1, sizeof(*q)) : NULL;

    if (!question)
        return TRIB_INPROGRESS;
    if (!q) {
        trib_question_free(question);
        return trib_session_end(c->session, TRIB_ERR_NO_MEMORY,
                                "out of memory for a credential");
    }
    assert(!c->query); /* a session has one question at a time */
    q->task = (struct request_worker_task){
        .until = trib_session_due(c->session), .work = work, .done = done};
    q->client = c;
    q->question = question;
    q->credentials = credentials_hold(c->credentials);
    c->query = q;
    request_worker_submit(s->request_worker, &q->task);
    return TRIB_INPROGRESS;
}

void query_abandon(struct server *s, struct client *c)
{
    struct query *q = c->query;

    if (!q)
        return;
    c->query = NULL;
    q->client = NULL;
    if (request_worker_cancel(s->request_worker, &q->task))
        done(&q->task);
}
