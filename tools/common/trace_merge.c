/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/trace_merge.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char head[] = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
static const char tail[] = "]}";

static bool fail(char *why, size_t why_bytes, const char *what, const char *path)
{
    snprintf(why, why_bytes, "%s %s: %s", what, path,
             errno ? strerror(errno) : "unexpected end of file");
    return false;
}

static bool no_trace(char *why, size_t why_bytes, const char *path)
{
    snprintf(why, why_bytes, "%s is not a complete TRIB_TRACE file", path);
    return false;
}

/* Copy the events: each line after the first, up to the closing line. Return true if
 * the closing line was found. */
static bool copy_lines(FILE *from, FILE *to, bool *any)
{
    char *line = NULL;
    size_t room = 0;
    bool whole = false;

    for (ssize_t n; (n = getline(&line, &room, from)) > 0;) {
        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == ','))
            line[--n] = '\0';
        whole = strcmp(line, tail) == 0;
        if (n == 0 || whole)
            continue;
        fprintf(to, "%s%s", *any ? ",\n" : "\n", line);
        *any = true;
    }
    free(line);
    return whole;
}

static bool copy_part(const char *path, FILE *to, bool *any, char *why,
                      size_t why_bytes)
{
    char first[sizeof(head)];

    errno = 0;
    FILE *from = fopen(path, "re");
    if (!from)
        return fail(why, why_bytes, "cannot read", path);
    const bool ours = fread(first, 1, sizeof(head) - 1, from) == sizeof(head) - 1 &&
                      memcmp(first, head, sizeof(head) - 1) == 0;
    const bool whole = ours && copy_lines(from, to, any);
    const bool broken = ferror(from) != 0;
    fclose(from);
    if (broken)
        return fail(why, why_bytes, "cannot read", path);
    return whole || no_trace(why, why_bytes, path);
}

bool tool_trace_merge(const char *file, char *const *parts, size_t n, char *why,
                      size_t why_bytes)
{
    bool ok = true, any = false;

    errno = 0;
    FILE *to = fopen(file, "we");
    if (!to)
        return fail(why, why_bytes, "cannot write", file);
    fputs(head, to);
    for (size_t i = 0; ok && i < n; i++)
        ok = copy_part(parts[i], to, &any, why, why_bytes);
    fprintf(to, "\n%s\n", tail);
    const bool written = !ferror(to);
    if ((fclose(to) != 0 || !written) && ok)
        return fail(why, why_bytes, "cannot write", file);
    return ok;
}

bool tool_trace_begin(struct tool_trace *t, char *why, size_t why_bytes)
{
    char parts[sizeof(t->folder) + 8];

    if (!t->file)
        return true;
    /* Use an absolute path: ranks may change their working directory. */
    char *here = t->file[0] == '/' ? NULL : get_current_dir_name();
    const int n = snprintf(t->folder, sizeof(t->folder), "%s%s%s.XXXXXX",
                           here ? here : "", here ? "/" : "", t->file);
    free(here);
    if (n < 0 || (size_t)n >= sizeof(t->folder))
        errno = ENAMETOOLONG;
    else if (mkdtemp(t->folder)) {
        snprintf(parts, sizeof(parts), "%s/part", t->folder);
        setenv("TRIB_TRACE", "262144", 0);
        setenv("TRIB_TRACE_FILE", parts, 1);
        return true;
    }
    return fail(why, why_bytes, "cannot write", t->file);
}

static int is_part(const struct dirent *entry)
{
    return strncmp(entry->d_name, "part.", 5) == 0;
}

bool tool_trace_end(struct tool_trace *t, char *why, size_t why_bytes)
{
    struct dirent **found = NULL;

    if (!t->file)
        return true;
    const int listed = scandir(t->folder, &found, is_part, versionsort);
    const size_t n = listed > 0 ? (size_t)listed : 0;
    char **parts = calloc(n + 1, sizeof(*parts));
    bool ok = parts != NULL;
    for (size_t i = 0; i < n; i++) {
        ok = ok && asprintf(&parts[i], "%s/%s", t->folder, found[i]->d_name) > 0;
        free(found[i]);
    }
    free(found);
    if (!ok)
        snprintf(why, why_bytes, "out of memory");
    else if (n == 0)
        snprintf(why, why_bytes,
                 "no rank wrote a trace for %s: ranks write it in trib_free_comm",
                 t->file);
    ok = ok && n > 0 && tool_trace_merge(t->file, parts, n, why, why_bytes);
    for (size_t i = 0; parts && i < n; i++) {
        if (parts[i])
            (void)unlink(parts[i]);
        free(parts[i]);
    }
    free(parts);
    (void)rmdir(t->folder);
    return ok;
}
