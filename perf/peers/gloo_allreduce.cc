/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time Gloo's allreduce of float32 sums over its TCP transport; see timing.h.
 *
 *     g++ -O3 -I. perf/peers/gloo_allreduce.cc -o gloo_allreduce -lgloo -lpthread
 *     ./gloo_allreduce -l gloo -x RANK:RANKS:DIRECTORY:INTERFACE
 *
 * All ranks must name the same empty directory, which they use for the rendezvous.
 */
#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <sstream>
#include <string>

#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "perf/peers/timing.h"

namespace
{

using Context = std::shared_ptr<gloo::Context>;

template <typename T> void Sum(void *out, const void *a, const void *b, size_t n)
{
    const T *x = static_cast<const T *>(a), *y = static_cast<const T *>(b);
    T *sum = static_cast<T *>(out);
    for (size_t i = 0; i < n; i++)
        sum[i] = x[i] + y[i];
}

template <typename T> void Most(void *out, const void *a, const void *b, size_t n)
{
    const T *x = static_cast<const T *>(a), *y = static_cast<const T *>(b);
    T *most = static_cast<T *>(out);
    for (size_t i = 0; i < n; i++)
        most[i] = std::max(x[i], y[i]);
}

void Allreduce(void *state, const float *send, float *recv, size_t count)
{
    gloo::AllreduceOptions options(*static_cast<Context *>(state));
    options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    if (send != nullptr)
        options.setInput(const_cast<float *>(send), count);
    options.setOutput(recv, count);
    options.setReduceFunction(Sum<float>);
    options.setTag(1);
    gloo::allreduce(options);
}

void Barrier(void *state)
{
    gloo::BarrierOptions options(*static_cast<Context *>(state));
    options.setTag(2);
    gloo::barrier(options);
}

double MostOf(void *state, double value)
{
    gloo::AllreduceOptions options(*static_cast<Context *>(state));
    options.setOutput(&value, 1);
    options.setReduceFunction(Most<double>);
    options.setTag(3);
    gloo::allreduce(options);
    return value;
}

int Run(const struct peer_args &args)
{
    int rank = -1, ranks = 0;
    char colon = 0;
    std::string directory, interface;
    std::istringstream extra(args.extra);
    extra >> rank >> colon >> ranks >> colon;
    std::getline(extra, directory, ':');
    std::getline(extra, interface);
    if (rank < 0 || rank >= ranks || directory.empty() || interface.empty()) {
        fprintf(stderr, "-x RANK:RANKS:DIRECTORY:INTERFACE is needed\n");
        return 2;
    }
    gloo::transport::tcp::attr attr;
    attr.iface = interface;
    auto device = gloo::transport::tcp::CreateDevice(attr);
    gloo::rendezvous::FileStore store(directory);
    auto joined = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
    joined->setTimeout(std::chrono::seconds(60));
    joined->connectFullMesh(store, device);

    Context context = joined;
    struct peer peer = {rank, ranks, &context, Allreduce, Barrier, MostOf};
    return peer_sweep(&peer, &args);
}

} // namespace

int main(int argc, char **argv)
{
    struct peer_args args;
    int code = peer_args_parse(argc, argv, &args);
    if (code != 0)
        return code;
    try {
        return Run(args);
    } catch (const std::exception &e) {
        fprintf(stderr, "gloo: %s\n", e.what());
        return 1;
    }
}
