# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
#: Compare with Open MPI, MPICH and Gloo on this host. ./dev bench NAME compares something else:
#:   auto       algorithm auto with each fixed one, codec auto with dense sums
#:   codec      codecs with memcpy, PyTorch and NumPy
#:   coded      codecs between hosts, with our dense sums and Gloo's
#:   core       what one core of tribd sums, with the add kernel
#:   cost       processor time of sums by codecs, with the lowest possible
#:   estimates  the timing model of pipelined training with measured steps
#:   hosts      dense all-reduces between several hosts
#:   mpi        MPI_Allreduce of an unmodified program, plain and through trib-mpi
#:   overlap    each codec with its slowest stage, and the time that computing hides
#:   put        writes, with UCX and perftest
#:   rxe        over soft-RoCE
#:   service    sums through tribd, and by leaders of hosts
#:   sim        predictions of trib-sim for 2 to 16 hosts with measurements
#:   tcp        over sockets of this host
#:   torch      a step of training in PyTorch: Gloo, torch's hooks and ours
#:   train      every strategy on every task, under an hour
#:   wan        over links with round trips of 2, 10 and 40 ms

need_for_bench() {
    case $1 in
    hosts | coded | service) need "${bench_packages[@]}" "${bench_hosts_packages[@]}" ;;
    overlap | estimates) need "${bench_hosts_packages[@]}" ;;
    auto | core) ;;
    put) need "${bench_put_packages[@]}" ;;
    codec) need "${bench_codec_packages[@]}" ;;
    sim) need "${bench_hosts_packages[@]}" "${bench_sim_packages[@]}" ;;
    torch) need "${test_packages[@]}" iproute2 ;;
    train) need "${demo_packages[@]}" "${bench_train_packages[@]}" ;;
    wan) need iproute2 ;;
    *) need "${bench_packages[@]}" ;;
    esac
    [ "$1" != rxe ] || need_rxe
    need "${build_packages[@]}"
}

bench_here() {
    local ended=''

    trap 'ended=yes' INT # the bench then prints the rows that it has; no second bench starts
    perf/bench/allreduce.sh "$@" build out/bench
    [ $# -gt 0 ] || [ -n "$ended" ] || perf/bench/allreduce.sh --rewrite --ranks 2 \
        --sizes 4096,32768,262144,1048576,2097152,16777216,67108864 build out/bench-rewrite
}

cmd_bench() {
    local name=here

    if [ "${1:-}" = tcp ] || [ -x "perf/bench/${1:-}.sh" ]; then
        name=$1
        shift
    fi
    need_for_bench "$name"
    build_in build
    case $name in
    here) bench_here "$@" ;;
    tcp) perf/bench/allreduce.sh --tcp "$@" build out/bench-tcp ;;
    train) perf/bench/train.sh build out/bench-train "$@" ;;
    *) "perf/bench/$name.sh" "$@" build "out/bench-$name" ;;
    esac
}
