/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/run/run_parts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES 65536
#define LINE_BYTES_MAX (1u << 20) /* longer lines are split */
#define SINK_FULL (1u << 18) /* unwritten bytes above which ranks are made to wait */

void run_say(const char *fmt, ...)
{
    char line[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    fprintf(stderr, "trib-run: %s\n", line);
}

static bool reserve(char **text, size_t *cap, size_t need)
{
    if (need <= *cap)
        return true;
    size_t bigger = *cap ? *cap : 4096;
    while (bigger < need)
        bigger *= 2;
    char *moved = realloc(*text, bigger);
    if (!moved)
        return false;
    *text = moved;
    *cap = bigger;
    return true;
}

static bool append_line(struct run_sink *sink, const char *prefix, const char *line,
                        size_t len)
{
    size_t head = strlen(prefix);
    bool feed = len == 0 || line[len - 1] != '\n';

    if (sink->broken)
        return true;
    if (!reserve(&sink->text, &sink->cap, sink->len + head + len + 1))
        return false;
    memcpy(sink->text + sink->len, prefix, head);
    memcpy(sink->text + sink->len + head, line, len);
    sink->len += head + len;
    if (feed)
        sink->text[sink->len++] = '\n';
    return true;
}

/* Forward complete lines; keep the rest. */
static bool split_lines(struct run_stream *stream)
{
    size_t begin = 0;
    bool ok = true;

    while (ok && begin < stream->len) {
        char *feed = memchr(stream->text + begin, '\n', stream->len - begin);
        if (!feed)
            break;
        size_t end = (size_t)(feed - stream->text) + 1;
        ok = append_line(stream->sink, stream->prefix, stream->text + begin,
                         end - begin);
        begin = end;
    }
    memmove(stream->text, stream->text + begin, stream->len - begin);
    stream->len -= begin;
    if (ok && stream->len >= LINE_BYTES_MAX) {
        ok = append_line(stream->sink, stream->prefix, stream->text, stream->len);
        stream->len = 0;
    }
    return ok;
}

bool run_stream_wants(const struct run_stream *stream)
{
    return stream->fd >= 0 && stream->sink->len < SINK_FULL;
}

bool run_stream_read(struct run_stream *stream)
{
    if (!reserve(&stream->text, &stream->cap, stream->len + READ_BYTES))
        return false;
    ssize_t n = read(stream->fd, stream->text + stream->len, READ_BYTES);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0) {
        run_stream_close(stream);
        return true;
    }
    stream->len += (size_t)n;
    return split_lines(stream);
}

void run_stream_close(struct run_stream *stream)
{
    if (stream->fd >= 0)
        close(stream->fd);
    stream->fd = -1;
    if (stream->len)
        append_line(stream->sink, stream->prefix, stream->text, stream->len);
    free(stream->text);
    stream->text = NULL;
    stream->len = stream->cap = 0;
}

void run_sink_write(struct run_sink *sink)
{
    size_t done = 0;
    struct pollfd ready = {.fd = sink->fd, .events = POLLOUT};

    /* The descriptor stays blocking, as the terminal is shared with other processes. A
     * pipe that is ready accepts PIPE_BUF (4096) bytes without blocking. */
    while (done < sink->len && poll(&ready, 1, 0) == 1) {
        size_t part = sink->len - done < 4096 ? sink->len - done : 4096;
        ssize_t n = write(sink->fd, sink->text + done, part);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            break;
        if (n < 0) {
            sink->broken = errno;
            done = sink->len;
            break;
        }
        done += (size_t)n;
    }
    if (done)
        memmove(sink->text, sink->text + done, sink->len - done);
    sink->len -= done;
}
