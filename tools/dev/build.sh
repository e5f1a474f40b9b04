source tools/dev/common.sh
command_name=build

usage() {
  cat <<'TEXT'
./dev build [release|debug|asan|tsan] [TARGET...]

Builds the program (build/PRESET/bin/qwench), or the named CMake targets. The preset is release unless named.

Examples:
  ./dev build
  ./dev build debug
  ./dev build asan text_tests
TEXT
}
show_help_if_asked "$@"

preset=release
case ${1:-} in
  release | debug | asan | tsan) preset=$1; shift ;;
  -*) usage_error "there is no option '$1'" ;;
esac
bash tools/dev/deps.sh build
[[ -f build/$preset/build.ninja ]] || configure "$preset"
if [[ $# == 0 ]]; then set -- qwench; fi
compile "$preset" "$@"
