#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# torch.sh - a training step in PyTorch with 25 million parameters on two hosts: compare Gloo and
# torch's hooks with the backend tributary, and with Hook and Fed of tributary.torch.
#
#   perf/bench/torch.sh [OPTION]… BUILD_DIR OUT_DIR
#
#   --quick           1 round of few parameters at 1gbit: a smoke test
#   --rounds N        rounds of all methods, interleaved [3]
#   --steps N         steps of each method in a round, after 3 uncounted ones [4]
#   --batch N         samples per rank and step, which determine the compute time [48]
#   --layers N        layers of 4.2 million parameters [6]
#   --rates LIST      rates of each host's link, each way [1gbit 10gbit]
#   --congestion NAME congestion control of TCP, such as bbr [cubic]
#   --only LIST       methods, separated by semicolons: "gloo;fed int8"
#   --limit S         time limit of a rate, or of a training, in seconds [240]
#   --accuracy        instead: test accuracy of the network of ./dev demo, dense and with the codec whose
#                     steps are short, for the same number of epochs. Dense uses momentum 0.9 and
#                     rate 0.05, the codec no momentum and rate 0.05 / (1 - 0.9)
#   --epochs N        epochs of it, with 2 ranks and 64 images per rank and step [10]
#   --seeds N         trainings of each kind [3]
#
# The hosts are network namespaces on this machine (tests/netns/net.sh), which needs root. Each has one
# rank, bound to one core, which also does the sums and the kernel's network work. The files in OUT_DIR
# are runs.csv (all rounds), torch.md (medians), errors.log. It takes at most 9 minutes.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

rounds=3 steps=4 batch=48 layers=6 rates="1gbit 10gbit" congestion=cubic only='' limit=240
accuracy=false epochs=10 seeds=3
# shellcheck disable=SC2034 # driver.sh reads it
missing=()

# shellcheck source=perf/bench/driver.sh
. "$here/bench/driver.sh"
# shellcheck source=tests/netns/net.sh
. "$here/../tests/netns/net.sh"

# shellcheck disable=SC2034 # take_arguments reads it
declare -A settings=([rounds]=rounds [steps]=steps [batch]=batch [layers]=layers [rates]=rates
    [congestion]=congestion [only]=only [limit]=limit [epochs]=epochs
    [seeds]=seeds)
on_accuracy() { accuracy=true; }
on_quick() { rounds=1 steps=2 batch=4 layers=1 rates=1gbit; }
take_arguments "$@"
! why=$(net_refused) || die "$why"
python=$(sed -n 's/^trib_python = //p' "$build/Makefile")
"$python" -c 'import torch' 2>/dev/null || die "$python has no torch"
[ -e "$build/.libs/_torch_backend.so" ] || die "this build has no backend of torch.distributed"
unset TRIB_CODEC TRIB_ROOT TRIB_RANK TRIB_SIZE TRIB_SERVICE
export PYTHONPATH=$here/../bindings/python TRIBUTARY_LIBRARY=$build/.libs/libtributary.so.0
export GLOO_SOCKET_IFNAME=eth0 PYTHONWARNINGS=ignore
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 # by default BLAS has a thread per core

ways=$("$python" "$here/peers/ddp_steps.py" --ways)
IFS=';' read -ra asked <<<"$only"
for way in "${asked[@]}"; do
    grep -qxF -- "$way" <<<"$ways" || die "there is no way '$way'; there are: ${ways//$'\n'/; }"
done

# shellcheck source=perf/bench/between_hosts.sh
. "$here/bench/between_hosts.sh"

# Rows "codec,seed,percent" of networks with the same initial values, interleaved.
train_all() {
    local seed codec rule
    for ((seed = 1; seed <= seeds; seed++)); do
        for codec in none topk:ratio=0.01 topk:ratio=0.005; do
            say "accuracy: seed $seed, $codec"
            rule=(--momentum 0.9 --rate 0.05)
            [ "$codec" = none ] || rule=(--momentum 0 --rate 0.5)
            timeout -k 5 "$limit" "$build/tools/trib-run" -n 2 -- "$python" \
                "$here/../bindings/python/examples/fashion.py" --in-grad --codec "$codec" --seed "$seed" "${rule[@]}" \
                --batch 64 --steps $((epochs * 60000 / 128)) 2>>"$errors" |
                sed -nE "s/^.*codec ([^ ]*): ([0-9.]*) %.*/\\1,$seed,\\2/p"
        done
    done
}

if "$accuracy"; then
    train_all >"$out/accuracy.csv"
    awk -v epochs="$epochs" -f "$here/bench/torch-accuracy.awk" "$out/accuracy.csv" |
        tee "$out/accuracy.md"
    exit 0
fi

# Rows "rate,way,round,ms,cpu_ms".
step_rows() { # RATE
    grep -E '^[a-z][^,]*,[0-9]+,[0-9.]+,[0-9.]+$' | sed "s/^/$1,/"
}
steps_of() { # RATE
    job "$python" "$here/peers/ddp_steps.py" "$(net_address 0)" "$rounds" "$steps" "$batch" "$only" "$layers" |
        step_rows "$1"
}

trap net_close EXIT
trap 'exit 130' TERM HUP
trap interrupt INT
echo "rate,way,round,ms,cpu_ms" >"$runs"
for rate in $rates; do
    say "$rate"
    open_hosts 2
    steps_of "$rate" >"$out/launch.csv" 2>>"$errors" &
    launch_pid=$!
    status=0
    wait "$launch_pid" || status=$?
    [ -z "$interrupted" ] || step_rows "$rate" <"$net_dir/rank0.out" >"$out/launch.csv" || :
    [ "$status" = 0 ] || [ -n "$interrupted" ] || die "$rate: $(tail -n 3 "$errors")"
    cat "$out/launch.csv" >>"$runs"
    net_close
    [ -z "$interrupted" ] || break
done

{
    machine_line
    echo "Both hosts are network namespaces on it, a rank and a core each, over TCP ($congestion). $layers layers of 2048 by"
    echo "2048, $batch samples a step; medians of $rounds rounds of $steps steps, ms a step, slower rank."
    [ -z "$interrupted" ] || echo "Interrupted: the tables contain only completed rounds."
    echo
    awk -f "$here/bench/torch.awk" "$runs"
} >"$out/torch.md"
show_tables "$out/torch.md"
echo "written to $out: torch.md, runs.csv, errors.log" >&2
write_page split_by=rate name=way own="^(backend|hook|fed)" key=way bytes=$((layers * 2048 * 2048 * 4)) \
    run='"command": "steps of training", "ranks": 2'
