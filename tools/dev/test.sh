source tools/dev/common.sh
command_name=test

usage() {
  cat <<'TEXT'
./dev test [--real] [--asan|--tsan|--debug] [OPTIONS OF ctest]

Builds and runs all tests; the counts of the golden suites and ctest's summary come last.

  --real    also the tests that run two real models to their published answers (some minutes, 3 GB of disk)
  --asan    with the address and undefined-behaviour sanitizers (Clang)
  --tsan    with the thread sanitizer
  --debug   with the debug build

Examples:
  ./dev test
  ./dev test --real
  ./dev test --asan -R text
TEXT
}
show_help_if_asked "$@"

preset=release
real=false
rest=()
for argument in "$@"; do
  case $argument in
    --real) real=true ;;
    --asan | --tsan | --debug) preset=${argument#--} ;;
    *) rest+=("$argument") ;;
  esac
done

groups=(test)
[[ $preset != asan ]] || groups+=(asan)
bash tools/dev/deps.sh "${groups[@]}"
bash tools/dev/fetch-models.sh
bash tools/dev/clients.sh
options=(-DQWENCH_TESTS=ON)
[[ $preset != asan ]] || options+=(-DQWENCH_FUZZ=ON)
configure "$preset" "${options[@]}"
compile "$preset"

chosen=(--test-dir "build/$preset" --output-on-failure --no-tests=error --parallel "$(($(jobs) + 1))")  # some tests wait
$real || chosen+=(--label-exclude real)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
ctest "${chosen[@]}" "${rest[@]}" 2>&1 | tee "$log" || status=$?

# Every golden suite prints one line with its counts: "tokenizer goldens: 563 of 563 rows".
counts=$(grep -hE '(goldens|files|suites?): [0-9]+ of [0-9]+' "build/$preset/Testing/Temporary/LastTest.log" | sort -u || true)
[[ -z $counts ]] || printf '\nGoldens:\n%s\n\n' "$counts"
grep -E 'tests passed|tests failed|No tests were found' "$log" || true
exit $status
