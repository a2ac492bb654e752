#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# torch.sh - a training step in PyTorch with 25 million parameters on two hosts: compare Gloo and
# torch's hooks with the backend tributary, and with Hook and Fed of tributary.torch.
#
# The hosts are network namespaces on this machine (tests/netns/net.sh), which needs root. Each has one
# rank, bound to one core, which also does the sums and the kernel's network work. It takes at most 9 minutes.
#
# --accuracy measures the test accuracy of the network of ./dev demo instead, dense and with the codec whose
# steps are short, for the same number of epochs. Dense uses momentum 0.9 and
# rate 0.05, the codec no momentum and rate 0.05 / (1 - 0.9).
# shellcheck disable=SC2034,SC2154 # the driver sets and reads them
# shellcheck source=/dev/null
. "$(dirname "$0")/driver.sh"
# shellcheck source=/dev/null
. "$here/bench/between_hosts.sh"
quick "1 round of few parameters at 1gbit: a smoke test" rounds=1 steps=2 batch=4 layers=1 rates=1gbit
option rounds 3 N "rounds of all methods, interleaved"
option steps 4 N "steps of each method in a round, after 3 uncounted ones"
option batch 48 N "samples per rank and step, which determine the compute time"
option layers 6 N "layers of 4.2 million parameters"
options rates congestion
option only '' LIST 'methods, separated by semicolons: "gloo;fed int8"'
option limit 240 S "time limit of a rate, or of a training, in seconds"
option accuracy '' '' "the accuracy instead"
option epochs 10 N "epochs of it, with 2 ranks and 64 images per rank and step"
option seeds 3 N "trainings of each kind"
tables_file=torch.md files='runs.csv (all rounds), torch.md (medians), errors.log'
take_arguments "$@"
need_hosts
python=$(sed -n 's/^trib_python = //p' "$build/Makefile")
"$python" -c 'import torch' 2>/dev/null || die "$python has no torch"
[ -e "$build/.libs/_torch_backend.so" ] || die "this build has no backend of torch.distributed"
export PYTHONPATH=$here/../bindings/python TRIBUTARY_LIBRARY=$build/.libs/libtributary.so.0
export GLOO_SOCKET_IFNAME=eth0 PYTHONWARNINGS=ignore
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 # by default BLAS has a thread per core

ways=$("$python" "$here/peers/ddp_steps.py" --ways)
IFS=';' read -ra asked <<<"$only"
for way in "${asked[@]}"; do
    grep -qxF -- "$way" <<<"$ways" || die "there is no way '$way'; there are: ${ways//$'\n'/; }"
done

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
if [ -n "$accuracy" ]; then
    train_all >"$out/accuracy.csv"
    awk -v epochs="$epochs" -f "$here/bench/tables.awk" -f "$here/bench/torch-accuracy.awk" "$out/accuracy.csv" | tee "$out/accuracy.md"
    exit 0
fi

step_rows() { # RATE
    grep -E '^[a-z][^,]*,[0-9]+,[0-9.]+,[0-9.]+$' | sed "s/^/$1,/"
}
steps_of() { # RATE
    job "$python" "$here/peers/ddp_steps.py" "$(net_address 0)" "$rounds" "$steps" "$batch" "$only" "$layers" |
        step_rows "$1"
}

trap 'exit 130' TERM HUP
trap interrupt INT
echo "rate,way,round,ms,cpu_ms" >"$runs"
for rate in $rates; do
    say "$rate"
    open_hosts 2
    run_launch steps_of "$rate"
    [ -z "$interrupted" ] || step_rows "$rate" <"$net_dir/rank0.out" >"$out/launch.csv" || :
    [ "$status" = 0 ] || [ -n "$interrupted" ] || die "$rate: $(tail -n 3 "$errors")"
    cat "$out/launch.csv" >>"$runs"
    net_close
    [ -z "$interrupted" ] || break
done
about="Both hosts are network namespaces on it, a rank and a core each, over TCP ($congestion). $layers layers of 2048 by
2048, $batch samples a step; medians of $rounds rounds of $steps steps, ms a step, slower rank."
finish split_by=rate name=way own="^(backend|hook|fed)" key=way bytes=$((layers * 2048 * 2048 * 4)) \
    run='"command": "steps of training", "ranks": 2'
