#include "engine/generation.h"

#include <algorithm>

#include "engine/logprobs.h"
#include "engine/sampling_options.h"

namespace qwench {
namespace {

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

constexpr const char* kNotFinite =
    "the model's logits are not finite: the weights are damaged or of a type too small for them";

}  // namespace

std::string_view name(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::cancelled:
      return "cancelled";
    case FinishReason::error:
      return "error";
  }
  return "";
}

Generation::Generation(const Request& request, size_t index, const GenerationContext& context)
    : request_(request),
      context_(context),
      sampler_(request.sampling.over(context.defaults).resolve(), context.vocabulary, request.ids),
      stop_matcher_(request.stop.stop) {
  check(request.stop);
  if (context.tokenizer) detokenizer_.emplace(context.tokenizer, request.skip_special_tokens);
  sequence_.request = index;
  sequence_.ids = request.ids;
  sequence_.prompt_length = static_cast<int>(request.ids.size());

  if (!request.stop.ignore_eos) stop_ids_ = context.stop_ids;
  stop_ids_.insert(stop_ids_.end(), request.stop.stop_token_ids.begin(), request.stop.stop_token_ids.end());
  std::sort(stop_ids_.begin(), stop_ids_.end());
  if (request.stop.min_tokens > 0) sampler_.mask_until(stop_ids_, request.stop.min_tokens);

  const int room = context.context - sequence_.prompt_length;
  const int wanted =
      request.stop.max_tokens >= 0 ? request.stop.max_tokens : context.max_new_tokens.value_or(room);
  max_tokens_ = std::min(wanted, room);
  sequence_.ids.reserve(request.ids.size() + static_cast<size_t>(max_tokens_));

  result_.usage.prompt_tokens = sequence_.prompt_length;
  if (detokenizer_) result_.text.emplace();
  if (max_tokens_ == 0) finish(FinishReason::length);
}

std::string Generation::take_logits(std::span<float> logits, SamplerScratch& scratch) {
  try {
    if (!request_.logprobs) return append(sampler_.sample(logits, scratch));
    // Log-probabilities are those of the logits as the model gave them, which sampling overwrites.
    raw_logits_.assign(logits.begin(), logits.end());
    const TokenId id = sampler_.sample(logits, scratch);
    result_.logprobs.push_back(
        token_logprob(raw_logits_, id, *request_.logprobs, context_.vocabulary->valid_ids));
    return append(id);
  } catch (const Error& error) {
    fail(error.kind() == ErrorKind::numeric ? kNotFinite : error.what());
    return {};
  }
}

std::string Generation::take_argmax(TokenId id) {
  if (id < 0) {
    fail(kNotFinite);
    return {};
  }
  sampler_.accept(id);
  return append(id);
}

std::string Generation::append(TokenId id) {
  if (result_.ids.empty()) {
    first_token_ = std::chrono::steady_clock::now();
    result_.timings.prefill_seconds = seconds(first_token_ - start_);
  }
  sequence_.ids.push_back(id);
  result_.ids.push_back(id);
  const int tokens = static_cast<int>(result_.ids.size());
  if (std::binary_search(stop_ids_.begin(), stop_ids_.end(), id)) {
    finish(FinishReason::stop);
    return {};
  }
  std::string text;
  if (detokenizer_) {
    text = stop_matcher_.push(detokenizer_->push(id), tokens >= request_.stop.min_tokens);
    *result_.text += text;
  }
  if (stop_matcher_.stopped()) {
    finish(FinishReason::stop);
  } else if (tokens >= max_tokens_) {
    finish(FinishReason::length);
  }
  return text;
}

std::string Generation::finish_text() {
  if (!detokenizer_ || stop_matcher_.stopped()) return {};
  const bool may_stop = static_cast<int>(result_.ids.size()) >= request_.stop.min_tokens;
  std::string text = stop_matcher_.push(detokenizer_->finish(), may_stop);
  text += stop_matcher_.finish();
  *result_.text += text;
  if (stop_matcher_.stopped() && result_.finish_reason == FinishReason::length) {
    result_.finish_reason = FinishReason::stop;
  }
  return text;
}

void Generation::finish(FinishReason reason) {
  finished_ = true;
  result_.finish_reason = reason;
  result_.usage.completion_tokens = static_cast<int>(result_.ids.size());
  if (!result_.ids.empty()) {
    result_.timings.decode_seconds = seconds(std::chrono::steady_clock::now() - first_token_);
  }
}

void Generation::cancel() { finish(FinishReason::cancelled); }

void Generation::fail(const std::string& sentence) {
  result_.error = sentence;
  finish(FinishReason::error);
}

Result Generation::take_result() { return std::move(result_); }

}  // namespace qwench
