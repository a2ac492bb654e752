#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Check the files of contrib/ for administrators with the tools that read them, as far
# as these are installed.
# shellcheck disable=SC2317 # functions are called indirectly
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
contrib=${abs_top_srcdir:-.}/contrib
python=$(command -v python3)
shown=("$said")

if ! missing promtool "Prometheus takes the alerts" && ! missing promtool "each alert fires when it should"; then
    promtool check rules "$contrib/prometheus/tribd.rules.yml" >"$said" 2>&1
    result $? "Prometheus takes the alerts"
    promtool test rules "$contrib/prometheus/tribd.rules.test.yml" >"$said" 2>&1
    result $? "each alert fires when it should, and only then"
fi

# Names of metrics in an alert or a dashboard, without the suffixes of Prometheus for
# histograms.
metrics_of() { grep -ohE '\b(tribd|process)_[a-z_]+' "$@" | sed -E 's/_bucket$//' | sort -u; }
# docs/metrics.md has the full name, or the part after tribd_ and tribd_job_ if both
# exist.
is_metric() {
    local name=${1%_sum}
    name=${name%_count}
    grep -qE "\`($name|${name#tribd_}|${name#tribd_job_})[\`{]" "${abs_top_srcdir:-.}/docs/metrics.md"
}
all_known() { # FILE...
    local name
    for name in $(metrics_of "$@"); do
        is_metric "$name" || { echo "no metric $name"; return 1; }
    done
}
all_known "$contrib/prometheus/tribd.rules.yml" "$contrib/prometheus/tribd.rules.test.yml" >"$said"
result $? "the alerts ask for metrics that tribd has"
all_known "$contrib/grafana/tribd.json" >"$said"
result $? "the dashboard asks for metrics that tribd has"
if ! missing jq "the dashboard is one of Grafana's"; then
    jq -e '.schemaVersion > 30 and (.panels | length) > 8 and ([.panels[].id] | length == (unique | length)) and
           all(.panels[]; .title and .description and (.targets | length) > 0 and .gridPos.x + .gridPos.w <= 24)' \
        "$contrib/grafana/tribd.json" >"$said"
    result $? "the dashboard is valid for Grafana, and each panel has a description"
fi

if "$python" -c 'import yaml' 2>/dev/null; then
    "$python" - "$contrib"/kubernetes/*.yaml >"$said" 2>&1 <<'PYTHON'
import sys
import yaml

def pods(thing):
    template = thing["spec"]["template"]
    return template, template["spec"]

for path in sys.argv[1:]:
    for thing in yaml.safe_load_all(open(path, encoding="utf-8")):
        where = f"{path}: {thing['kind']}"
        assert thing["apiVersion"] == {"DaemonSet": "apps/v1", "Job": "batch/v1", "Service": "v1"}[thing["kind"]], where
        assert thing["metadata"]["name"], where
        if thing["kind"] == "Service":
            continue
        template, pod = pods(thing)
        if thing["kind"] == "DaemonSet":
            wanted = thing["spec"]["selector"]["matchLabels"]
            assert wanted.items() <= template["metadata"]["labels"].items(), where
        else:
            assert pod["restartPolicy"] in ("Never", "OnFailure"), where
            assert thing["spec"]["completions"] == thing["spec"]["parallelism"], where
        volumes = {each["name"] for each in pod.get("volumes", [])}
        for each in pod["containers"]:
            assert each["name"] and each["image"], where
            assert all(isinstance(pair["value"], str) for pair in each.get("env", [])), where
            assert {mount["name"] for mount in each.get("volumeMounts", [])} <= volumes, where
            assert each["securityContext"]["capabilities"]["drop"] == ["ALL"], where
            ports = {port["name"] for port in each.get("ports", [])}
            for probe in ("readinessProbe", "livenessProbe"):
                assert probe not in each or each[probe]["httpGet"]["port"] in ports, where
PYTHON
    result $? "the Kubernetes objects have what Kubernetes requires"
else
    skip "the Kubernetes objects have what Kubernetes requires" "python3-yaml is missing"
fi

for recipe in "$contrib/spack/package.py" "$contrib"/easybuild/*.eb; do
    "$python" -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$recipe" 2>"$said"
    result $? "${recipe##*/} is Python"
done
# configure only warns about words that it does not know.
sed -nE "s/.*with_or_without\(\"([a-z]+)\".*/--with-\1/p" "$contrib/spack/package.py" >"$dir/words"
grep -ohE -- '--(with|without)-[a-z]+' "$contrib"/*/* "${abs_top_srcdir:-.}/debian/rules" >>"$dir/words"
"${abs_top_srcdir:-.}/configure" --help >"$dir/help"
while read -r word; do
    grep -qE -- "--(with|without)-${word#--with*-}\b" "$dir/help" || { echo "$word"; false; } || break
done <"$dir/words" >"$said"
[ ! -s "$said" ] && [ -s "$dir/words" ]
result $? "configure knows each --with and --without of the recipes"
if ! missing rpmspec "the spec file"; then
    rpmspec -P "$contrib/rpm/tributary.spec" >"$dir/spec" 2>"$said" && [ ! -s "$said" ] &&
        grep -q '^Version: *'"$(sed -nE 's/^AC_INIT\(\[Tributary\], \[([0-9.]+)\].*/\1/p' "${abs_top_srcdir:-.}/configure.ac")$" "$dir/spec"
    result $? "rpmspec takes the spec file, and it is of this version"
fi

# Each function is in the symbol list of the package, with the library release that
# introduced it.
sed -E 's/.*\b(trib_[a-z_]+)\(.*/\1/' "${abs_top_srcdir:-.}/tests/abi/symbols.txt" | sort >"$dir/functions"
sed -n '/^libtributary\.so/,$s/^ \(trib_[a-z_]*\)@TRIB_[0-9.]* [0-9.]*$/\1/p' \
    "${abs_top_srcdir:-.}/debian/libtributary0.symbols" | sort | diff "$dir/functions" - >"$said" &&
    ! grep -v '^ *\(lib\|trib_\|TRIB_\)' "${abs_top_srcdir:-.}/debian/libtributary0.symbols" >"$said"
result $? "the symbols of Debian's package are those of tests/abi/symbols.txt"

# --- Slurm, with stand-ins ---

mkdir "$dir/bin" "$dir/job"
cat >"$dir/bin/srun" <<STANDIN
#!/bin/bash
tasks=2
while [[ \$1 = --* ]]; do [[ \$1 != --ntasks=* ]] || tasks=\${1#*=}; shift; done
[ "\$tasks" -gt 1 ] || exec "\$@"
[ "\$1" != trib-perf ] || set -- "\$@" --iters 20
exec "$build/tools/trib-run" -n "\$tasks" -- "\$@"
STANDIN
printf '#!/bin/sh\necho 127.0.0.1\n' >"$dir/bin/scontrol"
chmod +x "$dir/bin/srun" "$dir/bin/scontrol"
batch() { # FILE
    (cd "$dir/job" && PATH=$dir/bin:$build/tools:$build/perf:$build/agg/daemon:$PATH HOME=$dir/job SLURM_JOB_ID=7 \
        SLURM_JOB_NODELIST='n[0-1]' timeout -k 5 $((60 * slow)) bash "$1" >"$said" 2>&1 </dev/null)
}
batch "$contrib/slurm/train.sbatch" && grep -q ' 64 KiB ' "$said" && [ -s "$dir/job/allreduce-7.json" ]
result $? "the job for Slurm runs, by a stand-in for srun"
if grep -q 'sodium *yes\|HAVE_SODIUM 1' "$build/build-config.h"; then
    sed "s/4700/$((20000 + RANDOM % 10000))/" "$contrib/slurm/service.sbatch" >"$dir/service.sbatch"
    batch "$dir/service.sbatch" && grep -q ' 64 KiB ' "$said" && ! grep -q 'without aggregators' "$said"
    result $? "and so does the one with a service of its own"
else
    skip "and so does the one with a service of its own" "built without libsodium"
fi
finish
