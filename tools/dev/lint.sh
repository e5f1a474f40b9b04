source tools/dev/common.sh
command_name=lint

usage() {
  cat <<'TEXT'
./dev lint [FILE...]

Checks formatting, the layers' order of inclusion and the files' length, then runs clang-tidy on the sources (all that
git knows of under src/, or the named ones).

Examples:
  ./dev lint
  ./dev lint src/core/utf8.cpp
TEXT
}
show_help_if_asked "$@"

bash tools/dev/deps.sh lint
failed=0

echo "clang-format"
git ls-files -z '*.cpp' '*.h' | xargs -0 clang-format-14 --dry-run --Werror || failed=1

echo "layers and file lengths"
python tools/check_layers.py || failed=1

echo "scripts"
git ls-files -z dev .ci/run '*.sh' | xargs -0 -n 1 bash -n || failed=1
git ls-files -z '*.py' | xargs -0 /usr/bin/env python3 -c 'import ast, sys
for path in sys.argv[1:]: ast.parse(open(path, encoding="utf-8").read(), path)' || failed=1

echo "clang-tidy"
# Build folders of their own: clang-tidy cannot read GCC's precompiled headers. All files go several together, which
# reads the headers once for each group.
options=(-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DQWENCH_TESTS=OFF -DQWENCH_BENCH=OFF)
if [[ $# == 0 ]]; then
  quietly cmake --preset release -B build/lint-all "${options[@]}" -DQWENCH_UNITY=ON -DQWENCH_UNITY_BATCH=48
  python tools/tidy.py build/lint-all || failed=1
else
  quietly cmake --preset release -B build/lint "${options[@]}"
  python tools/tidy.py build/lint "$@" || failed=1
fi

if [[ $failed != 0 ]]; then die "lint found something; ./dev fmt repairs the formatting"; fi
echo "lint: clean"
