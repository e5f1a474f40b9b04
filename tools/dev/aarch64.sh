source tools/dev/common.sh
command_name=aarch64

usage() {
  cat <<'TEXT'
./dev aarch64 [OPTIONS OF ctest]

Builds for 64-bit Arm with Debian's cross compiler and runs the kernels' tests under qemu. The libraries for Arm are
downloaded from Debian and unpacked into build/aarch64-root; nothing of them is installed.

Examples:
  ./dev aarch64
  ./dev aarch64 -R Linear
TEXT
}
show_help_if_asked "$@"

bash tools/dev/deps.sh build aarch64

root=$PWD/build/aarch64-root
packages=(libc6-dev libstdc++-12-dev libhwy-dev libsimdjson-dev nlohmann-json3-dev libpcre2-dev libutf8proc-dev libcli11-dev libfmt-dev
  libedit-dev libcurl4-openssl-dev libssl-dev libboost-dev libvulkan-dev libgtest-dev libgmock-dev)
if [[ ! -f $root/complete ]]; then
  echo "./dev aarch64: downloading the libraries for Arm" >&2
  download=$PWD/build/aarch64-download
  mkdir -p "$root" "$download"/{lists,archives}/partial
  : >"$download/status"  # apt's record of what is installed: nothing, so that each library's own needs come too
  options=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::status="$download/status"
    -o Dir::State::lists="$download/lists" -o Dir::Cache::archives="$download/archives" -o Dir::Cache::pkgcache=
    -o Dir::Cache::srcpkgcache= -o Debug::NoLocking=1)
  [[ $(id -u) != 0 ]] || options+=(-o APT::Sandbox::User=root)
  quietly apt-get "${options[@]}" update || die "apt-get could not read the lists of packages for arm64"
  quietly apt-get "${options[@]}" install --yes --download-only --no-install-recommends "${packages[@]}" ||
    die "apt-get could not download ${packages[*]} for arm64"
  for package in "$download"/archives/*.deb; do dpkg -x "$package" "$root"; done
  rm -rf "$download"
  touch "$root/complete"
fi

configure aarch64 -DQWENCH_TESTS=ON
compile aarch64 qwench kernels_tests
qemu-aarch64-static -L "$root" build/aarch64/bin/qwench --version
ctest --test-dir build/aarch64 --output-on-failure --no-tests=error --parallel "$(jobs)" -R '^kernels\.' "$@"
