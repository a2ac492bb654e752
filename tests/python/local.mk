# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += tests/python/arrays.py tests/python/as_gloo.py tests/python/buffers.py tests/python/children.py tests/python/ends.py tests/python/layouts.py \
	tests/python/loaders.py tests/python/tensors.py \
	tests/python/collectives.py tests/python/failing_start.c tests/python/ways_of_ddp.py \
	tests/python/of_mpi4py.py tests/python/process_group.py tests/python/fed.py tests/python/replicas.py \
	tests/python/training.py
dist_check_SCRIPTS += tests/python/test_python.sh
TESTS += tests/python/test_python.sh
dist_check_SCRIPTS += tests/python/test_python_examples.sh
TESTS += tests/python/test_python_examples.sh
