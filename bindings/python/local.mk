# SPDX-License-Identifier: BSD-3-Clause
#
# The package, installed where Python finds it. If torch's headers are installed, also the
# torch.distributed backend, which the package expects next to the library.
python_package = \
	bindings/python/tributary/__init__.py \
	bindings/python/tributary/__main__.py \
	bindings/python/tributary/_backend.py \
	bindings/python/tributary/_buffers.py \
	bindings/python/tributary/_calls.py \
	bindings/python/tributary/_comm.py \
	bindings/python/tributary/_errors.py \
	bindings/python/tributary/_fed.py \
	bindings/python/tributary/_ffi.py \
	bindings/python/tributary/_gradient.py \
	bindings/python/tributary/_handles.py \
	bindings/python/tributary/_library.py \
	bindings/python/tributary/_plan.py \
	bindings/python/tributary/_policy.py \
	bindings/python/tributary/_replicas.py \
	bindings/python/tributary/py.typed \
	bindings/python/tributary/torch.py

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
	bindings/python/README.md \
	bindings/python/examples/fashion.py \
	bindings/python/examples/logistic.py \
	bindings/python/examples/outer_steps.py \
	bindings/python/mypy.ini \
	bindings/python/pyproject.toml \
	scripts/generate-python \
	scripts/python-folder

# The compiler takes ten seconds to read the headers of PyTorch: it compiles all files as one.
TORCH_CODE = \
	bindings/python/backend/torch_gather.cc bindings/python/backend/torch_group.cc \
	bindings/python/backend/torch_memory.cc bindings/python/backend/torch_module.cc \
	bindings/python/backend/torch_plans.cc bindings/python/backend/torch_sparse.cc \
	bindings/python/backend/torch_work.cc
EXTRA_DIST += $(TORCH_CODE)

if TRIB_TORCH
pkglib_LTLIBRARIES += _torch_backend.la
bindings/python/backend/torch_all.cc: bindings/python/local.mk
	$(AM_V_GEN)mkdir -p $(@D) && for file in $(TORCH_CODE); do echo "#include \"$$file\""; done >$@
_torch_backend_la_SOURCES = \
	bindings/python/backend/torch_group.hpp bindings/python/backend/torch_memory.hpp \
	bindings/python/backend/torch_plans.hpp bindings/python/backend/torch_work.hpp
nodist__torch_backend_la_SOURCES = bindings/python/backend/torch_all.cc
CLEANFILES += bindings/python/backend/torch_all.cc
_torch_backend_la_CPPFLAGS = $(AM_CPPFLAGS) $(TORCH_SYSTEM)
_torch_backend_la_CXXFLAGS = -std=gnu++17 -Wall -Wextra -fvisibility=hidden
_torch_backend_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared
_torch_backend_la_LIBADD = libtributary.la -ltorch_cpu -lc10
endif
