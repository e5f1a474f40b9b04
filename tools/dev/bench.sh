source tools/dev/common.sh
command_name=bench

usage() {
  cat <<'TEXT'
./dev bench [kernels [OPTIONS OF Google Benchmark] | tokenizer [OPTIONS] | MODEL [OPTIONS OF qwench bench]]

  kernels     the micro-benchmarks (the default): GB/s and GFLOP/s of each operation
  tokenizer   encoding speed beside Hugging Face tokenizers on one thread, on the same documents
  MODEL       prefill and decode tok/s of a checkpoint folder or a .gguf file, and its share of the memory bandwidth

Examples:
  ./dev bench
  ./dev bench kernels --benchmark_filter=linear
  ./dev bench tokenizer
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
    bash tools/dev/build.sh release
    bash tools/dev/fetch-models.sh
    python bench/tokenizer.py "$@"
    ;;
  -*) usage_error "there is no option '$kind'" ;;
  *)
    bash tools/dev/build.sh release
    exec build/release/bin/qwench bench "$kind" "$@"
    ;;
esac
