/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counterpart of perf/elastic for PCCL: how long a job cannot sum after it lost a
 * peer, and how long it takes to add one.
 *
 *     g++ -O2 -std=c++20 -IPCCL/include -IPCCL/ccoip/public_include \
 *         perf/peers/pccl_elastic.cc -o pccl_elastic -LPCCL/b -lpccl
 *     ./pccl_elastic MASTER kill|stop|join [TRIALS [RANKS]]
 *
 * MASTER is PCCL's ccoip_master, which each trial restarts on its port 48148. Peers sum
 * 25000 floats in a loop. One of them, a different one in each trial, gets the signal;
 * the others repeat the sum in their communicator until it is right. With join, a new
 * peer connects, and the others check for it at each step. Times are as in
 * perf/elastic: from the signal, or the new peer's first call, to the first correct sum
 * of the slowest peer.
 *
 * Prints csv: what,seconds,min_seconds,max_seconds,trials,failed. A trial has failed if
 * a peer other than the victim ends without its sum, or has not ended after 20 s.
 */
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <pccl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace
{

constexpr int ranks_most = 64, count = 25000, port = 48148, hangs_after_s = 20;

float in[count], out[count];

/* Shared by all processes of a trial. Times are in seconds. */
struct Board {
    volatile double hit;
    volatile int sums[ranks_most + 1];
    volatile double summed[ranks_most + 1];
};

double seconds()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

void check(const char *what, int result)
{
    if (!result)
        return;
    fprintf(stderr, "pccl_elastic: %s: %d\n", what, result);
    _exit(1);
}

int world(pcclComm_t *c)
{
    int n = 0;
    pcclGetAttribute(c, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &n);
    return n;
}

pcclResult_t sum(pcclComm_t *c)
{
    pcclReduceDescriptor_t d{};
    d.count = count;
    d.op = pcclSum;
    d.src_descriptor.datatype = d.quantization_options.quantized_datatype = pcclFloat;
    pcclReduceInfo_t info{};
    pcclResult_t r = pcclAllReduce(in, out, &d, c, &info);
    for (int i = 0; r == pcclSuccess && i < count; i++)
        check("a wrong sum", out[i] != float(int(info.local_world_size) * (i % 100)));
    return r;
}

/* Connect, and wait until at least `peers` peers are connected. */
pcclComm_t *connect(int peers)
{
    pcclComm_t *c{};
    pcclCommCreateParams_t p{};
    p.master_address.inet = {.protocol = inetIPv4, .ipv4 = {127, 0, 0, 1}};
    p.master_address.port = port;
    p.p2p_connection_pool_size = 1;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    check("pcclInit", pcclInit());
    check("pcclCreateCommunicator", pcclCreateCommunicator(&p, &c));
    check("pcclConnect", pcclConnect(c));
    while (world(c) < peers)
        check("pcclUpdateTopology", pcclUpdateTopology(c));
    return c;
}

/* Wait before exiting, since other peers may still need this process. */
[[noreturn]] void end(Board *b, int rank)
{
    b->summed[rank] = seconds();
    sleep(1);
    _exit(0);
}

void act(int rank, int ranks, Board *b)
{
    pcclComm_t *c = connect(ranks);
    pcclResult_t r;
    while (sum(c) == pcclSuccess)
        b->sums[rank] = 1;
    while ((r = sum(c)) != pcclSuccess)
        check("the next sum", r != pcclRankConnectionLost ? r : 0);
    check("the number of peers", world(c) != ranks - 1);
    end(b, rank);
}

void await_sums(const Board *b, int ranks)
{
    for (int r = 0; r < ranks; r++)
        while (!b->sums[r])
            usleep(1000);
    usleep(30000);
}

/* The last rank joins the others. */
void join(int rank, int ranks, Board *b)
{
    if (rank == ranks) {
        await_sums(b, ranks);
        b->hit = seconds();
    }
    pcclComm_t *c = connect(rank == ranks ? 0 : ranks);
    for (;;) {
        bool pending = false;
        check("a sum", sum(c));
        b->sums[rank] = 1;
        if (world(c) == ranks + 1)
            end(b, rank);
        check("pcclArePeersPending", pcclArePeersPending(c, &pending));
        if (pending)
            check("pcclUpdateTopology", pcclUpdateTopology(c));
    }
}

pid_t start_master(const char *path)
{
    pid_t pid = fork();
    if (pid == 0) {
        const int none = open("/dev/null", O_WRONLY);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(none, 1);
        dup2(none, 2);
        execl(path, path, static_cast<char *>(nullptr));
        _exit(127);
    }
    usleep(500000);
    return pid;
}

void finish(pid_t pid)
{
    int status;
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
}

/* Return false if the process has failed or hangs. */
bool ends_well(pid_t pid, double until)
{
    int status;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (seconds() > until) {
            finish(pid);
            return false;
        }
        usleep(1000);
    }
    return status == 0;
}

/* signal: 0 for a join. Return a negative value if the trial has failed. */
double try_once(const char *master, int signal, int ranks, int victim)
{
    void *shared = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto *b = static_cast<Board *>(shared);
    const int n = signal ? ranks : ranks + 1;
    std::vector<pid_t> pids(n);
    const pid_t at = start_master(master);
    bool well = true;
    double last = 0;
    for (int r = 0; r < n; r++)
        if ((pids[r] = fork()) == 0)
            signal ? act(r, ranks, b) : join(r, ranks, b);
    if (signal) {
        await_sums(b, ranks);
        b->hit = seconds();
        kill(pids[victim], signal);
    }
    const double until = seconds() + hangs_after_s;
    for (int r = 0; r < n; r++)
        if (!signal || r != victim)
            well &= ends_well(pids[r], until);
    if (signal)
        finish(pids[victim]);
    finish(at);
    for (int r = 0; r < n; r++)
        if (!signal || r != victim)
            last = std::max(last, double(b->summed[r]));
    const double took = well ? last - b->hit : -1;
    munmap(shared, sizeof(Board));
    return took;
}

} // namespace

int main(int argc, char **argv)
{
    const int trials = argc > 3 ? atoi(argv[3]) : 5,
              ranks = argc > 4 ? atoi(argv[4]) : 4;
    const char *what = argc > 2 ? argv[2] : "";
    const int signal = !strcmp(what, "kill")   ? SIGKILL
                       : !strcmp(what, "stop") ? SIGSTOP
                                               : 0;
    std::vector<double> times;
    check("usage: pccl_elastic MASTER kill|stop|join [TRIALS [RANKS]]",
          (!signal && strcmp(what, "join")) || trials < 1 || ranks < 2 ||
              ranks > ranks_most);
    setenv("PCCL_LOG_LEVEL", "FATAL", 1);
    for (int i = 0; i < count; i++)
        in[i] = float(i % 100);
    for (int i = 0; i < trials; i++)
        times.push_back(try_once(argv[1], signal, ranks, i % ranks));
    const auto failed =
        std::count_if(times.begin(), times.end(), [](double t) { return t < 0; });
    times.erase(
        std::remove_if(times.begin(), times.end(), [](double t) { return t < 0; }),
        times.end());
    std::sort(times.begin(), times.end());
    if (times.empty())
        times.push_back(-1);
    printf("%s,%.4f,%.4f,%.4f,%d,%d\n", what, times[times.size() / 2], times.front(),
           times.back(), trials, int(failed));
}
