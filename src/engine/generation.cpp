#include "engine/generation.h"

#include <algorithm>

#include "engine/logprobs.h"
#include "engine/sampling_options.h"

namespace qwench {
namespace {

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

SamplingParams params_of(const Request& request, int index, const GenerationContext& context) {
  SamplingParams params = request.sampling.over(context.defaults).resolve();
  if (params.seed) *params.seed += static_cast<uint64_t>(index);
  return params;
}

constexpr const char* kNotFinite =
    "the model's logits are not finite: the weights are damaged or of a type too small for them";

constexpr const char* kStateNotFinite =
    "the model's hidden states are not finite: the weights are damaged or of a type too small for them";

}  // namespace

std::string_view name(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::cancelled:
      return "cancelled";
    case FinishReason::deadline:
      return "deadline";
    case FinishReason::error:
      return "error";
  }
  return "";
}

Generation::Generation(const Request& request, int index, const GenerationContext& context)
    : request_(request),
      index_(index),
      context_(context),
      sampler_(params_of(request, index, context), context.vocabulary, request.ids),
      stop_matcher_(request.stop.stop),
      draft_(context.speculation) {
  check(request.stop);
  if (context.tokenizer) detokenizer_.emplace(context.tokenizer, request.skip_special_tokens);
  if (request.constraint) constraint_.emplace(*request.constraint, *context.constraints);
  sequence_.index = index;
  sequence_.ids = request.ids;
  sequence_.prompt_length = static_cast<int>(request.ids.size());
  sequence_.shares = request.cache_prompt;

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
  result_.seed = sampler_.seed();
  if (detokenizer_) result_.text.emplace();
  sequence_.whole = index == 0 && (next_prompt_logprob() >= 0 || request.embedding == Pooling::mean);
  if (request.embedding) {
    embedding_.emplace(*request.embedding, sequence_.prompt_length);
  } else if (max_tokens_ == 0 && !sequence_.whole) {
    finish(FinishReason::length);
  }
}

void Generation::begin_pass(Time now) {
  if (began_) return;
  began_ = now;
  result_.timings.queue_seconds = seconds(now - submitted_);
  result_.usage.cached_tokens = std::max(0, sequence_.cached_tokens);
}

int Generation::next_prompt_logprob() const {
  const int next = static_cast<int>(result_.prompt_logprobs.size());
  return request_.prompt_logprobs && next + 1 < sequence_.prompt_length ? next : -1;
}

void Generation::take_prompt_logits(std::span<const float> logits) {
  try {
    const TokenId id = request_.ids[result_.prompt_logprobs.size() + 1];
    result_.prompt_logprobs.push_back(
        token_logprob(logits, id, *request_.prompt_logprobs, context_.vocabulary->valid_ids));
  } catch (const Error&) {
    fail(kNotFinite);
    return;
  }
  if (next_prompt_logprob() >= 0) return;
  sequence_.whole = false;
  if (max_tokens_ == 0) finish(FinishReason::length);
}

int Generation::next_embedding_row() const { return embedding_ && !finished_ ? embedding_->next_row() : -1; }

void Generation::take_hidden_state(std::span<const float> state) {
  if (!embedding_->take(state)) return fail(kStateNotFinite);
  if (embedding_->next_row() >= 0) return;
  result_.embedding = embedding_->vector();
  result_.timings.prefill_seconds = seconds(std::chrono::steady_clock::now() - began_.value_or(submitted_));
  finish(FinishReason::stop);
}

void Generation::propose_drafts() {
  if (sequence_.pending() != 1 || sequence_.drafted > 0 || result_.ids.empty()) return;
  sequence_.drafted = draft_.propose(sequence_.ids, tokens_left() - 1);
}

void Generation::follow(const Generation& first) {
  submitted_ = first.submitted_;
  began_ = first.began_;
  result_.timings.queue_seconds = first.result_.timings.queue_seconds;
  result_.usage.cached_tokens = first.result_.usage.cached_tokens;
  result_.prompt_logprobs = first.result_.prompt_logprobs;
  sequence_.cached_tokens = first.sequence_.cached_tokens;
  if (first.failed()) fail(first.result_.error);
}

std::string Generation::take_logits(std::span<float> logits, SamplerScratch& scratch) {
  try {
    const TokenFilter filter = constraint_ ? constraint_->filter(stop_ids_) : TokenFilter{};
    if (!request_.logprobs) return append(sampler_.sample(logits, scratch, filter));
    // Log-probabilities are those of the logits as the model gave them, which sampling overwrites.
    raw_logits_.assign(logits.begin(), logits.end());
    const TokenId id = sampler_.sample(logits, scratch, filter);
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

std::optional<std::string> Generation::take_top(const TopLogits& top, SamplerScratch& scratch) {
  try {
    const std::optional<TokenId> id = sampler_.sample(top, scratch);
    if (!id) return std::nullopt;
    return append(*id);
  } catch (const Error& error) {
    fail(error.kind() == ErrorKind::numeric ? kNotFinite : error.what());
    return std::string();
  }
}

std::string Generation::append(TokenId id) {
  if (result_.ids.empty()) {
    first_token_ = std::chrono::steady_clock::now();
    result_.timings.first_token_seconds = seconds(first_token_ - submitted_);
    result_.timings.prefill_seconds = seconds(first_token_ - began_.value_or(submitted_));
  }
  sequence_.ids.push_back(id);
  result_.ids.push_back(id);
  const int tokens = static_cast<int>(result_.ids.size());
  if (std::binary_search(stop_ids_.begin(), stop_ids_.end(), id)) {
    result_.stop_id = id;
    finish(FinishReason::stop);
    return {};
  }
  if (constraint_) constraint_->accept(id);
  std::string text;
  if (detokenizer_) {
    text = stop_matcher_.push(detokenizer_->push(id), tokens >= request_.stop.min_tokens);
    if (stop_matcher_.stopped()) take_stop_string(text);
    *result_.text += text;
  }
  if (stop_matcher_.stopped() || (constraint_ && constraint_->ended())) {
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
  if (stop_matcher_.stopped()) take_stop_string(text);
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

void Generation::take_stop_string(std::string& text) {
  result_.stop_string = *stop_matcher_.matched();
  if (request_.include_stop) text += *result_.stop_string;
}

void Generation::end(FinishReason reason) { finish(reason); }

void Generation::fail(const std::string& sentence) {
  result_.error = sentence;
  finish(FinishReason::error);
}

Result Generation::take_result() { return std::move(result_); }

}  // namespace qwench
