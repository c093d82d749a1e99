#!/usr/bin/env bash
# The session of docs/gdb.md: stop in thread 70 of block 1, step over a barrier, and still be in that thread.
# usage: gdb_test.sh PROGRAM, which is rung 05 compiled with -O0, from the root of the repository
set -euo pipefail

program=$1
source=steps/05_attention/attention.cuh

if ! command -v gdb > /dev/null; then
  echo "skipped: there is no gdb"
  exit 77
fi

barrier=$(grep -n '^ *__syncthreads();' "$source" | head -1 | cut -d: -f1)
behind=$(awk -v barrier="$barrier" 'NR > barrier && NF { print NR; exit }' "$source")

# session STEP...: what gdb prints when these commands go from the barrier to the line behind it.
session() {
  local steps=() step
  for step in "$@"; do steps+=(-ex "$step"); done
  timeout 120 gdb --nx --batch -ex 'set pagination off' -ex 'set confirm off' \
    -ex "break $source:$barrier if threadIdx.x == 70 && blockIdx.x == 1" -ex 'run' \
    -ex 'printf "at the barrier: thread %d, block %d\n", threadIdx.x, blockIdx.x' \
    "${steps[@]}" \
    -ex 'frame' \
    -ex 'printf "behind it: thread %d, block %d\n", threadIdx.x, blockIdx.x' \
    -ex 'kill' --args "$program" --q-len 64 2>&1 || true
}

# arrived OUTPUT: it stopped at the barrier in thread 70 of block 1, and then at the line behind it.
arrived() {
  grep -q '^at the barrier: thread 70, block 1$' <<< "$1" && grep -q "^#0 .*attention_kernel.* at $source:$behind\$" <<< "$1"
}
# stayed OUTPUT: in the same thread.
stayed() {
  grep -q '^behind it: thread 70, block 1$' <<< "$1"
}

output=$(session 'next')
if grep -qi 'could not trace the inferior\|ptrace: operation not permitted' <<< "$output"; then
  echo "skipped: gdb may not trace a process here"
  exit 77
fi
if ! { arrived "$output" && stayed "$output"; }; then
  echo "$output"
  echo "failed: 'next' over the barrier at $source:$barrier did not end in thread 70 of block 1, at line $behind"
  exit 1
fi

# That this can fail: whoever passes the barrier first is another thread.
output=$(session "tbreak $source:$behind" 'continue')
if ! arrived "$output" || stayed "$output"; then
  echo "$output"
  echo "failed: the first thread behind the barrier should be another one than thread 70"
  exit 1
fi
echo "thread 70 of block 1: from line $barrier to line $behind, over the barrier"
