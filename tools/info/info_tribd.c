/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-info top http://HOST:PORT - show the jobs of a tribd, read from its /status.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/rank_table.h"
#include "tools/common/tribd_client.h"
#include "tools/info/info_commands.h"

struct address {
    char host[256], port[16];
};

/* Parse "http://host:port", with or without a path; IPv6 addresses need brackets. */
static bool take_apart(const char *url, struct address *out)
{
    int end = 0;

    memset(out, 0, sizeof(*out));
    if (sscanf(url, "http://[%255[0-9a-fA-F:.]]:%15[0-9]%n", out->host, out->port,
               &end) != 2 &&
        sscanf(url, "http://%255[^][:/ ]:%15[0-9]%n", out->host, out->port, &end) != 2)
        return false;
    return url[end] == '\0' || url[end] == '/';
}

json_t *info_tribd_status(const char *url, char *why, size_t bytes)
{
    struct address address;
    char cause[128] = "the URL must be http://HOST:PORT";
    char *body = take_apart(url, &address)
                     ? tool_tribd_status(address.host, address.port,
                                         TOOL_TRIBD_TIMEOUT_MS, cause, sizeof(cause))
                     : NULL;
    json_t *status = body ? json_loads(body, 0, NULL) : NULL;

    if (body && json_is_array(json_object_get(status, "jobs"))) {
        free(body);
        return status;
    }
    snprintf(why, bytes, "cannot query %.200s: %s", url,
             body ? "the server is not a tribd" : cause);
    free(body);
    json_decref(status);
    return NULL;
}

/* Copy a name chosen by another user, with characters unsafe for a terminal
 * replaced. */
static const char *word(const json_t *of, const char *key, char text[25])
{
    const char *value = json_string_value(json_object_get(of, key));
    size_t n = 0;

    for (; value && value[n] && n < 24; n++)
        text[n] = value[n] >= ' ' && value[n] < 0x7f ? value[n] : '?';
    text[n] = '\0';
    return text;
}

static json_int_t number(const json_t *of, const char *key)
{
    return json_integer_value(json_object_get(of, key));
}

static json_int_t moved(const json_t *job)
{
    return number(job, "received_bytes") + number(job, "sent_bytes");
}

static const json_t *same_job(const json_t *status, json_int_t id)
{
    const json_t *job;
    size_t i;

    json_array_foreach(json_object_get(status, "jobs"), i, job)
    {
        if (number(job, "id") == id)
            return job;
    }
    return NULL;
}

static double a_second(json_int_t now, json_int_t before, double seconds)
{
    return now > before && seconds > 0 ? (double)(now - before) / seconds : 0;
}

static void print_now(const json_t *job)
{
    const json_t *op = json_object_get(job, "operation");
    char phase[25];

    printf("      ");
    if (!json_is_object(op)) {
        puts("no operation in progress");
        return;
    }
    printf("operation %" JSON_INTEGER_FORMAT ", %s%s", number(op, "number"),
           word(op, "phase", phase),
           json_is_true(json_object_get(op, "stuck")) ? ", stuck" : "");
    if (json_is_integer(json_object_get(op, "waits_for")))
        printf(", waits for rank %" JSON_INTEGER_FORMAT, number(op, "waits_for"));
    printf(", %.1f s\n", json_number_value(json_object_get(op, "age_s")));
}

void info_tribd_print(const json_t *status, const json_t *before)
{
    const double seconds = json_number_value(json_object_get(status, "uptime_s")) -
                           json_number_value(json_object_get(before, "uptime_s"));
    const json_t *job;
    char name[25], user[25], bytes[24];
    size_t i;

    printf("%5s %-24s %-10s %6s %12s %13s\n", "job", "name", "user", "ranks",
           "operations/s", "bytes");
    json_array_foreach(json_object_get(status, "jobs"), i, job)
    {
        const json_t *was = same_job(before, number(job, "id"));
        printf("%5" JSON_INTEGER_FORMAT " %-24s %-10.10s %6" JSON_INTEGER_FORMAT
               " %12.0f %11s/s\n",
               number(job, "id"), word(job, "name", name), word(job, "user", user),
               number(job, "ranks"),
               was ? a_second(number(job, "operations"), number(was, "operations"),
                              seconds)
                   : 0,
               tool_bytes_text(was ? a_second(moved(job), moved(was), seconds) : 0,
                               bytes));
        print_now(job);
    }
    if (!json_array_size(json_object_get(status, "jobs")))
        puts("this service has no jobs");
    fflush(stdout);
}
