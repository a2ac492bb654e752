/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/report/page_parts.h"

#include <string.h>

/* --- values --- */

static void write_value(const json_t *value, FILE *f)
{
    if (json_is_string(value))
        svg_text(json_string_value(value), f);
    else if (json_is_number(value))
        fprintf(f, "%.10g", json_number_value(value));
    else if (json_is_boolean(value))
        fputs(json_is_true(value) ? "yes" : "no", f);
}

static void write_pair(const char *name, const json_t *value, FILE *f)
{
    fputs("<dt>", f);
    for (const char *key = name; *key; key++) {
        const char letter[2] = {*key == '_' ? ' ' : *key, '\0'};
        svg_text(letter, f);
    }
    fputs("</dt><dd>", f);
    if (strcmp(name, "memory_bytes") == 0 && json_is_integer(value))
        fprintf(f, "%.3g GiB", json_number_value(value) / 0x1p30);
    else
        write_value(value, f);
    fputs("</dd>\n", f);
}

static void write_object(json_t *object, FILE *f)
{
    const char *key;
    json_t *value;

    fputs("<dl>\n", f);
    json_object_foreach(object, key, value)
    {
        if (!json_is_object(value) && !json_is_array(value))
            write_pair(key, value, f);
    }
    fputs("</dl>\n", f);
}

/* Write settings as "TRIB_SPIN_US=5 (environment)". */
static void write_settings(json_t *settings, FILE *f)
{
    const char *key;
    json_t *setting;

    if (json_object_size(settings) == 0) {
        fputs("<p>All settings have their defaults.</p>\n", f);
        return;
    }
    fputs("<p>Settings that differ from their defaults:</p>\n<pre>", f);
    json_object_foreach(settings, key, setting)
    {
        svg_text(key, f);
        fputc('=', f);
        write_value(json_object_get(setting, "value"), f);
        fputs(" (", f);
        write_value(json_object_get(setting, "origin"), f);
        fputs(")\n", f);
    }
    fputs("</pre>\n", f);
}

/* --- commands --- */

static bool is_plain(const char *word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-+=:,./@%";

    return *word != '\0' && word[strspn(word, letters)] == '\0';
}

/* Write a word quoted for the shell. */
static void write_word(const char *word, FILE *f)
{
    if (is_plain(word)) {
        svg_text(word, f);
        return;
    }
    fputc('\'', f);
    for (; *word; word++) {
        const size_t n = strcspn(word, "'");
        char part[512];
        snprintf(part, sizeof(part), "%.*s", (int)n, word);
        svg_text(part, f);
        if (word[n] == '\0')
            break;
        fputs("'\\''", f);
        word += n;
    }
    fputc('\'', f);
}

static void write_command(const json_t *words, FILE *f)
{
    const json_t *word;
    size_t i;

    fputs("<pre>", f);
    json_array_foreach(words, i, word)
    {
        const char *text = json_string_value(word);
        const char *slash = i == 0 && text != NULL ? strrchr(text, '/') : NULL;
        if (i > 0)
            fputc(' ', f);
        write_word(slash != NULL ? slash + 1 : text != NULL ? text : "", f);
    }
    fputs("</pre>\n", f);
}

/* --- all --- */

/* Return the first document with the same machine as document i; i if there is none
 * before it. */
static size_t same_machine(const struct page *page, size_t i)
{
    const json_t *machine = json_object_get(page->files[i].document, "machine");
    size_t j = 0;

    while (j < i &&
           !json_equal(machine, json_object_get(page->files[j].document, "machine")))
        j++;
    return j;
}

static void write_file(const struct page *page, size_t i, FILE *f)
{
    const struct report_file *file = &page->files[i];
    const size_t same = same_machine(page, i);
    char title[256];

    fputs("<section><h3>", f);
    if (page->n_files > 1)
        fprintf(f, "%zu. ", i + 1);
    svg_text(report_title(file, title, sizeof(title)), f);
    fputs("</h3>\n<p>", f);
    write_value(json_object_get(file->document, "time"), f);
    fputs(", tributary ", f);
    write_value(json_object_get(file->document, "tributary"), f);
    fputs(", from ", f);
    svg_text(file->path, f);
    fputs("</p>\n", f);
    write_command(json_object_get(file->document, "argv"), f);
    write_object(json_object_get(file->document, "run"), f);
    if (same == i)
        write_object(json_object_get(file->document, "machine"), f);
    else
        fprintf(f, "<p>Same machine as measurement %zu.</p>\n", same + 1);
    write_settings(json_object_get(file->document, "settings"), f);
    fputs("</section>\n", f);
}

void page_about(const struct page *page, FILE *f)
{
    fputs("<h2>How it was measured</h2>\n<div class=\"about\">\n", f);
    for (size_t i = 0; i < page->n_files; i++)
        write_file(page, i, f);
    fputs("</div>\n", f);
}
