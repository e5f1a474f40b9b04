source tools/dev/common.sh
command_name=fuzz

usage() {
  cat <<'TEXT'
./dev fuzz [--seconds N] [--jobs N] [NAME...]

Runs the fuzzers (libFuzzer, address and undefined-behaviour sanitizers, Clang) for N seconds each, 60 when absent: all of
them, or the named ones. New inputs go to build/fuzz/NAME; an input that fails is named there and its path printed.

Examples:
  ./dev fuzz
  ./dev fuzz --seconds 600 gguf jinja
TEXT
}
show_help_if_asked "$@"

seconds=60
at_once=$(jobs)
names=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --seconds | --jobs)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || usage_error "$1 needs a whole number from 1"
      if [[ $1 == --seconds ]]; then seconds=$2; else at_once=$2; fi
      shift 2
      ;;
    -*) usage_error "there is no option '$1'" ;;
    *) names+=("$1"); shift ;;
  esac
done
if [[ ${#names[@]} == 0 ]]; then
  for source in fuzz/*_fuzz.cpp; do names+=("$(basename "$source" _fuzz.cpp)"); done
fi

bash tools/dev/deps.sh build asan
configure asan -DQWENCH_FUZZ=ON
targets=()
for name in "${names[@]}"; do
  [[ -f fuzz/${name}_fuzz.cpp ]] || usage_error "there is no fuzzer '$name'"
  targets+=("${name}_fuzz")
done
compile asan "${targets[@]}"

# An input may take five seconds of a core of its own.
export SLOWEST=$((5 * ((at_once + $(jobs) - 1) / $(jobs))))

run_one() {  # NAME SECONDS
  local folder=build/fuzz/$1 log=build/fuzz/$1.log
  mkdir -p "$folder"
  if "build/asan/bin/$1_fuzz" "$folder" "fuzz/corpus/$1" -max_total_time="$2" -timeout="$SLOWEST" -rss_limit_mb=2048 \
    -artifact_prefix="build/fuzz/$1-" -print_final_stats=1 >"$log" 2>&1; then
    echo "$1: $(grep -o 'number_of_executed_units: .*' "$log" | grep -o '[0-9]*') inputs in $2 s, nothing found"
  else
    tail -n 40 "$log"
    echo "$1: FAILED, see build/fuzz/$1.log"
    return 1
  fi
}
export -f run_one
printf '%s\n' "${names[@]}" | xargs -P "$at_once" -I NAME bash -c 'run_one NAME "$0"' "$seconds"
