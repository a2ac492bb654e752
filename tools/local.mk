# SPDX-License-Identifier: BSD-3-Clause
# Shared by all programs; not installed.
noinst_LTLIBRARIES += libtools.la
libtools_la_SOURCES = \
	tools/common/bind.c tools/common/bind.h \
	tools/common/completion.c \
	tools/common/launch.c tools/common/launch.h \
	tools/common/local_tribd.c tools/common/local_tribd.h \
	tools/common/option_help.c \
	tools/common/option_names.c \
	tools/common/option_rows.c \
	tools/common/option_setters.c \
	tools/common/options.c tools/common/options.h \
	tools/common/rank_table.c tools/common/rank_table.h \
	tools/common/setting_values.c tools/common/setting_values.h \
	tools/common/ticker.c tools/common/ticker.h \
	tools/common/tool.c tools/common/tool.h \
	tools/common/tool_table.c tools/common/tool_table.h \
	tools/common/trace_merge.c tools/common/trace_merge.h \
	tools/common/tribd_client.c tools/common/tribd_client.h

bin_PROGRAMS += tools/trib-run
tools_trib_run_SOURCES = \
	tools/run/run_parts.h \
	tools/run/run_options.c \
	tools/run/run_output.c \
	tools/run/run_ranks.c \
	tools/run/run_state.c \
	tools/run/trib-run.c
tools_trib_run_LDADD = libtools.la libtributary.la

bin_PROGRAMS += tools/trib-info
tools_trib_info_SOURCES = \
	tools/info/info_doctor.c \
	tools/info/info_commands.h \
	tools/info/info_codecs.c \
	tools/info/info_json.c \
	tools/info/info_options.c \
	tools/info/info_reach.c \
	tools/info/info_schedule.c \
	tools/info/info_stacks.c \
	tools/info/info_top.c \
	tools/info/info_topo.c \
	tools/info/info_tribd.c \
	tools/info/info_trace.c \
	tools/info/trib-info.c
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
