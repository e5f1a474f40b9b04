source tools/dev/common.sh
command_name=bench

usage() {
  cat <<'TEXT'
./dev bench [kernels [OPTIONS OF Google Benchmark] | tokenizer [OPTIONS] | compare MODEL... [OPTIONS] | serve [OPTIONS] |
             MODEL [OPTIONS OF qwench bench]]

  kernels     the micro-benchmarks (the default): GB/s and GFLOP/s of each operation
  serve       load on the server: 500 idle connections, 100 that send a byte a second, 64 streams, clients that vanish
  tokenizer   encoding speed beside Hugging Face tokenizers on one thread, on the same documents
  compare     this engine beside llama.cpp, OpenVINO GenAI and transformers on the same weights and threads, in turns; installs
              them into build/peers and writes docs/performance.md. --batch 1,8,50, --depth 0, --prompt 512, --generate 32,
              --rounds 3, --threads N, --peers NAME,..., --offline, --output FILE
  MODEL       prefill and decode tok/s of a checkpoint folder or a .gguf file, and its shares of the machine's limits

Examples:
  ./dev bench
  ./dev bench kernels --benchmark_filter=linear
  ./dev bench tokenizer
  ./dev bench compare model.gguf --batch 1,8,50
  ./dev bench serve --seconds 1800
  ./dev bench ~/models/Qwen3-0.6B
TEXT
}
show_help_if_asked "$@"

kind=${1:-kernels}
[[ $# == 0 ]] || shift
case $kind in
  kernels)
    bash tools/dev/deps.sh bench
    configure release -DQWENCH_BENCH=ON
    compile release
    for program in build/release/bin/*_bench; do
      [[ -x $program ]] || die "there are no micro-benchmarks in build/release/bin"
      echo "== $(basename "$program")"
      "$program" "$@"
    done
    ;;
  tokenizer)
    bash tools/dev/deps.sh bench test
    bash tools/dev/fetch-models.sh
    configure release -DQWENCH_BENCH=ON
    compile release tokenizer_bench
    venv=${QWENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/qwench}/tokenizers-venv
    [[ -x $venv/bin/python ]] || { python -m venv "$venv.new" && mv "$venv.new" "$venv"; }
    "$venv/bin/python" -c 'import tokenizers' 2>/dev/null || "$venv/bin/python" -m pip install --quiet 'tokenizers>=0.22'
    "$venv/bin/python" bench/tokenizer.py build/release/bin/tokenizer_bench "$@"
    ;;
  compare)
    [[ $# != 0 ]] || usage_error "compare needs a model"
    bash tools/dev/deps.sh bench
    bash tools/dev/build.sh release
    python bench/compare.py build/release/bin/qwench "$@"
    ;;
  serve)
    bash tools/dev/fetch-models.sh --default
    bash tools/dev/build.sh release
    ulimit -n "$(ulimit -Hn)"
    python bench/serve_load.py --binary build/release/bin/qwench "$@"
    ;;
  -*) usage_error "there is no option '$kind'" ;;
  *)
    bash tools/dev/build.sh release
    exec build/release/bin/qwench bench "$kind" "$@"
    ;;
esac
