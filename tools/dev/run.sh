source tools/dev/common.sh
command_name=run

usage() {
  cat <<'TEXT'
./dev run [--model PATH] [OPTIONS OF qwench run] "PROMPT"

Answers a prompt: installs what building needs, builds, fetches the default model once, and runs it.
The model is the first of these that is given or there:
  --model PATH (or -m PATH)      a checkpoint folder or a .gguf file
  QWEN3_MODEL_PATH               the same, from the environment
  ~/huggingface/Qwen3-0.6B
  SmolLM2-135M-Instruct          93 MB, fetched once into ${QWENCH_CACHE:-~/.cache/qwench}

Every other option is handed on to the program: ./dev run -- --help lists them.

Examples:
  ./dev run "Why is the sky blue?"
  ./dev run --model ~/models/Qwen3-0.6B "Name three rivers." --temp 0
TEXT
}
show_help_if_asked "$@"

model=""
rest=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --model | -m)
      [[ $# -gt 1 ]] || usage_error "$1 needs a path"
      model=$2
      shift 2
      ;;
    --model=*) model=${1#--model=}; shift ;;
    --) shift; rest+=("$@"); break ;;
    *) rest+=("$1"); shift ;;
  esac
done

bash tools/dev/build.sh release
if [[ -z $model ]]; then
  default_cache=${QWENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/qwench}
  if [[ -n ${QWEN3_MODEL_PATH:-} ]]; then
    model=$QWEN3_MODEL_PATH
  elif [[ -d $HOME/huggingface/Qwen3-0.6B ]]; then
    model=$HOME/huggingface/Qwen3-0.6B
  else
    bash tools/dev/fetch-models.sh --default
    model=$default_cache/models/smollm2-135m-instruct-q4_1.gguf
  fi
fi
exec build/release/bin/qwench run --model "$model" "${rest[@]}"
