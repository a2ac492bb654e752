# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += python/mypy.ini python/README.md \
	python/tributary/__init__.py \
	python/tributary/_buffers.py \
	python/tributary/_comm.py \
	python/tributary/_errors.py \
	python/tributary/_ffi.py \
	python/tributary/_library.py \
	python/tributary/_plan.py \
	python/tributary/py.typed \
	python/tributary/torch.py \
	scripts/generate-python
