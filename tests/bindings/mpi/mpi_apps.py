#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run MPI applications from Debian's packages with and without trib-mpi. Compare their results, the
share of reductions that the library executes, and the run times.

  tests/bindings/mpi/mpi_apps.py [OPTION]… BUILD_DIR OUT_DIR

Writes table.txt, runs.csv (all launches) and the output of the last launch of each kind to OUT_DIR.
A star after the results: a launch without trib-mpi failed; "ends": all of them failed, so nothing was
compared. Exit code: 0; 1 if a result differs, a launch under trib-mpi fails or hangs, or a share is below
95 %."""
import argparse
import csv
import dataclasses
import glob
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
INPUTS = HERE / "inputs"
SCALAPACK = "/usr/lib/*/scalapack/{}-tests"
MODES = {"plain": [], "trib-mpi": ["--report=report.json"],
         "always": ["--prefer", "tributary", "--after", "0", "--report=report.json"]}
REDUCTIONS = {"allreduce", "reduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan",
              "iallreduce"}
SHARE = 95.0  # per cent of the reductions
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eEdD][-+]?\d+)?")


@dataclasses.dataclass
class App:
    name: str
    mpi: str
    package: str
    command: list  # {} in the first word: a pattern for the path of the program
    keep: str  # lines that are results, or the groups of this pattern
    tolerance: float = 0.0  # relative, of numbers
    files: dict = dataclasses.field(default_factory=dict)  # name in the folder: source path
    env: dict = dataclasses.field(default_factory=dict)
    said_in: str = "said"  # the file that contains the results
    quick: list = None  # the command of --quick, which has fewer steps
    decimals: bool = True  # numbers with a point are results; otherwise they are times and residuals
    rows: int = 1  # minimum number of result lines
    ranks: int = 0  # instead of --ranks


def lammps(name, quick):
    return App(f"LAMMPS {name}", "openmpi", "lammps", ["lmp", "-in", f"{name}.lammps", "-log", "none"],
               r"^\s+\d+(\s+[-+\d.e]+){5}\s*$", 1e-6, {f"{name}.lammps": INPUTS / f"{name}.lammps"},
               rows=10, quick=["lmp", "-in", f"{name}.lammps", "-log", "none", "-var", "steps", "40"] if quick else None)


def nwchem(mpi):
    return App("NWChem DFT", mpi, f"nwchem-{mpi}", [f"nwchem.{mpi}", "water.nwchem"],
               r"Total DFT energy.*", 1e-9, {"water.nwchem": INPUTS / "water.nwchem"},
               {"ARMCI_USE_WIN_ALLOCATE": "0"})


def scalapack(mpi, program, input_file, quick=False, ranks=0, ours=None):
    folder = SCALAPACK.format(mpi)
    command = [f"{folder}/{program}"]
    return App(f"ScaLAPACK {program}", mpi, "scalapack-mpi-test", command,
               r"^\s*\d+ tests .*(?:pass|fail|skip).*|.*\b(?:PASSED|FAILED)\b.*", 0.0,
               {input_file: ours or f"{folder}/{input_file}"}, quick=command if quick else None, ranks=ranks,
               decimals=False, rows=10)


APPS = [
    lammps("lj", True),
    lammps("pppm", False),
    nwchem("openmpi"),
    nwchem("mpich"),
    App("Quantum ESPRESSO", "openmpi", "quantum-espresso quantum-espresso-data",
        ["pw.x", "-nk", "2", "-in", "silicon.pwscf"],
        r"^!.*|Total force =.*|convergence has been achieved.*|Fermi energy.*", 1e-8,
        {"silicon.pwscf": INPUTS / "silicon.pwscf",
         "Si.pz-vbc.UPF": "/usr/share/doc/quantum-espresso/examples/EPW/sic/pp/Si.pz-vbc.UPF.gz"}, rows=3),
    App("CP2K", "openmpi", "cp2k cp2k-data", ["cp2k.psmp", "-i", "H2O.inp"], r"ENERGY\|.*", 1e-10,
        {"H2O.inp": "/usr/share/doc/cp2k/examples/H2O.inp"}, rows=6),
    scalapack("openmpi", "xdlu", "LU.dat", True),
    scalapack("openmpi", "xzlu", "LU.dat"),
    scalapack("openmpi", "xdqr", "QR.dat"),
    scalapack("openmpi", "xdls", "LS.dat"),
    scalapack("openmpi", "xdtrd", "TRD.dat"),
    scalapack("mpich", "xdbrd", "BRD.dat"),
    scalapack("mpich", "xdlu", "LU.dat", True, 2, INPUTS / "lu_two_ranks.dat"),
    App("PETSc", "openmpi", "python3-petsc4py-real", ["/usr/bin/python3", "petsc_solvers.py"],
        r".*iterations.*", 1e-7, {"petsc_solvers.py": HERE / "petsc_solvers.py"},
        {"PYTHONPATH": "/usr/lib/petscdir/*/*-real/lib/python3/dist-packages"}, rows=3),
    App("mpi4py", "openmpi", "python3-mpi4py", ["/usr/bin/python3", "mpi4py_calls.py", "100"],
        r"numbers.*", 0.0, {"mpi4py_calls.py": HERE / "mpi4py_calls.py"}, rows=5,
        quick=["/usr/bin/python3", "mpi4py_calls.py", "20"]),
    App("HPCC", "openmpi", "hpcc", ["hpcc"], r".*PASSED.*|.*FAILED.*|.*Success=.*", 0.0,
        {"hpccinf.txt": "/usr/share/doc/hpcc/examples/_hpccinf.txt"}, said_in="hpccoutf.txt",
        decimals=False),
]


def found(pattern):
    """Return the newest file that matches the pattern, or the program of this name; None: not found."""
    if "/" in str(pattern):
        return max(glob.glob(str(pattern)), default=None)
    return shutil.which(pattern)


def missing(app):
    """Return what the application needs and the host lacks, as text; empty: nothing."""
    for what in (f"mpirun.{app.mpi}", app.command[0], *app.files.values()):
        if not found(what):
            return f"{pathlib.Path(str(what)).name} is not installed (package {app.package})"
    if app.name in ("PETSc", "mpi4py"):
        module = "petsc4py" if app.name == "PETSc" else "mpi4py"
        env = environment(app, "plain")
        if subprocess.run([app.command[0], "-c", f"import {module}"], env=env, capture_output=True,
                          check=False).returncode:
            return f"{module} is not installed (package {app.package})"
    return ""


def environment(app, mode):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TRIB_") or k == "TRIB_MPI_MODULES"}
    env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return env | {k: found(v) or v if "/" in v else v for k, v in app.env.items()}


def stage(app, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, place in app.files.items():
        place = found(place)
        data = gzip.open(place).read() if place.endswith(".gz") else open(place, "rb").read()
        (folder / name).write_bytes(data)


def end(process):
    """Terminate a launcher, which then terminates its ranks; kill it if it does not exit."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
            process.wait(5)
            return
        except subprocess.TimeoutExpired:
            pass
        except ProcessLookupError:
            return


@dataclasses.dataclass
class Launch:
    seconds: float
    failure: str  # as text, or empty
    results: list  # of lines, split into words
    report: dict  # call: its counts


def results_of(app, folder):
    path = folder / app.said_in
    text = path.read_text(errors="replace") if path.exists() else ""
    lines = [m[0].split() for m in re.finditer(app.keep, text, re.MULTILINE)]
    if not app.decimals:
        lines = [[w for w in words if "." not in w] for words in lines]
    return lines


def launch(app, mode, options, folder):
    stage(app, folder)
    command = list(app.quick if options.quick else app.command)
    command[0] = found(command[0])
    run = [f"mpirun.{app.mpi}", *(["--oversubscribe"] if app.mpi == "openmpi" else []),
           "-n", str(app.ranks or options.ranks)]
    if mode != "plain":
        run += [str(options.build / "bindings/mpi/trib-mpi"), *MODES[mode]]
    began, failure = time.monotonic(), ""
    with open(folder / "said", "w", encoding="utf-8") as said:
        process = subprocess.Popen(run + command, cwd=folder, env=environment(app, mode), stdout=said,
                                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   start_new_session=True)
        try:
            if process.wait(options.limit):
                failure = f"exit code {process.returncode}"
        except subprocess.TimeoutExpired:
            failure = f"not through in {options.limit:g} s"
            end(process)
    seconds = time.monotonic() - began
    results = results_of(app, folder)
    if not failure and len(results) < app.rows:
        failure = f"{len(results)} lines of results, {app.rows} are wanted"
    report = folder / "report.json"
    calls = json.loads(report.read_text())["calls"] if report.exists() and not failure else []
    return Launch(seconds, failure, results, {c["call"]: c for c in calls})


def differ(wanted, got, tolerance):
    """Return the first difference of two results as text; empty: none."""
    if len(wanted) != len(got):
        return f"{len(got)} lines of results, {len(wanted)} are wanted"
    for a, b in zip(wanted, got):
        if len(a) != len(b) or not all(alike(x, y, tolerance) for x, y in zip(a, b)):
            return f"'{' '.join(b)}', and '{' '.join(a)}' without"
    return ""


def alike(x, y, tolerance):
    if x == y:
        return True
    if not (NUMBER.fullmatch(x) and NUMBER.fullmatch(y)):
        return False
    x, y = (float(v.lower().replace("d", "e")) for v in (x, y))
    return abs(x - y) <= tolerance * max(abs(x), abs(y), 1e-3)


def routed(report):
    """Return the reductions of a launch that the library supports, and the percentage that it executed."""
    taken = left = 0
    for call in REDUCTIONS & report.keys():
        counts = report[call]
        taken += counts["library"]
        left += sum(counts[why] for why in ("mpi", "early", "type", "long"))
    return taken + left, 100.0 * taken / (taken + left) if taken + left else 0.0


def measure(app, options, rows):
    """Launch an application in each mode by turns. Return the launches by mode, and the failures."""
    launches = {mode: [] for mode in options.modes}
    complaints, wanted = [], None
    for number in range(options.rounds):
        order = options.modes if number % 2 == 0 else [options.modes[0], *reversed(options.modes[1:])]
        for mode in order:
            tell(f"{app.name}, {app.mpi}: {mode}, round {number + 1} of {options.rounds}")
            folder = options.out / app.name.replace(" ", "-").lower() / app.mpi / mode
            one = launch(app, mode, options, folder)
            launches[mode].append(one)
            rows.writerow([app.name, app.mpi, mode, number + 1, f"{one.seconds:.3f}",
                           one.failure or "ends well", *(routed(one.report) if one.report else ("", ""))])
            if wanted is None and not one.failure and mode == "plain":
                wanted = one.results
            why = one.failure or (differ(wanted, one.results, app.tolerance) if wanted else "")
            if why:
                complaints.append((mode, why))
    return launches, complaints


def tell(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr)


FORM = "{:<17} {:<7} {:>7} {:>8} {:>8} {:>10} {:>7}  {}"


def row_of(app, launches, complaints, options):
    """Return the row of the table, and whether all its checks passed."""
    times = {}
    for mode in MODES:
        good = [one.seconds for one in launches.get(mode, []) if not one.failure]
        times[mode] = f"{statistics.median(good):.2f}" if good else "-"
    reports = [one.report for one in launches.get("always", []) if one.report]
    count, share = routed(reports[-1]) if reports else (0, 0.0)
    ours = [why for mode, why in complaints if mode != "plain"]
    low = bool(reports) and share < SHARE
    if ours:
        verdict = "differ" if "without" in ours[0] else "FAIL"
    elif low:
        verdict = "few"
    elif not launches["plain"] or all(one.failure for one in launches["plain"]):
        verdict = "ends, *"
    else:
        verdict = "same" if not complaints else "same, *"
    mpi = f"{app.mpi}/{app.ranks}" if app.ranks else app.mpi
    line = FORM.format(app.name, mpi, times["plain"], times["trib-mpi"], times["always"], count or "-",
                       f"{share:.1f}" if reports else "-", verdict)
    return line, not ours and not low and bool(reports)


def table_head(options):
    return [f"{options.ranks} ranks (mpich/2: 2) on {os.cpu_count()} cores, {options.rounds} launches of each kind"
            " in turns,",
            f"medians; load of the machine before: {os.getloadavg()[0]:.1f}",
            "plain: without trib-mpi; choice: trib-mpi; always: trib-mpi --prefer tributary",
            "--after 0; reductions: calls of rank 0; routed: the library's share of them",
            "",
            FORM.format("program", "MPI", "plain,s", "choice,s", "always,s", "reductions", "routed,%", "results")]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="launches of each kind [3]")
    parser.add_argument("--ranks", type=int, default=4, help="ranks of each launch [4]")
    parser.add_argument("--limit", type=float, default=120, help="seconds that a launch may take [120]")
    parser.add_argument("--only", default="", help="programs, with commas, by a part of their names")
    parser.add_argument("--quick", action="store_true", help="few and short programs, once, without the choice")
    parser.add_argument("--tap", action="store_true", help="say a line of TAP for each program")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    options = parser.parse_args()
    options.build, options.out = options.build.resolve(), options.out.resolve()
    os.environ["TRIB_MPI_MODULES"] = str(options.build / ".libs")
    options.modes = ["plain", "always"] if options.quick else list(MODES)
    if options.quick:
        options.rounds = 1
    return options


def chosen(options):
    words = [w.lower() for w in options.only.split(",") if w]
    for app in APPS:
        if options.quick and not app.quick:
            continue
        if not words or any(w in f"{app.name} {app.mpi}".lower() for w in words):
            yield app


def main():
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    lines, said, well, number = table_head(options), [], True, 0
    with open(options.out / "runs.csv", "w", buffering=1, newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["program", "mpi", "mode", "round", "seconds", "end", "reductions", "routed"])
        for app in chosen(options):
            number += 1
            title = f"{app.name}, {app.mpi}"
            why = missing(app)
            if not why and not (options.build / f".libs/libtributary_mpi-{app.mpi}.so").exists():
                why = f"there is no module for {app.mpi}"
            if why:
                said.append(f"Left out: {title}: {why}.")
                if options.tap:
                    print(f"ok {number} # SKIP {title}: {why}")
                continue
            launches, complaints = measure(app, options, rows)
            line, good = row_of(app, launches, complaints, options)
            lines.append(line)
            said += [f"{title}, {mode}: {why}" + (" *" if mode == "plain" else "") for mode, why in complaints]
            well = well and good
            if options.tap:
                print("\n".join(f"# {mode}: {why}" for mode, why in complaints) + "\n" if complaints else "", end="")
                print(f"# {line}\n{'ok' if good else 'not ok'} {number} - {title}: the same results, by the library",
                      flush=True)
    if options.tap:
        print(f"1..{number}")
    else:
        tell("")
        text = "\n".join([*lines, *(["", *said] if said else [])])
        (options.out / "table.txt").write_text(text + "\n", encoding="utf-8")
        print(text)
    return 0 if well else 1


sys.exit(main())
