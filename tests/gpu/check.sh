#!/usr/bin/env bash
# On a machine with a GPU: builds everything, runs all rungs' programs and all tests, PyTorch's parity, the record of every
# kernel, the benchmarks, and programs and tests once more under compute-sanitizer; and prints one table. Logs go to the
# folder named by the first argument (build/gpu-check when none is), the table to table.txt in it.
# Exit status 0 when everything passed; what was stopped for its time is a row of its own, not a pass.
#   LADDER_CHECK=all      under the sanitizers every program and test; otherwise the subset that is named below
#   LADDER_CHECK_SECONDS  for each tool of compute-sanitizer, 120 unless given
#   LADDER_CHECK_PARTS    the parts to do, of: run test parity kernels bench memcheck racecheck synccheck initcheck
#   LADDER_BENCH_ARGS     options of tests/bench/run.py, such as "--rounds 1"
#   LADDER_CMAKE_ARGS     arguments of cmake
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
logs=${1:-build/gpu-check}
mkdir -p "$logs"
table=$logs/table.txt
rm -f "$logs/bench.log" "$logs/kernels.log"
: >"$table"
failed=0
part() { [[ -z ${LADDER_CHECK_PARTS:-} || " $LADDER_CHECK_PARTS " == *" $1 "* ]]; }
row() { printf '%-10s %-34s %-22s %s\n' "$@" | tee -a "$table"; }

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$logs/device.txt"
nvcc --version | tail -n 2 | head -n 1 | tee -a "$logs/device.txt"
cmake --preset cuda ${LADDER_CMAKE_ARGS:-} >"$logs/configure.log" 2>&1 &&
  cmake --build --preset cuda --target all kernel_record benches >"$logs/build.log" 2>&1 || { tail -n 40 "$logs/configure.log" "$logs/build.log"; exit 1; }

row tool program verdict detail
for program in build/cuda/[0-9][0-9]_*; do
  part run || break
  [[ -x $program && -f $program ]] || continue
  "$program" >"$logs/run-${program##*/}.log" 2>&1; status=$?
  [[ $status == 0 ]] && row run "${program##*/}" passed '' || { row run "${program##*/}" "FAILED ($status)" ''; failed=1; }
done
# All at once: they measure nothing.
for program in build/cuda/tests/test_*; do
  part test || break
  [[ -x $program ]] || continue
  { RC_PARAMS=seed=20260907 "$program" >"$logs/test-${program##*/}.log" 2>&1; echo $? >"$logs/test-${program##*/}.status"; } &
done
wait
for program in build/cuda/tests/test_*; do
  part test || break
  [[ -x $program ]] || continue
  status=$(<"$logs/test-${program##*/}.status")
  detail=$(grep -aE '^\[doctest\] (test cases|assertions)|kernels launched' "$logs/test-${program##*/}.log" | tr -s ' \n' ' ')
  [[ $status == 0 ]] && row test "${program##*/}" passed "$detail" || { row test "${program##*/}" "FAILED ($status)" "$detail"; failed=1; }
done

python=$(sed -n 's/^LADDER_PYTORCH_PYTHON:[A-Z]*=//p' build/cuda/CMakeCache.txt)
if part parity; then
  "${python:-python3}" -B tests/pytorch/test_parity.py build/cuda/tests/pytorch/libladder_c.so >"$logs/parity.log" 2>&1; status=$?
  detail=$(grep -aE '^(Ran|OK|FAILED|skipped:)|^The rungs' "$logs/parity.log" | tr '\n' ' ')
  case $status in
    0) row parity pytorch_and_triton passed "$detail" ;;
    77) row parity pytorch_and_triton 'not run' "$detail" ;;
    *) row parity pytorch_and_triton "FAILED ($status)" "$detail"; failed=1 ;;
  esac
fi

# The record of registers, spills, shared memory and occupancy: no kernel may spill.
if part kernels; then
  python3 -B tests/gpu/kernels.py --out "$logs/kernels.txt" >"$logs/kernels.log" 2>&1; status=$?
  detail=$(grep -aE '^[0-9]+ kernels, |error:' "$logs/kernels.log" 2>/dev/null | tail -n 1)
  case $status in
    0) row kernels kernel_record passed "$detail" ;;
    *) row kernels kernel_record "FAILED ($status)" "$detail"; failed=1 ;;
  esac
fi

# The benchmarks: what is timed must be right. Their summary follows the table.
if part bench; then
  if grep -aq '^benchmark_DIR:.*NOTFOUND' build/cuda/CMakeCache.txt; then
    row bench all_rungs 'not run' 'Google Benchmark was not found'
  else
    read -ra bench_options <<<"${LADDER_BENCH_ARGS:-}"
    "${python:-python3}" -B tests/bench/run.py --device cuda --out "$logs" \
      --commit "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)" "${bench_options[@]}" >"$logs/bench.log" 2>&1
    status=$?
    detail=$(grep -acE '^0[0-9] ' "$logs/bench.log" 2>/dev/null)' kernels and shapes, summary below'
    case $status in
      0) row bench all_rungs passed "$detail" ;;
      *) row bench all_rungs "FAILED ($status)" "$(tail -n 1 "$logs/bench.log" 2>/dev/null)"; failed=1 ;;
    esac
  fi
fi

# --- The sanitizers ---
# Each tool takes the programs that it could find something in, the cheapest first, and two minutes for all of them; what
# is not reached then is a row that says so. LADDER_CHECK=all: every program and two minutes for each.
declare -A subset=(
  # Every access of every kernel: the rungs' programs on bare buffers, where the bounds are exact, and each rung's tests.
  # Not the statistics of 02: tens of thousands of launches of one kernel that the tests of 02 launch too.
  [memcheck]='01_* 02_* 03_* 04_* 05_* test_reduce test_hostile_views test_01_* test_05_attention test_04_softmax_vectorized
              test_04_softmax_bf16 test_03_* test_04_softmax_fixed test_02_relu_dropout'
  # Races are between threads that share memory: the kernels of 01 and 02 have none.
  [racecheck]='03_* 04_* 05_* test_reduce test_05_attention test_04_softmax_vectorized test_04_softmax_bf16 test_03_* test_04_softmax_fixed'
  # Barriers and warp-wide operations: the same.
  [synccheck]='03_* 04_* 05_* test_reduce test_05_attention test_04_softmax_vectorized test_04_softmax_bf16 test_03_* test_04_softmax_fixed'
  # What nobody wrote: the programs on bare buffers. 03 tells unwritten cells by their poison, and so do the tests.
  [initcheck]='01_* 02_* 04_* 05_*'
)
seconds_for_a_tool=${LADDER_CHECK_SECONDS:-120}

# sanitize TOOL PROGRAM SECONDS: a row. memcheck and initcheck look at the rungs' programs with buffers as CUDA allocates
# them, without our guards and poison: then they know the exact bounds, and what nobody wrote. Times are not taken.
sanitize() {
  local tool=$1 program=$2 name=${2##*/} status detail log
  local -a bare=()
  [[ $tool =~ ^(memcheck|initcheck)$ && $name =~ ^[0-9][0-9]_ && ! $name =~ ^03 ]] && bare=(LADDER_BARE_BUFFERS=1)
  [[ $tool == initcheck && ${#bare[@]} == 0 ]] && return
  if (( $3 < 1 )); then row "$tool" "$name" 'not run' "the $seconds_for_a_tool seconds of this tool were over"; return; fi
  log=$logs/$tool-$name.log
  env LADDER_PREDICT_ONLY=1 RC_PARAMS='seed=20260907 max_success=10' "${bare[@]}" timeout "$3" \
    compute-sanitizer --tool "$tool" --error-exitcode 99 "$program" >"$log" 2>&1
  status=$?
  detail=$(grep -aE 'ERROR SUMMARY|RACECHECK SUMMARY|kernels launched' "$log" | sed 's/=* *//' | tr '\n' ' ')
  if grep -aqiE 'device not supported|not supported on this' "$log"; then row "$tool" "$name" 'not run' 'the tool refuses the device'
  elif [[ $status == 124 ]]; then row "$tool" "$name" 'not finished' "stopped after $3 seconds"
  elif grep -aqE '(ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards)' "$log" && [[ $status != 99 ]]; then row "$tool" "$name" clean "$detail"
  else row "$tool" "$name" "FAILED ($status)" "$detail"; failed=1
  fi
}

for tool in memcheck racecheck synccheck initcheck; do
  part "$tool" || continue
  started=$SECONDS
  patterns=${subset[$tool]}
  [[ ${LADDER_CHECK:-subset} == all ]] && patterns='[0-9][0-9]_* test_*'
  set -f  # the patterns stand for programs, not for files of the current folder
  for pattern in $patterns; do
    set +f
    for program in build/cuda/$pattern build/cuda/tests/$pattern; do
      [[ -x $program && -f $program ]] || continue
      left=$((seconds_for_a_tool - (SECONDS - started)))
      [[ ${LADDER_CHECK:-subset} == all ]] && left=$seconds_for_a_tool
      sanitize "$tool" "$program" "$left"
    done
  done
done

if part bench && [[ -s $logs/bench.log ]]; then printf '\n'; sed -n '/^On /,/^Raw results/p' "$logs/bench.log"; fi | tee -a "$table"
exit $failed
