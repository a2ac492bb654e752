/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts of launchers. If the first byte is not 0, it is the room for an answer; the
 * rest is used as a line of PMI and as Slurm's node list. After a 0 comes a byte that
 * selects a valid text, and edits (edits.h) of a few of its characters: a root, a node
 * list, a conversation over PMI.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "boot/launcher.h"
#include "boot/pmi.h"
#include "boot/slurm.h"
#include "base/sockets.h"
#include "tests/fuzz/edits.h"

unsigned fuzz_reached; /* lines that have a value, roots, and lists of hosts */

enum { EDITS_MOST = 12, TEXT_MOST = 512 };

static void run_text(const char *text, size_t room)
{
    char *answer = malloc(room);

    if (answer && trib_pmi_word(text, "value", answer, room)) {
        need(memchr(answer, 0, room) && !strchr(answer, ' '));
        fuzz_reached++;
    }
    if (answer && trib_slurm_first_host(text, answer, room)) {
        need(memchr(answer, 0, room) && answer[0] && !strpbrk(answer, "[],:/ "));
        fuzz_reached++;
    }
    free(answer);
}

static void run_bytes(const uint8_t *data, size_t size)
{
    char *text = malloc(size); /* a separate copy, so that ASan detects reads past the
                                * end */

    if (!text)
        return;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    run_text(text, data[0]);
    free(text);
}

/* Change or remove some characters. Return an exact copy that the caller frees. */
static char *edit_text(const char *valid, struct edits *all)
{
    char text[TEXT_MOST];
    size_t n = (size_t)snprintf(text, sizeof(text), "%s", valid);
    struct edit e;

    for (int i = 0; i < EDITS_MOST && edits_next(all, &e); i++) {
        if (e.place % 8 == 7)
            n = e.offset % (n + 1);
        else if (e.place % 8 == 6 && n + 8 < sizeof(text)) { /* repeat a part of it */
            const size_t at = e.offset % (n + 1), from = e.value % (n + 1);
            const size_t len = n - from < 8 ? n - from : 8;
            char part[8];
            memcpy(part, text + from, len);
            memmove(text + at + len, text + at, n - at);
            memcpy(text + at, part, len);
            n += len;
        } else {
            (void)edit_apply(all, &e, text, n);
        }
        text[n] = '\0';
    }
    return strdup(text); /* up to a zero that an edit inserted */
}

/* Pass the text of the root from rank 0 to another rank. */
static void run_root(struct edits *all)
{
    struct trib_launch launch = {.rank = 1, .size = 2, .hold = -1};
    struct trib_error err = {0};
    struct trib_tcp_root root;
    char *text = edit_text("node7,10.0.0.1,[fd77::1],[fe80::1]:4711/1f2e3d-4c", all);

    if (!text)
        return;
    if (trib_launch_accept(&launch, text, "PMI", &err) == TRIB_OK) {
        need(trib_tcp_root_parse(launch.root, &root));
        need(root.host[0] && root.port[0] && !strchr(launch.root, '/'));
        fuzz_reached++;
    } else {
        need(err.text[0]);
    }
    free(text);
}

static void run_nodes(struct edits *all)
{
    char *text = edit_text("tux[05-08,11]-ib[1-2],lynx3,ox[1,4]", all);

    if (text)
        run_text(text, 32);
    free(text);
}

/* Answers of a launcher, line by line: each is a message, and some are edited. */
static void run_pmi(struct edits *all, int rank)
{
    static const char *const answers[] = {
        "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
        "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n",
        "cmd=my_kvsname kvsname=kvs_4711_0\n",
        "cmd=put_result rc=0 msg=success\n",
        "cmd=barrier_out rc=0\n",
        "cmd=get_result rc=0 value=node7,10.0.0.1:4711/1f-2e\n",
    };
    struct trib_error err = {0};
    struct trib_pmi_opts opts = {.rank = rank, .timeout_ms = 20, .err = &err};
    char text[TRIB_PMI_VALUE_BYTES] = "node7:4711";
    const uint64_t which = edits_number(all, 1);
    int fds[2];

    need(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) ==
         0);
    for (int i = 0; i < 6; i++) {
        struct edits none = {.at = NULL};
        char *line = edit_text(answers[i], which >> i & 1 ? all : &none);
        if ((rank == 0 && i == 5) || (rank != 0 && i == 3) || !line) {
            free(line);
            continue;
        }
        need(send(fds[1], line, strlen(line), MSG_NOSIGNAL) >= 0);
        free(line);
    }
    (void)shutdown(fds[1], SHUT_WR);
    opts.fd = fds[0];
    if (trib_pmi_pass(&opts, text, sizeof(text)) == TRIB_OK) {
        need(memchr(text, 0, sizeof(text)) && !strpbrk(text, " \n"));
        fuzz_reached++;
    } else {
        need(err.text[0] && !strchr(err.text, '\n'));
    }
    close(fds[0]);
    close(fds[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t special[] = {UINT64_C(0x5d5b2c3a2f2d5b5d), 0,
                                       UINT64_C(0x3939393939393939)}; /* "][-/:,[]",
                                                                       * "99999999" */
    struct edits all = {.special = special, .n_special = 3};

    if (size == 0)
        return 0;
    if (data[0]) {
        run_bytes(data, size);
        return 0;
    }
    if (size < 2)
        return 0;
    all.at = data + 2;
    all.left = size - 2;
    switch (data[1] % 4) {
    case 0:
        run_root(&all);
        break;
    case 1:
        run_nodes(&all);
        break;
    default:
        run_pmi(&all, data[1] % 4 - 2);
    }
    return 0;
}
