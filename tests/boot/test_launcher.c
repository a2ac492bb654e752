/* SPDX-License-Identifier: BSD-3-Clause */
/* An explicit value overrides the value of the launcher. The environment stands in for
 * the launcher. */
#include "tests/harness/tribtest.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/config.h"
#include "base/error.h"
#include "boot/launcher.h"
#include "base/sockets.h"
#include "boot/rank_names.h"

static const char *const variables[] = {
    "PMIX_NAMESPACE",     "PMIX_RANK",     "PMI_FD",       "PMI_RANK",
    "PMI_SIZE",           "SLURM_PROCID",  "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS",
    "SLURM_JOB_NODELIST", "SLURM_STEP_ID", "SLURM_STEPID", "SLURM_STEP_NODELIST",
    "SLURM_JOB_ID",       "ENVIRONMENT",
};

static int clear_environment(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        unsetenv(variables[i]);
    return 0;
}

static void set_slurm(const char *rank, const char *size, const char *list)
{
    setenv("SLURM_PROCID", rank, 1);
    setenv("SLURM_NTASKS", size, 1);
    setenv("SLURM_JOB_NODELIST", list, 1);
    setenv("SLURM_JOB_ID", "77", 1);
}

struct given {
    struct trib_boot_opts opts;
    struct trib_config cfg;
    struct trib_error err;
    struct trib_launch launch;
};

static trib_status_t complete(struct given *g, int rank, int size, const char *root)
{
    memset(g, 0, sizeof(*g));
    g->cfg.boot_timeout_ms = 300;
    g->opts = (struct trib_boot_opts){
        .rank = rank, .size = size, .root = root, .cfg = &g->cfg, .err = &g->err};
    trib_status_t status = trib_launch_complete(&g->opts, &g->launch);
    trib_launch_release(&g->launch);
    return status;
}

/* Answers of launchers are cached per process, so each case runs in its own process. */
static void in_process(void (*fn)(void))
{
    int status;

    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        fn();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void need(bool good, const struct given *g, int line)
{
    if (good)
        return;
    fprintf(stderr, "line %d: rank %d, size %d, root %s: %s\n", line, g->opts.rank,
            g->opts.size, g->opts.root ? g->opts.root : "NULL", g->err.text);
    _exit(1);
}

#define NEED(condition) need(condition, &g, __LINE__)

static void alone(void)
{
    struct given g;

    NEED(complete(&g, -1, 0, "") == TRIB_OK);
    NEED(g.opts.rank == 0 && g.opts.size == 1);
    NEED(complete(&g, 3, 0, "") == TRIB_OK); /* trib_boot_open reports the error */
    NEED(g.opts.rank == 3 && g.opts.size == 0);
}

static void slurm(void)
{
    struct given g;

    set_slurm("2", "4", "n[3-5,7],m");
    NEED(complete(&g, -1, 0, NULL) == TRIB_OK);
    NEED(g.opts.rank == 2 && g.opts.size == 4 && !strcmp(g.opts.root, "n3:20077"));
}

static void slurm_step(void)
{
    struct given g;

    set_slurm("1", "8", "n[3-5,7],m");
    setenv("SLURM_STEP_NUM_TASKS", "2", 1);
    setenv("SLURM_STEP_NODELIST", "n7", 1);
    setenv("SLURM_STEP_ID", "1", 1);
    setenv("ENVIRONMENT", "BATCH", 1); /* srun forwards it */
    NEED(complete(&g, -1, 0, NULL) == TRIB_OK);
    NEED(g.opts.rank == 1 && g.opts.size == 2 && !strcmp(g.opts.root, "n7:20178"));
}

static void slurm_without_step(void)
{
    struct given g;

    set_slurm("0", "4", "n1");
    setenv("ENVIRONMENT", "BATCH", 1);
    NEED(complete(&g, -1, 0, "") == TRIB_OK);
    NEED(g.opts.rank == 0 && g.opts.size == 1);
    clear_environment(NULL);
    set_slurm("0", "1", "n1"); /* srun that started one shell */
    NEED(complete(&g, -1, 0, "") == TRIB_OK);
    NEED(g.opts.rank == 0 && g.opts.size == 1);
}

static void given_wins(void)
{
    struct given g;

    set_slurm("1", "4", "n1");
    NEED(complete(&g, 2, 3, "h:1") == TRIB_OK);
    NEED(g.opts.rank == 2 && g.opts.size == 3 && !strcmp(g.opts.root, "h:1"));
    NEED(complete(&g, -1, 0, "h:1") == TRIB_OK);
    NEED(g.opts.rank == 1 && g.opts.size == 4 && !strcmp(g.opts.root, "h:1"));
    NEED(complete(&g, 0, 1, "") == TRIB_OK);
    NEED(g.opts.rank == 0 && g.opts.size == 1);
    NEED(complete(&g, 2, 0, "") == TRIB_ERR_CONFIG);
    NEED(strstr(g.err.text, "TRIB_RANK is 2 where Slurm says 1") != NULL);
    NEED(complete(&g, -1, 3, "") == TRIB_ERR_CONFIG);
    NEED(strstr(g.err.text, "TRIB_SIZE is 3 where Slurm says 4") != NULL);
}

static void nonsense(void)
{
    struct given g;

    set_slurm("x", "4", "n1");
    NEED(complete(&g, -1, 0, "") == TRIB_ERR_CONFIG);
    NEED(strstr(g.err.text, "SLURM_PROCID=x in the environment is no number") != NULL);
    set_slurm("1", "99999999999999999999", "n1");
    NEED(complete(&g, -1, 0, "") == TRIB_ERR_CONFIG);
    set_slurm("1", "4", "n[");
    NEED(complete(&g, -1, 0, "") == TRIB_ERR_CONFIG);
    NEED(strstr(g.err.text, "SLURM_JOB_NODELIST=n[ in the environment ") != NULL);
    clear_environment(NULL);
    setenv("PMI_FD", "-1", 1);
    setenv("PMI_RANK", "0", 1);
    setenv("PMI_SIZE", "2", 1);
    NEED(complete(&g, -1, 0, "") == TRIB_ERR_CONFIG);
    NEED(strstr(g.err.text, "PMI_FD=-1 in the environment is no number") != NULL);
    setenv("PMI_FD", "987", 1);
    NEED(complete(&g, -1, 0, "") == TRIB_ERR_BOOT);
    setenv("PMIX_NAMESPACE", "nobody", 1); /* no server: PMIx fails, or the build lacks
                                            * it */
    setenv("PMIX_RANK", "1", 1);
    NEED(complete(&g, -1, 0, "") < 0);
    NEED(strstr(g.err.text, "PMIx") != NULL);
}

static void settings(void)
{
    struct given g;

    memset(&g, 0, sizeof(g));
    set_slurm("1", "4", "n1");
    g.cfg.origin[TRIB_CONFIG_ROW_size] = TRIB_ORIGIN_ENVIRONMENT;
    g.cfg.size = 3;
    trib_launch_note(&g.cfg);
    NEED(g.cfg.rank == 1 && g.cfg.origin[TRIB_CONFIG_ROW_rank] == TRIB_ORIGIN_LAUNCHER);
    NEED(g.cfg.size == 3);
}

/* No other program gets the reserved port, and rank 0 can listen at it. */
static void offer(void)
{
    struct given g;
    struct trib_tcp_root root;
    int fds[TRIB_TCP_LISTENERS_MAX];
    int n = 0;
    struct sockaddr_in at = {.sin_family = AF_INET};
    int other = socket(AF_INET, SOCK_STREAM, 0);

    memset(&g, 0, sizeof(g));
    NEED(trib_launch_offer(&g.launch, &g.err) == TRIB_OK);
    NEED(strchr(g.launch.root, '/'));
    trib_launch_strip(&g.launch);
    NEED(trib_tcp_root_parse(g.launch.root, &root));
    at.sin_port = htons((uint16_t)atoi(root.port));
    NEED(bind(other, (struct sockaddr *)&at, sizeof(at)) != 0);
    NEED(trib_sockets_listen(&root, NULL, &g.err, fds, &n) == TRIB_OK && n == 1);
    g.launch.rank = 1;
    NEED(trib_launch_accept(&g.launch, "elsewhere:12", "it", &g.err) == TRIB_OK);
    NEED(!strcmp(g.launch.root, "elsewhere:12"));
    NEED(trib_launch_accept(&g.launch, "no\troot", "it", &g.err) == TRIB_ERR_BOOT);
}

/* Rank 1 parses the text of rank 0. */
static void told(const char *text, const char *root)
{
    struct given g;

    memset(&g, 0, sizeof(g));
    g.launch.rank = 1;
    NEED(trib_launch_accept(&g.launch, text, "it", &g.err) == TRIB_OK);
    if (strcmp(g.launch.root, root) != 0)
        fprintf(stderr, "%s gives %s, not %s\n", text, g.launch.root, root);
    NEED(strcmp(g.launch.root, root) == 0);
}

/* A host is identified by its kernel, not by its name. Addresses of another host are
 * tried. */
static void accepted(void)
{
    struct given g;
    char text[128], root[80];
    struct trib_rank_name self;

    memset(&g, 0, sizeof(g));
    NEED(trib_launch_offer(&g.launch, &g.err) == TRIB_OK);
    snprintf(root, sizeof(root), "127.0.0.1%s", strrchr(g.launch.root, ':'));
    root[strcspn(root, "/")] = '\0';
    told(g.launch.root, root);
    trib_rank_name_self(0, &self);
    snprintf(text, sizeof(text), "%s:7/12-34", self.host);
    snprintf(root, sizeof(root), "%s:7", self.host);
    told(text, root);
    told("a,203.0.113.9:7/12-34", "a,203.0.113.9:7");
    told("a,[2001:db8::9]:7/12-34", "a,[2001:db8::9]:7");
    NEED(trib_launch_accept(&g.launch, "a:7/x", "it", &g.err) == TRIB_ERR_BOOT);
}

#define CASE(name) \
    TEST(test_##name, clear_environment) \
    { \
        in_process(name); \
    }
CASE(alone)
CASE(slurm)
CASE(slurm_step)
CASE(slurm_without_step)
CASE(given_wins)
CASE(nonsense)
CASE(settings)
CASE(offer)
CASE(accepted)
