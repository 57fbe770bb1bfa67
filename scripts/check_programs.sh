# Whole test programs of another system, for scripts that source this.

# check_programs WHO LAUNCHER BUILT ENDING PROGRAM...: runs BUILT/tests/PROGRAM_testsENDING of each with LAUNCHER, from the folder
# where its user is, and prints a line for each. What a program says lies beside it. 1 if anything failed.
check_programs() {
  local who=$1 launcher=$2 built=$3 ending=$4 program begun status log failed=0
  shift 4
  export VITRINE_REQUIRE_DEVICE=${VITRINE_REQUIRE_DEVICE:-1}
  for program in "$@"; do
    begun=$(date +%s) status=0 log=$built/tests/$program.log
    "$launcher" "$built/tests/${program}_tests$ending" >"$log" 2>&1 </dev/null || status=$?
    printf '%s: %s, %d s\n' "$program" "$(tr -d '\r' <"$log" | grep -E '^(test cases:|All tests passed)' | tail -n 1)" $(($(date +%s) - begun))
    # 4: every test was skipped.
    if [ $status != 0 ] && [ $status != 4 ]; then
      failed=1
      echo "$who: what failed is in $log" >&2
    fi
  done
  return $failed
}
