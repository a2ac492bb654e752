# SPDX-License-Identifier: BSD-3-Clause
#
# The package, installed where Python finds it. If torch's headers are installed, also the
# torch.distributed backend, which the package expects next to the library.
python_package = \
	python/tributary/__init__.py \
	python/tributary/__main__.py \
	python/tributary/_backend.py \
	python/tributary/_buffers.py \
	python/tributary/_calls.py \
	python/tributary/_comm.py \
	python/tributary/_errors.py \
	python/tributary/_fed.py \
	python/tributary/_ffi.py \
	python/tributary/_gradient.py \
	python/tributary/_handles.py \
	python/tributary/_library.py \
	python/tributary/_plan.py \
	python/tributary/_policy.py \
	python/tributary/_replicas.py \
	python/tributary/py.typed \
	python/tributary/torch.py

packagedir = $(pythondir)/tributary
if TRIB_PYTHON_PACKAGE
dist_package_DATA = $(python_package)

install-data-hook:
	@$(trib_python) -c 'import sys; sys.exit("$(pythondir)" not in sys.path)' || \
		echo "python3 finds the package by: export PYTHONPATH=$(pythondir)"
uninstall-hook:
	-rm -rf "$(DESTDIR)$(packagedir)/__pycache__"
	-rmdir "$(DESTDIR)$(packagedir)" 2>/dev/null
endif

EXTRA_DIST += $(python_package) \
	python/README.md \
	python/examples/fashion.py \
	python/examples/logistic.py \
	python/examples/outer_steps.py \
	python/mypy.ini \
	python/pyproject.toml \
	scripts/generate-python \
	scripts/python-folder

if TRIB_TORCH
pkglib_LTLIBRARIES += _torch_backend.la
_torch_backend_la_SOURCES = \
	python/backend/torch_gather.cc \
	python/backend/torch_group.cc python/backend/torch_group.hpp \
	python/backend/torch_memory.cc python/backend/torch_memory.hpp \
	python/backend/torch_module.cc \
	python/backend/torch_plans.cc python/backend/torch_plans.hpp \
	python/backend/torch_sparse.cc \
	python/backend/torch_work.cc python/backend/torch_work.hpp
_torch_backend_la_CPPFLAGS = $(AM_CPPFLAGS) $(TORCH_SYSTEM)
_torch_backend_la_CXXFLAGS = -std=gnu++17 -Wall -Wextra -fvisibility=hidden
_torch_backend_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared
_torch_backend_la_LIBADD = libtributary.la -ltorch_cpu -lc10
endif
