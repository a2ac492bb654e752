# SPDX-License-Identifier: BSD-3-Clause
# Print rows "codec,seed,percent" as a table: the mean of each codec, its difference from dense sums
# (codec none), and the standard error of the difference over seeds.

BEGIN { FS = "," }

{
    if (!($1 in runs))
        codecs[++n_codecs] = $1
    runs[$1]++
    sum[$1] += $3
    got[$1, $2] = $3
    all[$1] = all[$1] " " sprintf("%.2f", $3)
    if ($2 > seeds)
        seeds = $2
}

END {
    print "Fashion-MNIST, " epochs " epochs, 2 ranks: test images that are recognised, %."
    print ""
    print "| codec | by seed | mean | mean - dense | standard error |"
    print "|---|---|--:|--:|--:|"
    for (c = 1; c <= n_codecs; c++) {
        n = d = square = 0
        for (s = 1; s <= seeds; s++) {
            if (!((codecs[c], s) in got) || !(("none", s) in got))
                continue
            off = got[codecs[c], s] - got["none", s]
            n++
            d += off
            square += off * off
        }
        line = sprintf("| `%s` |%s | %.2f |", codecs[c], all[codecs[c]], sum[codecs[c]] / runs[codecs[c]])
        if (codecs[c] == "none" || n < 2)
            print line " - | - |"
        else
            print line sprintf(" %+.2f | %.2f |", d / n, sqrt((square - d * d / n) / (n - 1) / n))
    }
}
