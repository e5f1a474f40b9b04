# What the commands of ./dev share. They are run from the repository's root and begin with: source tools/dev/common.sh
set -euo pipefail

# Clones in different folders share what was compiled.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=true

die() {  # a sentence: the command cannot go on
  echo "./dev: $*" >&2
  exit 1
}

usage_error() {
  echo "./dev ${command_name:?}: $*; see ./dev $command_name --help" >&2
  exit 2
}

show_help_if_asked() {  # print the command's help (its usage function) when the first argument asks for it
  case ${1:-} in -h | --help) usage; exit 0 ;; esac
}

jobs() {  # cores that this process may use
  nproc
}

# Debian's own Python goes with Debian's own python3-numpy and pip.
python() {
  if [[ -x /usr/bin/python3 ]]; then /usr/bin/python3 "$@"; else python3 "$@"; fi
}

# Run a step quietly: its output goes to a file, shown only when it fails.
quietly() {
  local log status=0
  log=$(mktemp)
  "$@" >"$log" 2>&1 || status=$?
  [[ $status == 0 ]] || cat "$log" >&2
  rm -f "$log"
  return $status
}

# configure PRESET [cmake options]: prepare build/PRESET. Tests, benchmarks and fuzz targets need further packages: a new
# folder begins without them, and what was switched on once stays on.
configure() {
  local preset=$1
  shift
  [[ -f build/$preset/build.ninja ]] || set -- -DQWENCH_TESTS=OFF -DQWENCH_BENCH=OFF -DQWENCH_FUZZ=OFF "$@"
  if [[ -n ${CI:-} ]]; then  # where all is compiled, and once
    set -- -DQWENCH_UNITY=ON -DQWENCH_UNITY_BATCH=24 "$@"
    # Sanitizers then name the functions of a failure and not the lines: a sixth less to compile.
    [[ $preset != asan ]] || set -- -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g0" "$@"
  fi
  quietly cmake --preset "$preset" "$@"
}

# compile PRESET [targets]: one moving line on a terminal, silence elsewhere, the errors if it fails.
compile() {
  local preset=$1
  shift
  local build=(cmake --build --preset "$preset" --parallel "$(jobs)")
  [[ $# == 0 ]] || build+=(--target "$@")
  if [[ -t 1 ]]; then
    NINJA_STATUS="building [%f/%t] " "${build[@]}"
  else
    quietly "${build[@]}"
  fi
}
