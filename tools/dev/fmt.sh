source tools/dev/common.sh
command_name=fmt

usage() {
  cat <<'TEXT'
./dev fmt [FILE...]

Formats the C++ sources (all that git knows of, or the named ones) as .clang-format says.

Examples:
  ./dev fmt
  ./dev fmt src/core/utf8.cpp
TEXT
}
show_help_if_asked "$@"

bash tools/dev/deps.sh lint
if [[ $# == 0 ]]; then
  git ls-files -z '*.cpp' '*.h' | xargs -0 clang-format-14 -i
else
  clang-format-14 -i "$@"
fi
