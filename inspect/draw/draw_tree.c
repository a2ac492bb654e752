/* SPDX-License-Identifier: BSD-3-Clause */
#include "inspect/draw/draw_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/draw/draw_nodes.h"

#define DEPTHS (TRIB_NODE_DEPTH_MAX + 1)
#define LINE_BYTES 1024

/* --- text --- */

/* open: whether the branch of each depth continues below. */
static void print_node(const struct trib_node *node, bool open[DEPTHS],
                       char line[LINE_BYTES])
{
    size_t n = 0;

    open[node->depth] = node->more;
    for (int d = 1; d <= node->depth; d++) {
        const char *branch = d < node->depth ? (open[d] ? "│  " : "   ")
                             : open[d]       ? "├─ "
                                             : "└─ ";
        n += (size_t)snprintf(line + n, LINE_BYTES - n, "%s", branch);
    }
    snprintf(line + n, LINE_BYTES - n, "%s", node->label);
}

trib_status_t trib_draw_text(const struct trib_drawing *drawing, trib_line_fn fn,
                             void *arg)
{
    struct trib_nodes nodes;
    char line[LINE_BYTES];
    bool open[DEPTHS] = {false};
    trib_status_t status = trib_nodes_make(drawing, &nodes);

    for (int i = 0; status == TRIB_OK && i < nodes.n; i++) {
        print_node(&nodes.node[i], open, line);
        fn(arg, line);
    }
    free(nodes.node);
    return status;
}

/* --- Graphviz --- */

static const char *const styles[] = {
    [TRIB_NODE_SWITCH] = "shape=ellipse",
    [TRIB_NODE_HOST] = "shape=box, penwidth=2",
    [TRIB_NODE_PART] = "shape=box",
    [TRIB_NODE_NIC] = "shape=box, style=rounded",
};

/* Escape a label for a quoted string; ", " becomes a line break. */
static void print_label(const struct trib_node *node, char out[LINE_BYTES])
{
    size_t n = 0;

    for (const char *p = node->label; *p && n + 4 < LINE_BYTES; p++) {
        if (p[0] == ',' && p[1] == ' ') {
            out[n++] = '\\';
            out[n++] = 'n';
            p++;
            continue;
        }
        if (*p == '"' || *p == '\\')
            out[n++] = '\\';
        out[n++] = *p;
    }
    out[n] = '\0';
}

static void print_graph(const struct trib_nodes *nodes, trib_line_fn fn, void *arg)
{
    int parents[DEPTHS] = {0};
    char label[LINE_BYTES];
    char line[2 * LINE_BYTES];

    fn(arg, "graph topology {");
    fn(arg, "    node [fontname=\"sans-serif\", fontsize=10];");
    for (int i = 0; i < nodes->n; i++) {
        int depth = nodes->node[i].depth;
        print_label(&nodes->node[i], label);
        snprintf(line, sizeof(line), "    n%d [%s, label=\"%s\"];", i,
                 styles[nodes->node[i].kind], label);
        fn(arg, line);
        if (depth > 0) {
            snprintf(line, sizeof(line), "    n%d -- n%d;", parents[depth - 1], i);
            fn(arg, line);
        }
        parents[depth] = i;
    }
    fn(arg, "}");
}

trib_status_t trib_draw_dot(const struct trib_drawing *drawing, trib_line_fn fn,
                            void *arg)
{
    struct trib_nodes nodes;
    trib_status_t status = trib_nodes_make(drawing, &nodes);

    if (status == TRIB_OK)
        print_graph(&nodes, fn, arg);
    free(nodes.node);
    return status;
}
