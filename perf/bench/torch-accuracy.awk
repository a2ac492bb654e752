# SPDX-License-Identifier: BSD-3-Clause
#
# tables.awk and torch-accuracy.awk accuracy.csv, of rows "codec,seed,percent": the mean of each codec, its difference
# from dense sums (codec none), and the standard error of the difference over seeds.

{
    note("codec", $1)
    note("seed", $2)
    got[$1, $2] = $3
    runs[$1]++
    sum[$1] += $3
    all[$1] = all[$1] " " sprintf("%.2f", $3)
}

END {
    print "Fashion-MNIST, " epochs " epochs, 2 ranks: test images that are recognised, %.\n"
    head("<codec|<by seed|mean|mean - dense|standard error")
    for (c = 1; c <= items["codec"]; c++) {
        codec = item["codec", c]
        n = d = square = 0
        for (s = 1; s <= items["seed"]; s++) {
            seed = item["seed", s]
            if (!((codec, seed) in got) || !(("none", seed) in got)) continue
            off = got[codec, seed] - got["none", seed]
            n++
            d += off
            square += off * off
        }
        line = sprintf("| `%s` |%s | %.2f |", codec, all[codec], sum[codec] / runs[codec])
        print line (codec == "none" || n < 2 ? " - | - |" : sprintf(" %+.2f | %.2f |", d / n, sqrt((square - d * d / n) / (n - 1) / n)))
    }
}
