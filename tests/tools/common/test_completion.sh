#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Completion of each program: bash offers every option of --help, and zsh and fish load their
# files.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

# WORD...: store bash's completions of the last word in $said, one per line
offered() {
    local -a COMP_WORDS=("$@") COMPREPLY=()
    local COMP_CWORD=$(($# - 1))
    "_${1//-/_}" 2>/dev/null
    printf '%s\n' "${COMPREPLY[@]}" >"$said"
}

# PROGRAM, its file, COMMAND of it or nothing: each option of its --help is offered
offers_all() {
    local name=$1 program=$2 command=("${@:3}")
    "$program" "${command[@]}" --help |
        sed -nE 's/^  (-[a-zA-Z], |    )(--[a-z-]+).*/\1\n\2/p' | grep -o -- '-[^, ]*' | sort >"$dir/wanted"
    offered "$name" "${command[@]}" -
    sort "$said" | diff "$dir/wanted" - >"$dir/differ" && [ "$(wc -l <"$dir/wanted")" -gt 3 ]
    local good=$?
    cp "$dir/differ" "$said"
    result $good "bash: every option of $name${command[*]:+ ${command[*]}}"
}

for program in tools/trib-run tools/trib-info perf/trib-perf train/program/trib-train agg/daemon/tribd agg/daemon/tribctl; do
    name=${program##*/}
    [ -x "$build/$program" ] || continue
    "$build/$program" --completion bash >"$dir/$name.bash"
    # shellcheck source=/dev/null
    . "$dir/$name.bash"
    offers_all "$name" "$build/$program"
    "$build/$program" --completion=zsh >"$dir/_$name"
    "$build/$program" --completion=fish >"$dir/$name.fish"
    for shell in zsh fish; do
        file=$dir/_$name
        [ $shell = zsh ] || file=$dir/$name.fish
        missing $shell "$shell reads that of $name" || expect "$shell reads that of $name" 0 "" $shell -n "$file"
    done
done
for command in agg calibrate codec compare groups neighbors put report store; do
    offers_all trib-perf "$build/perf/trib-perf" $command
done
offers_all trib-info "$build/tools/trib-info" doctor

# NAME, expected words, words before the cursor
offers() {
    local name=$1 wanted=$2
    shift 2
    offered "$@"
    [ "$(paste -sd ' ' "$said")" = "$wanted" ]
    result $? "$name"
}
offers "the words of a choice" "none" trib-run --bind n
offers "behind =" "core" trib-run --bind = co
offers "commands and collectives" "allreduce allgather alltoall agg" trib-perf a
offers "no commands behind the first word" "allreduce allgather alltoall" trib-perf -n2 a
offers "commands of tribctl" "status snapshots" tribctl s
PATH=$build/tools:$PATH offers "names that trib-info lists" "halving-doubling hierarchical" \
    trib-perf allreduce --algorithm h
expect "no such shell" 2 "bash, zsh or fish" "$build/tools/trib-run" --completion csh
expect "no shell" 2 "bash, zsh or fish" "$build/perf/trib-perf" --completion
refuse_full "completion onto a full disk" "$build/tools/trib-info" --completion bash
finish
