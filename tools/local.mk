# SPDX-License-Identifier: BSD-3-Clause
# Shared by all programs; not installed.
noinst_LTLIBRARIES += libtools.la
libtools_la_SOURCES = \
	tools/bind.c tools/bind.h \
	tools/completion.c \
	tools/launch.c tools/launch.h \
	tools/option_help.c \
	tools/option_names.c \
	tools/option_rows.c \
	tools/option_setters.c \
	tools/options.c tools/options.h \
	tools/rank_table.c tools/rank_table.h \
	tools/ticker.c tools/ticker.h \
	tools/tool.c tools/tool.h \
	tools/tool_table.c tools/tool_table.h \
	tools/trace_merge.c tools/trace_merge.h

bin_PROGRAMS += tools/trib-run
tools_trib_run_SOURCES = \
	tools/run_parts.h \
	tools/run_options.c \
	tools/run_output.c \
	tools/run_ranks.c \
	tools/run_state.c \
	tools/trib-run.c
tools_trib_run_LDADD = libtools.la libtributary.la

bin_PROGRAMS += tools/trib-info
tools_trib_info_SOURCES = \
	tools/info_doctor.c \
	tools/info_commands.h \
	tools/info_codecs.c \
	tools/info_json.c \
	tools/info_options.c \
	tools/info_reach.c \
	tools/info_schedule.c \
	tools/info_stacks.c \
	tools/info_top.c \
	tools/info_topo.c \
	tools/info_tribd.c \
	tools/info_trace.c \
	tools/trib-info.c
tools_trib_info_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tools_trib_info_LDADD = libtools.la libtributary.la $(JANSSON_LIBS)
EXTRA_DIST += tools/README.md

# Completion for bash, zsh and fish: each program prints its own from its table of options. Skipped
# when cross-compiling; trib-run --completion SHELL does the same later.
if TRIB_NATIVE
COMPLETED = tools/trib-run tools/trib-info perf/trib-perf agg/daemon/tribd agg/daemon/tribctl
if TRIB_EXAMPLES
COMPLETED += train/program/trib-train
endif
bashcompletiondir = $(datadir)/bash-completion/completions
zshcompletiondir = $(datadir)/zsh/site-functions
fishcompletiondir = $(datadir)/fish/vendor_completions.d
all-local: tools/completion.stamp
tools/completion.stamp: $(COMPLETED)
	$(AM_V_GEN)$(MKDIR_P) tools/completion && for program in $(COMPLETED); do \
		name=$${program##*/} && \
		./$$program --completion bash >tools/completion/$$name && \
		./$$program --completion zsh >tools/completion/_$$name && \
		./$$program --completion fish >tools/completion/$$name.fish || exit 1; \
	done
	$(AM_V_at)touch $@
install-data-local: install-completion
install-completion: tools/completion.stamp
	$(MKDIR_P) '$(DESTDIR)$(bashcompletiondir)' '$(DESTDIR)$(zshcompletiondir)' '$(DESTDIR)$(fishcompletiondir)'
	for program in $(COMPLETED); do \
		name=$${program##*/} && \
		$(INSTALL_DATA) tools/completion/$$name '$(DESTDIR)$(bashcompletiondir)' && \
		$(INSTALL_DATA) tools/completion/_$$name '$(DESTDIR)$(zshcompletiondir)' && \
		$(INSTALL_DATA) tools/completion/$$name.fish '$(DESTDIR)$(fishcompletiondir)' || exit 1; \
	done
uninstall-local: uninstall-completion
uninstall-completion:
	for program in $(COMPLETED); do \
		name=$${program##*/} && \
		rm -f '$(DESTDIR)$(bashcompletiondir)'/$$name '$(DESTDIR)$(zshcompletiondir)'/_$$name \
			'$(DESTDIR)$(fishcompletiondir)'/$$name.fish; \
	done
clean-local: clean-completion
clean-completion:
	rm -rf tools/completion tools/completion.stamp
endif
