#!/bin/bash
# Runs tests under several arithmetics, with one thread and two, and prints which failed under which:
#   scripts/arithmetics.sh PYTHON [arguments of pytest; default: tests/engine]
# A core type, a capability or an instruction set changes the order in which sums are taken, and so
# their last bits. These names are of x86: elsewhere the machine's own arithmetic runs alone.
python=$1; shift
tests=("$@"); [ $# -gt 0 ] || tests=(tests/engine)

names=("own arithmetic")
settings=("")
case $(uname -m) in
x86_64 | amd64)
  names+=("Haswell, AVX2" "Nehalem, SSE4.2")
  settings+=("OPENBLAS_CORETYPE=Haswell ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2"
    "OPENBLAS_CORETYPE=Nehalem ATEN_CPU_CAPABILITY=default MKL_ENABLE_INSTRUCTIONS=SSE4_2") ;;
*) echo "skipped: Haswell, AVX2 and Nehalem, SSE4.2 are of x86; this is $(uname -m)" ;;
esac

unset OPENBLAS_CORETYPE ATEN_CPU_CAPABILITY MKL_ENABLE_INSTRUCTIONS
# A thread that waits by spinning takes the processor from the one it waits for wherever there are
# fewer processors than threads: a training of 300 steps took 4.1 s so, and 0.2 s without.
export OMP_WAIT_POLICY=PASSIVE
said=$(mktemp)
trap 'rm -f "$said"' EXIT
failed=0
table=()
for i in "${!names[@]}"; do
  # shellcheck disable=SC2086 # words of one setting are variables of their own
  if [ "$i" -gt 0 ] && grep -q '^flags' /proc/cpuinfo 2>/dev/null; then
    flag=sse4_2; [ "$i" -eq 1 ] && flag=avx2
    grep -qm1 "\b$flag\b" /proc/cpuinfo || { echo "skipped: ${names[i]}: no $flag here"; continue; }
  fi
  for threads in 1 2; do
    echo "== ${names[i]}, threads: $threads"
    # shellcheck disable=SC2086
    env ${settings[i]} OMP_NUM_THREADS=$threads "$python" -m pytest -q -n auto --dist worksteal \
      -m "not slow and not browser" "${tests[@]}" | tee "$said"
    status=${PIPESTATUS[0]}
    [ "$status" -eq 0 ] || failed=1
    table+=("$(printf '%-16s %s thread(s): %s' "${names[i]}" "$threads" "$(tail -n 1 "$said")")")
    while read -r line; do table+=("    $line"); done < <(grep -E '^(FAILED|ERROR) ' "$said")
  done
done
printf '\n'
printf '%s\n' "${table[@]}"
exit $failed
