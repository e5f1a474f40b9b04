#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <sstream>

#include "cli/command_line.h"
#include "cli/jsonl.h"
#include "cli/model_flags.h"
#include "cli/terminal.h"
#include "cli/text_source.h"
#include "core/utf8.h"
#include "engine/model_text.h"
#include "text/bpe_byte_alphabet.h"
#include "text/detokenizer.h"

namespace qwench::cli {
namespace {

struct TokenizeOptions {
  bool decode = false;
  bool jsonl = false;
  bool ids_only = false;
  bool count_only = false;
  bool skip_special = false;
  bool add_special = false;
  std::string special = "all";
};

using TokenizerPtr = std::shared_ptr<const Tokenizer>;

SpecialTokens parse_special(const std::string& text) {
  if (text == "all") return SpecialTokens::all;
  if (text == "non_special") return SpecialTokens::non_special;
  if (text == "none") return SpecialTokens::none;
  throw Error(ErrorKind::invalid_argument, fmt::format("special: found {}, expected all, non_special or none",
                                                       printable(text.substr(0, 40))));
}

/// What each id adds to the text, and what the end adds.
std::pair<std::vector<std::string>, std::string> stream(const TokenizerPtr& tokenizer,
                                                        std::span<const TokenId> ids, bool skip_special) {
  Detokenizer detokenizer(tokenizer, skip_special);
  std::vector<std::string> pieces;
  pieces.reserve(ids.size());
  for (const TokenId id : ids) pieces.push_back(detokenizer.push(id));
  return {std::move(pieces), detokenizer.finish()};
}

Json encode_line(const TokenizerPtr& tokenizer, const Json& request) {
  check_fields(request, {"text", "special"});
  const std::string special = find(request, "special") != nullptr ? string_field(request, "special") : "all";
  const std::vector<TokenId> ids = tokenizer->encode(string_field(request, "text"), parse_special(special));
  auto [pieces, tail] = stream(tokenizer, ids, false);
  if (!pieces.empty()) pieces.back() += tail;
  return {{"ids", ids}, {"pieces", std::move(pieces)}};
}

Json decode_line(const TokenizerPtr& tokenizer, const Json& request) {
  check_fields(request, {"ids", "skip_special"});
  auto [deltas, tail] =
      stream(tokenizer, ids_field(request, "ids"), bool_field(request, "skip_special", false));
  if (!tail.empty()) deltas.push_back(std::move(tail));
  std::string text;
  for (const std::string& delta : deltas) text += delta;
  return {{"text", std::move(text)}, {"deltas", std::move(deltas)}};
}

/// A token's own text, whose bytes may be no whole characters.
std::string token_bytes(const TokenizerPtr& tokenizer, TokenId id) {
  Detokenizer alone(tokenizer, false);
  std::string text = alone.push(id);
  text += alone.finish();
  if (!text.empty() && text.find("\xEF\xBF\xBD") == std::string::npos) return text;
  const std::string stored = tokenizer->token_text(id);
  return from_byte_alphabet(stored).value_or(stored);
}

/// The tokens side by side: in alternating colours on a terminal, else parted by "|". Bytes that are no whole
/// character are shown as \xNN.
std::string coloured_pieces(const TokenizerPtr& tokenizer, std::span<const TokenId> ids) {
  constexpr std::string_view kColours[] = {"\x1b[30;46m", "\x1b[30;43m", "\x1b[30;42m", "\x1b[30;45m"};
  const bool colours = shows_colours(stdout);
  std::string out;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!colours && i > 0) out += '|';
    out += styled(printable(token_bytes(tokenizer, ids[i])), kColours[i % std::size(kColours)], colours);
  }
  return out;
}

void show_tokens(const TokenizerPtr& tokenizer, const std::string& text, const TokenizeOptions& options) {
  std::vector<TokenId> ids = tokenizer->encode(text, parse_special(options.special));
  if (options.add_special) ids = tokenizer->add_special(std::move(ids));
  if (options.count_only) {
    print(fmt::format("{}\n", ids.size()));
    return;
  }
  const std::string line = fmt::format("{}\n", fmt::join(ids, " "));
  if (options.ids_only) {
    print(line);
    return;
  }
  print(coloured_pieces(tokenizer, ids) + "\n" + line);
  const auto count = [](size_t n, std::string_view what) { return plural(static_cast<int64_t>(n), what); };
  print(fmt::format("{}, {}, {}\n", count(ids.size(), "token"), count(to_utf32(text).size(), "character"),
                    count(text.size(), "byte")));
}

}  // namespace

int tokenize_command(const Arguments& arguments) {
  CommandLine line(
      "tokenize",
      "Shows the tokens of a text: pieces, ids and counts; or, with --decode, the text of token ids.",
      "  qwench tokenize ~/models/Qwen3-0.6B \"Hello, world\"\n"
      "  qwench tokenize model.gguf -f chapter.txt --count\n"
      "  qwench tokenize model.gguf --decode 9707 11 1879\n"
      "  echo '{\"text\": \"Hello\", \"special\": \"none\"}' | qwench tokenize model.gguf --jsonl\n");
  ModelFlags model;
  TextSource source;
  TokenizeOptions options;
  std::vector<std::string> more;
  model.add_to(line, ModelFlags::Default::none, false);
  source.add_to(line, "TEXT", "the text, or token ids with --decode");
  line.add_rest("IDS", more, "with --decode: further ids").value_name("");
  line.add_flag("-d,--decode", options.decode, "ids in, text out");
  line.add_option(
          "--special", options.special,
          "added tokens in the text: all are recognised (default), those not flagged special, or none")
      .value_name("all|non_special|none");
  line.add_flag("--add-special", options.add_special,
                "add the tokens that the tokenizer puts around a text (BOS, EOS)");
  line.add_flag("--skip-special", options.skip_special, "with --decode: special tokens leave no text");
  line.add_flag("--ids", options.ids_only, "print the ids alone");
  line.add_flag("--count", options.count_only, "print the number of tokens alone");
  line.add_flag("--jsonl", options.jsonl,
                "lines of {\"text\", \"special\"?} in, lines of {\"ids\", \"pieces\"} out; with --decode "
                "{\"ids\", \"skip_special\"?} in, {\"text\", \"deltas\"} out");
  if (!line.parse(arguments)) return 0;
  if (!more.empty() && !options.decode)
    throw UsageError(
        fmt::format("the text is one argument; put it in quotes (left over: {})", fmt::join(more, " ")));
  model.finish(&source, options.decode);
  if (options.jsonl && source.given())
    throw UsageError("--jsonl reads lines from standard input; give no text");
  if (options.jsonl && (options.ids_only || options.count_only || options.add_special)) {
    throw UsageError("--ids, --count and --add-special do not go with --jsonl");
  }
  if (options.decode &&
      (options.ids_only || options.count_only || options.add_special || options.special != "all")) {
    throw UsageError("--ids, --count, --special and --add-special do not go with --decode");
  }
  if (options.skip_special && (!options.decode || options.jsonl)) {
    throw UsageError("--skip-special needs --decode; in --jsonl it is the field \"skip_special\"");
  }
  if (options.ids_only && options.count_only) throw UsageError("--ids and --count exclude each other");
  parse_special(options.special);

  const ModelText text = ModelText::from_path(model.path());
  const TokenizerPtr& tokenizer = text.tokenizer();
  if (tokenizer == nullptr)
    throw Error(ErrorKind::not_found, fmt::format("{}: there is no tokenizer", model.path().string()));
  if (options.jsonl) {
    answer_lines(std::cin, [&](const Json& request) {
      return options.decode ? decode_line(tokenizer, request) : encode_line(tokenizer, request);
    });
  } else if (options.decode) {
    std::string ids = source.read(false);
    for (const std::string& id : more) ids += " " + id;
    print(tokenizer->decode(parse_ids(ids), options.skip_special) + "\n");
  } else {
    show_tokens(tokenizer, source.read(false), options);
  }
  return 0;
}

}  // namespace qwench::cli
