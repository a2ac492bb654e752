#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Short runs of bindings/python/examples: each one runs and reaches its accuracy.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
source=$(cd "${abs_top_srcdir:-.}" && pwd)
build=$(cd "$build" && pwd)
python=/usr/bin/python3
export PYTHONPATH=$source/bindings/python PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore
export TRIBUTARY_LIBRARY=$build/.libs/libtributary.so.0
unset TRIB_ROOT TRIB_RANK TRIB_SIZE TRIB_CODEC

example() { # NAME, RANKS, WORDS, program and arguments
    expect "$1" 0 "$3" "$build/tools/trib-run" -n "$2" --timeout 50 -- "$python" "$source/bindings/python/examples/$4" "${@:5}"
}

if [[ $(sanitizer) = [at]san ]]; then
    skip_all "Python does not load a library that is built for a sanitizer"
fi
"$python" -c 'import numpy' 2>/dev/null || skip_all "$python has no NumPy"
# The weight is the same for any number of ranks, because the sums cover all samples.
example "logistic regression, 1 rank" 1 "79.72 % right, first weight 0.337897" logistic.py
example "logistic regression, 3 ranks" 3 "79.72 % right, first weight 0.337897" logistic.py
if ! "$python" -c 'import importlib.util as u; u.find_spec("torch") or exit(1)'; then
    skip "networks" "$python has no torch"
    finish
fi
example "outer steps" 2 "replicas alike" outer_steps.py --rounds 25 --codec topk:ratio=0.02
explained=$(sed -n 's/.* \([0-9]*\)\.[0-9] % of the variance.*/\1/p' "$said")
[ "${explained:-0}" -ge 80 ]
result $? "outer steps learn: $explained % of the variance"
if [ ! -e /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz ]; then
    skip "Fashion-MNIST" "dataset-fashion-mnist is not installed"
    finish
fi
example "a network by Fed" 2 "of the test images" fashion.py --steps 30 --codec int8
right=$(sed -n 's/.*: \([0-9]*\)\.[0-9]* % of the test.*/\1/p' "$said")
[ "${right:-0}" -ge 60 ]
result $? "it learns: $right % in 30 steps"
if [ ! -e "$build/.libs/_torch_backend.so" ]; then
    skip "a network by DDP" "this build has no backend of torch.distributed"
else
    example "a network by DDP, the backend and a hook" 1 "of the test images" fashion.py --steps 2 --hook "$dir/meet"
fi
finish
