# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += tests/bindings/python/arrays.py tests/bindings/python/as_gloo.py tests/bindings/python/buffers.py \
	tests/bindings/python/children.py tests/bindings/python/ends.py tests/bindings/python/layouts.py \
	tests/bindings/python/loaders.py tests/bindings/python/tensors.py tests/bindings/python/collectives.py \
	tests/bindings/python/failing_start.c tests/bindings/python/ways_of_ddp.py tests/bindings/python/of_mpi4py.py \
	tests/bindings/python/process_group.py tests/bindings/python/fed.py tests/bindings/python/replicas.py \
	tests/bindings/python/training.py
check_scripts += tests/bindings/python/test_python.sh tests/bindings/python/test_python_examples.sh
