#!/usr/bin/env bash
# On a machine with a GPU: builds everything, runs all tests and all rungs' programs, then both under compute-sanitizer,
# and prints one table. Logs go to the folder named by the first argument (build/gpu-check when none is).
# Exit status 0 when everything passed; a tool that took more than two minutes is a row of its own, not a pass.
set -uo pipefail
cd "$(dirname "$0")/../.."
logs=${1:-build/gpu-check}
mkdir -p "$logs"
table=$logs/table.txt
: >"$table"
failed=0
row() { printf '%-10s %-34s %-22s %s\n' "$@" | tee -a "$table"; }

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$logs/device.txt"
nvcc --version | tail -n 2 | head -n 1 | tee -a "$logs/device.txt"
cmake --preset cuda ${LADDER_CMAKE_ARGS:-} >"$logs/configure.log" 2>&1 &&
  cmake --build --preset cuda >"$logs/build.log" 2>&1 || { tail -n 40 "$logs/configure.log" "$logs/build.log"; exit 1; }

row tool program verdict detail
for program in build/cuda/[0-9][0-9]_*; do
  [[ -x $program && -f $program ]] || continue
  "$program" >"$logs/run-${program##*/}.log" 2>&1; status=$?
  [[ $status == 0 ]] && row run "${program##*/}" passed '' || { row run "${program##*/}" "FAILED ($status)" ''; failed=1; }
done
for program in build/cuda/tests/test_*; do
  [[ -x $program ]] || continue
  RC_PARAMS=seed=20260907 "$program" >"$logs/test-${program##*/}.log" 2>&1; status=$?
  detail=$(grep -aE '^\[doctest\] (test cases|assertions)|kernels launched' "$logs/test-${program##*/}.log" | tr -s ' \n' ' ')
  [[ $status == 0 ]] && row test "${program##*/}" passed "$detail" || { row test "${program##*/}" "FAILED ($status)" "$detail"; failed=1; }
done

python=$(sed -n 's/^LADDER_PYTORCH_PYTHON:[A-Z]*=//p' build/cuda/CMakeCache.txt)
"${python:-python3}" -B tests/pytorch/test_parity.py build/cuda/tests/pytorch/libladder_c.so >"$logs/parity.log" 2>&1; status=$?
detail=$(grep -aE '^(Ran|OK|FAILED|skipped:)|^The rungs' "$logs/parity.log" | tr '\n' ' ')
case $status in
  0) row parity pytorch_and_triton passed "$detail" ;;
  77) row parity pytorch_and_triton 'not run' "$detail" ;;
  *) row parity pytorch_and_triton "FAILED ($status)" "$detail"; failed=1 ;;
esac

# memcheck and initcheck look at the rungs' programs with buffers as CUDA allocates them, without our guards and poison:
# then they know the exact bounds, and what nobody wrote. 03 tells unwritten cells by their poison, and so do the tests.
for tool in memcheck racecheck synccheck initcheck; do
  for program in build/cuda/[0-9][0-9]_* build/cuda/tests/test_*; do
    [[ -x $program && -f $program ]] || continue
    name=${program##*/}
    bare=()
    [[ $tool =~ ^(memcheck|initcheck)$ && $name =~ ^[0-9][0-9]_ && ! $name =~ ^03 ]] && bare=(LADDER_BARE_BUFFERS=1)
    [[ $tool == initcheck && ${#bare[@]} == 0 ]] && continue
    log=$logs/$tool-$name.log
    env RC_PARAMS='seed=20260907 max_success=10' "${bare[@]}" timeout 120 \
      compute-sanitizer --tool "$tool" --error-exitcode 99 "$program" >"$log" 2>&1
    status=$?
    detail=$(grep -aE 'ERROR SUMMARY|RACECHECK SUMMARY|kernels launched' "$log" | sed 's/=* *//' | tr '\n' ' ')
    if grep -aqiE 'device not supported|not supported on this' "$log"; then row "$tool" "$name" 'not run' 'the tool refuses the device'
    elif [[ $status == 124 ]]; then row "$tool" "$name" 'over two minutes' ''
    elif grep -aqE '(ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards)' "$log" && [[ $status != 99 ]]; then row "$tool" "$name" clean "$detail"
    else row "$tool" "$name" "FAILED ($status)" "$detail"; failed=1
    fi
  done
done
exit $failed
