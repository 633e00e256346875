#!/bin/sh
# Compiler flags by the command line: which of them make a small program fastest on this machine?
#
#     sh examples/compiler_flags.sh [EVALUATIONS]
#
# Called as below with `measure` and flags it compiles a program, runs it and prints the time it
# took: what partita minimises. Times are noisy; a flag the compiler refuses is a failed evaluation.
set -eu

if [ "${1:-}" = measure ]; then
    shift
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    cat >"$work/waves.c" <<'C'
#include <math.h>
#include <stdio.h>
#include <time.h>

#define N 256

static float now[N][N], next[N][N];

int main(void) {
    now[N / 2][N / 2] = 1.0f;
    clock_t start = clock();
    for (int step = 0; step < 150; step++) {
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                next[i][j] = 0.2f * (now[i][j] + now[i - 1][j] + now[i + 1][j] + now[i][j - 1] +
                                     now[i][j + 1]) / sqrtf(1.0f + now[i][j] * now[i][j]);
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) now[i][j] = next[i][j];
    }
    double sum = 0.0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) sum += now[i][j];
    printf("sum %g, milliseconds %.3f\n", sum, 1e3 * (clock() - start) / CLOCKS_PER_SEC);
    return 0;
}
C
    ${CC:-cc} "$@" -o "$work/waves" "$work/waves.c" -lm
    "$work/waves"
    exit
fi

${PARTITA:-partita} minimize --evals "${1:-100}" --timeout 60 \
    --param level:-O0,-O1,-O2,-O3,-Os \
    --param math:-fno-fast-math,-ffast-math \
    --param arch:-mtune=generic,-march=native \
    --param unroll:-fno-unroll-loops,-funroll-loops \
    --param vectors:-fno-tree-vectorize,-ftree-vectorize \
    -- sh "$0" measure '{level}' '{math}' '{arch}' '{unroll}' '{vectors}'
