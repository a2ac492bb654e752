# SPDX-License-Identifier: BSD-3-Clause
dist_man_MANS += man/tributary.7 man/trib-run.1 man/trib-perf.1 man/trib-info.1 man/trib-mpi.1 man/trib-train.1 \
	man/tribd.8 man/tribd.conf.5 man/tributary.conf.5

# Section 3 is generated from the headers if configure found python3, so every function has an
# up-to-date page. The list of pages is not known to automake, so they are not in _MANS.
EXTRA_DIST += scripts/generate-man3
if TRIB_PYTHON
all-local: man/man3.stamp
man/man3.stamp: scripts/generate-man3 configure.ac $(tributaryinclude_HEADERS)
	$(AM_V_GEN)$(MKDIR_P) man && to=$$PWD/man/man3 && cd $(srcdir) && $(PYTHON3) scripts/generate-man3 "$$to"
	$(AM_V_at)touch $@
install-data-local: install-man3
install-man3: man/man3.stamp
	$(MKDIR_P) '$(DESTDIR)$(mandir)/man3'
	$(INSTALL_DATA) man/man3/*.3 '$(DESTDIR)$(mandir)/man3'
uninstall-local: uninstall-man3
uninstall-man3:
	cd man/man3 && for page in *.3; do rm -f '$(DESTDIR)$(mandir)/man3'/"$$page"; done
clean-local: clean-man3
clean-man3:
	rm -rf man/man3 man/man3.stamp
endif
