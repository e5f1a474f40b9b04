#include "cli/hub_model.h"

#include <fmt/format.h>

#include <csignal>
#include <mutex>

#include "checkpoint/checkpoint.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "cli/transfer_line.h"
#include "engine/model_plan.h"
#include "qwench/error.h"

namespace qwench::cli {
namespace {

namespace fs = std::filesystem;

// Whether the model will fit: the memory plan's answer where the headers are known, else by the weights
// alone.
std::string memory(const hub::PullPlan& plan) {
  if (!plan.preview.empty()) {
    try {
      const auto checkpoint = Checkpoint::open(plan.preview);
      const ModelPlan model = plan_model(*checkpoint, {}, plan.memory_free);
      return fmt::format("it takes {} of the {} available at {} positions", amount(model.total()),
                         amount(plan.memory_free), model.context);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::out_of_memory) return fmt::format("does NOT fit: {}", error.what());
    }
  }
  return fmt::format("weights of {} {} the {} available", amount(plan.weight_bytes),
                     plan.weight_bytes <= plan.memory_free ? "fit in" : "do NOT fit in",
                     amount(plan.memory_free));
}

/// What a pull says on stderr. Its threads may all speak.
class Display {
 public:
  explicit Display(std::string model, bool quiet)
      : model_(std::move(model)), quiet_(quiet), live_(!quiet && is_terminal(stderr)) {}
  ~Display() { clear(); }
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;

  void plan(const hub::PullPlan& plan) {
    if (quiet_) return;
    std::string text = fmt::format("{} at {}: {} file{}, {}", model_, plan.commit.substr(0, 12), plan.files,
                                   plan.files == 1 ? "" : "s", amount(plan.bytes));
    text += plan.missing == 0
                ? ", all here"
                : fmt::format(", {} to fetch; disk: {} free", amount(plan.missing), amount(plan.disk_free));
    if (plan.weight_bytes > 0) text += "; memory: " + memory(plan);
    say(text);
  }

  void progress(const hub::PullProgress& progress) {
    const std::lock_guard guard(mutex_);
    if (!live_ || steady_seconds() - shown_at_ < 0.2) return;
    shown_at_ = steady_seconds();
    shown_ = true;
    const std::string line = line_.text(progress.received, progress.bytes, shown_at_);
    std::fputs(fmt::format("\r{}\x1b[K", line).c_str(), stderr);
    std::fflush(stderr);
  }

  void say(const std::string& text) {
    if (quiet_) return;
    const std::lock_guard guard(mutex_);
    clear();
    print_error(text);
  }

 private:
  void clear() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
    shown_ = false;
  }

  std::string model_;
  bool quiet_;
  bool live_;
  bool shown_ = false;
  double shown_at_ = 0;
  std::mutex mutex_;
  TransferLine line_;
};

bool looks_like_a_file(const std::string& name) {
  return name.ends_with(".gguf") || name.ends_with(".safetensors") || name.ends_with(".json");
}

}  // namespace

hub::PullResult pull_model(const hub::ModelName& model, hub::Source source, const hub::Filter& filter,
                           bool quiet) {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is told by write, like a full disk
  const Interrupt interrupt(Interrupt::Second::ends_program);
  Display display(model.text(), quiet);
  hub::PullOptions options;
  options.source = source;
  options.filter = filter;
  options.stop = interrupt.token();
  options.on_plan = [&](const hub::PullPlan& plan) { display.plan(plan); };
  options.on_progress = [&](const hub::PullProgress& progress) { display.progress(progress); };
  options.on_notice = [&](const std::string& text) { display.say(text); };
  return hub::pull(hub::read_environment(), model, options);
}

fs::path find_model(const fs::path& named) {
  std::error_code error;
  if (fs::exists(named, error)) return named;
  const std::string text = named.string();
  const auto model = hub::parse_model_name(text);
  const hub::Environment environment = hub::read_environment();
  if (model) {
    if (const auto path = hub::Cache(environment.cache).find(*model)) return *path;
  }
  if (!model || looks_like_a_file(text)) {
    throw Error(
        ErrorKind::not_found,
        fmt::format(
            "there is no model at {}; name a checkpoint folder, a .gguf file, or a model of a hub such "
            "as Qwen/Qwen3-0.6B",
            text));
  }
  if (is_terminal(stdin) && is_terminal(stderr) && !environment.offline &&
      agrees(fmt::format("{} is not here. Pull it from {}?", text, environment.endpoint)))
    return pull_model(*model, hub::Source::hugging_face, {}, false).path;
  throw Error(
      ErrorKind::not_found,
      fmt::format("there is no folder {}, and no model of this name in {}; fetch it by: qwench pull {}", text,
                  environment.cache.string(), text));
}

}  // namespace qwench::cli
