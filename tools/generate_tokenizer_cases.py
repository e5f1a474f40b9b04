#!/usr/bin/env python3
"""Write tests/data/tokenizer/cases.json: small tokenizer.json files, one for each thing a file can ask for, and
what Hugging Face `tokenizers` makes of the same texts with each.

  generate_tokenizer_cases.py OUT_FILE [--texts N] [--seed N]     (needs: pip install tokenizers==0.23.3)

The models are trained here, on the long documents beside OUT_FILE (long_en.txt, long_zh.txt, long_code.txt).
"""
import argparse
import json
import os
import random
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

QWEN2 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = QWEN2.replace(r"\p{N}|", r"\p{N}{1,3}|", 1)
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CL100K = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
          r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|"
          r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK3 = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"""
             r""" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""")
KIMI = (r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
PATTERNS = {
    "gpt2": GPT2, "qwen2": QWEN2, "llama3": LLAMA3, "gpt4o": GPT4O, "cl100k": CL100K, "tekken": TEKKEN,
    "deepseek3": DEEPSEEK3, "kimi": KIMI,
    "deepseek_coder": r"\s?\p{L}+", "deepseek_punctuation": r"\s?\p{P}+", "deepseek_cjk": r"[一-龥ࠀ-一가-퟿]+",
    "bloom": r" ?[^(\s|[.,!?…。，、।۔،])]+", "falcon": r"[0-9][0-9][0-9]", "end_spaces": r"\s+$", "line_start": r"^\s*",
    "boundary": r"\b\w", "not_boundary": r"\B\w", "word": r"\w+|[^\w\s]+", "digits": r"\d+", "hex": r"\h+",
    "posix": r"[[:alpha:]]+|[[:punct:]]+|[[:^space:]&&[^a-z]]", "posix_more": r"[[:upper:][:digit:]]+|[[:lower:]]|[[:blank:]]+",
    "intersection": r"[a-z&&[^aeiou]]+", "nested": r"[a-c[x-z][0-9&&[^5]]]+", "lazy": r"a.*?b|\S+?(?=e)",
    "possessive": r"a*+b|\s++", "interval": r"\p{N}{2,3}?|[a-z]{3}|l{,2}o|e{2,}", "atomic": r"(?>\s+)\S|\p{Lu}",
    "look_behind": r"(?<=[a-z])[A-Z]|(?<![0-9])[0-9]", "case_fold": r"(?i:the|stra|ΣΑΣ|[k-s]+)", "case_scoped": r"a(?i)b|c",
    "case_class": r"(?i)[^a-m\s]+", "dot": r".", "dot_all": r"(?m).{3}", "line_break": r"\R+", "anchors": r"\A.|.\Z|.\z|^#|;$",
    "back_reference": r"(\p{L})\1+|(['\"]).*?\2", "named": r"(?<q>[aeiou])\k<q>", "not_properties": r"\P{L}+|\p{^Lu}",
    "scripts": r"\p{Hiragana}+|\p{Katakana}+|\p{Hangul}+|\p{Cyrillic}+|\p{Arabic}+|\p{Greek}+|\p{Thai}|\p{Latin}+|\p{Common}",
    "categories": r"\p{Lt}|\p{Lm}+|\p{Mn}+|\p{Mc}|\p{Nd}+|\p{Nl}|\p{No}|\p{Pc}|\p{Pd}|\p{Ps}|\p{Pe}|\p{Pi}|\p{Pf}|\p{Po}+|\p{Sm}|\p{Sc}|\p{Sk}|\p{So}|\p{Zs}+|\p{Cc}|\p{Cf}|\p{Co}",
    "properties": r"\p{Alphabetic}+|\p{White_Space}+|\p{Emoji}|\p{Uppercase_Letter}", "escapes": r"\x41|\x{4e2d}|é|\t\n?|[\n\r]+|\.",
    "free_spacing": r"(?x) [a-z]+ # letters" "\n" r"| \d \d ", "comment": r"a(?#two)b", "empty": "", "empty_or": r"x*", "groups": r"((a|e)(n|r)|th(?:e|is))+",
}
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]

TRICKY = [" ", " ", "  ", "\n", "\n\n", "\r", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "\u0085", "'", "'s", "'S", "'ll", "'Re", "'t",
          "s", "l", "a", "Z", "1", "42", "\u0663", "\u00bd", "e\u0301", "\u00e9", "\u0301", "\u0323", "\u0345", ".", "/", "_", "-", "!",
          "\u4e2d", "\u6587", "\u3042", "\u304b\u3099", "\ud55c", "\u1112\u1161\u11ab", "\u0e01", "\u0e34", "\U0001f600", "\u200d", "<", "|",
          ">", "\"", "\u2019", "\ufffd", "\u0000", "\u017f", "\u212a", "\u00df", "\u1e9e", "\u0130", "\u01c5", "\u03c3", "\u03c2", "\u03a3",
          "\ufb01", "\uff21", "\u2460", "\u2581", "\u0958", "\u0344", "\u0f73", "\u1e69", "\u2f800", "\U0001d15e", "\u0898", "\u1dfa",
          "\U00011938", "\U00016d63\U00016d67", "$", "+", "`", "^", "~", "\u2160", "\u24d0", "\u203f", "\u00aa", "\u2212", "\u20ac",
          "<s>", "</s>", "<think>", "<|im_end|>", "[T]", "<unk>", "the", "aa", "ee", "this", "ab", "\u00c5", "\u212b", "\u05d0\u05bc"]
BLOCKS = [(0x20, 0x7e), (0x20, 0x7e), (0xa0, 0xff), (0x100, 0x24f), (0x300, 0x36f), (0x370, 0x3ff), (0x400, 0x4ff), (0x5b0, 0x5ea), (0x600, 0x6ff),
          (0x900, 0x97f), (0xb80, 0xbff), (0xe01, 0xe5b), (0xf00, 0xfbc), (0x1100, 0x11ff), (0x1d00, 0x1dff), (0x1e00, 0x1fff), (0x2000, 0x206f),
          (0x2070, 0x218b), (0x2190, 0x23ff), (0x2460, 0x26ff), (0x2c00, 0x2dff), (0x3000, 0x30ff), (0x3200, 0x33ff), (0x4e00, 0x9fa5),
          (0xa640, 0xa7ff), (0xab30, 0xabff), (0xac00, 0xd7a3), (0xf900, 0xfaff), (0xfb00, 0xfdff), (0xfe00, 0xfeff), (0xff00, 0xffef),
          (0x10400, 0x104ff), (0x10780, 0x107ff), (0x10d00, 0x10dff), (0x11000, 0x119ff), (0x16d40, 0x16d7f), (0x1d100, 0x1d1ff),
          (0x1d400, 0x1d7ff), (0x1f300, 0x1f6ff), (0x20000, 0x2a6df), (0x2f800, 0x2fa1f), (0x31350, 0x32000), (0x0, 0x1f)]
FIXED = ["", " ", "a", "Hello, world! It's 12345 o'clock.", "  two  spaces \n\n  and\ttabs \r\n end  ", "HeLLo WORLD camelCase snake_case x1y22z333",
         "na\u00efve caf\u00e9 e\u0301 \u00c5\u212b \ufb01 \u2460", "\u4f60\u597d\uff0c\u4e16\u754c\uff01 \u3053\u3093\u306b\u3061\u306f \ud55c\uad6d\uc5b4",
         "<s>Hi</s> <s> there </s>\n<think>x</think>", "a<think>b <think> c<|im_end|><|im_end|> d  <|im_end|>  e", "the [T]the[T] other T[T]T 9[T] _[T]_ \u00e9[T]",
         "  <s>  <|im_end|>  ", "\u2581a \u2581\u2581b\u2581", "I'm you'RE he'\u017f 'tis", "don\u2019t \u2014 \u201cquote\u201d\u2026", "((1+2)*3-4)/5=%$#@!", "\U0001f600\U0001f468\u200d\U0001f469 \u2764\ufe0f",
         "aaaa bbb ee 'q' \"zz\" abab", "the straSSe THE stra\u00dfe \u03a3\u0391\u03a3 \u03c3\u03b1\u03c2 kK\u212a", "x" * 70 + " " * 70 + "\n" * 3]


def texts(count, seed):
    rng = random.Random(seed)
    out = list(FIXED)
    while len(out) < count:
        kind = rng.randrange(3)
        n = rng.randint(1, 40)
        if kind == 0:
            s = "".join(rng.choice(TRICKY) for _ in range(n))
        else:
            blocks = [rng.choice(BLOCKS) for _ in range(3)] + [(0x20, 0x7e)] if kind == 1 else BLOCKS
            s = "".join(chr(rng.randint(*rng.choice(blocks))) if rng.random() < .8 else rng.choice(TRICKY) for _ in range(n))
        out.append("".join(c for c in s if not 0xd800 <= ord(c) <= 0xdfff))
    return out[:max(count, 1)]


def model_json(tokenizer, **changes):
    model = json.loads(tokenizer.to_str())["model"]
    model.update(changes)
    return model


def train(documents, trainer, model, pre=None):
    t = Tokenizer(model)
    if pre is not None:
        t.pre_tokenizer = pre
    t.train_from_iterator(documents, trainer)
    return t


def with_tokens(model, *tokens):
    model = json.loads(json.dumps(model))
    for t in tokens:
        if t not in model["vocab"]:
            model["vocab"][t] = 1 + max(model["vocab"].values())
    return model


def make_models(folder):
    documents = []
    for name in ("long_en", "long_zh", "long_code"):
        with open(os.path.join(folder, name + ".txt"), encoding="utf-8", newline="") as f:
            documents.append(f.read()[:6000])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    byte = train(documents, trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, show_progress=False), models.BPE(),
                 pre_tokenizers.ByteLevel(add_prefix_space=False))
    out = {"bytes": model_json(byte)}
    lack = model_json(byte)
    gone = {"\u0101", "\u0105", "\u010a", "\u0122"}   # bytes 1, 5, 10 and one of the high ones
    lack["vocab"] = {t: i for i, (t, _) in enumerate((t, i) for t, i in lack["vocab"].items() if not set(t) & gone)}
    lack["merges"] = [m for m in lack["merges"] if not (set(m[0]) | set(m[1])) & gone]
    out["bytes_lacking"] = lack
    chars = train([d[:2500] for d in documents], trainers.BpeTrainer(vocab_size=600, limit_alphabet=330, special_tokens=["<unk>"], show_progress=False),
                  models.BPE(unk_token="<unk>"), pre_tokenizers.Whitespace())
    out["chars"] = model_json(chars)
    marked = [d[:2500].replace(" ", "\u2581") for d in documents]
    llama = train(marked, trainers.BpeTrainer(vocab_size=700, limit_alphabet=300, special_tokens=["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)],
                                              show_progress=False), models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True),
                  pre_tokenizers.Split("\u2581", "merged_with_next"))
    out["llama"] = model_json(llama)
    some = with_tokens(out["chars"])
    for b in (0xc3, 0xa9, 0xe4, 0xb8, 0xad, 0x0a, 0x20):   # only a few bytes have a token
        some = with_tokens(some, "<0x%02X>" % b)
    out["some_bytes"] = some
    affix = train([d[:2500] for d in documents], trainers.BpeTrainer(vocab_size=700, limit_alphabet=200, special_tokens=["<unk>"], show_progress=False,
                                                                     continuing_subword_prefix="##", end_of_word_suffix="</w>"),
                  models.BPE(unk_token="<unk>", continuing_subword_prefix="##", end_of_word_suffix="</w>"), pre_tokenizers.Whitespace())
    out["affixes"] = model_json(affix)
    suffix = train([d[:2500] for d in documents], trainers.BpeTrainer(vocab_size=500, limit_alphabet=200, special_tokens=["<unk>"], show_progress=False,
                                                                      end_of_word_suffix="</w>"),
                   models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"), pre_tokenizers.Whitespace())
    out["suffix"] = model_json(suffix)
    return out


def byte_level(prefix=False, regex=False):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def normalizers(*steps):
    return {"type": "Sequence", "normalizers": list(steps)}


def replace(pattern, content, kind="String"):
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


def metaspace(scheme="always", cut=True, mark="\u2581"):
    return {"type": "Metaspace", "replacement": mark, "prepend_scheme": scheme, "split": cut}


def token(content, **flags):
    return dict({"content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}, **flags)


PLAIN_ADDED = [token("<s>"), token("</s>"), token("<think>", special=False), token("<|im_end|>")]
LLAMA_NORMALIZER = normalizers({"type": "Prepend", "prepend": "\u2581"}, replace(" ", "\u2581"))
LLAMA_DECODER = {"type": "Sequence", "decoders": [replace("\u2581", " "), {"type": "ByteFallback"}, {"type": "Fuse"},
                                                  {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}


def template(single, **ids):
    return {"type": "TemplateProcessing", "single": single, "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {t: {"id": t, "ids": i, "tokens": [t] * len(i)} for t, i in ids.items()}}


def cases():
    """(name, parts of the tokenizer.json); what is left out has a byte-level default."""
    shown = byte_level(prefix=True)   # its spaces show where the pieces begin
    out = []
    def add(name, **parts):
        out.append((name, parts))
    for form in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt"):
        add("normalizer_" + form, normalizer={"type": form})
    add("normalizer_ByteLevel", normalizer={"type": "ByteLevel"}, pre_tokenizer=None)
    for left in (False, True):
        for right in (False, True):
            add("normalizer_Strip_%d%d" % (left, right), normalizer={"type": "Strip", "strip_left": left, "strip_right": right})
    add("normalizer_Prepend", normalizer={"type": "Prepend", "prepend": ">>"})
    add("normalizer_Replace", normalizer=replace(" ", "__"))
    add("normalizer_Replace_gone", normalizer=replace("a", ""))
    add("normalizer_Replace_long", normalizer=replace("the", "THE"))
    add("normalizer_Replace_regex", normalizer=replace(r"\s+", " ", "Regex"))
    add("normalizer_Replace_group", normalizer=replace(r"(\p{L})(\d)", r"$2$1\1", "Regex"))
    add("normalizer_Replace_empty", normalizer=replace(r"x*", "-", "Regex"))
    add("normalizer_Sequence", normalizer=normalizers({"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}, {"type": "NFC"}))
    add("normalizer_Sequence_empty", normalizer=normalizers())
    add("normalizer_nested", normalizer=normalizers(normalizers({"type": "NFC"}, replace("e", "E")), {"type": "Strip", "strip_left": True, "strip_right": True}))

    for name, pattern in PATTERNS.items():
        add("pattern_" + name, pre_tokenizer=sequence(split(pattern), shown))
    for behavior in BEHAVIORS:
        for invert in (False, True):
            add("split_%s_%d" % (behavior, invert), pre_tokenizer=sequence(split(r"\s+|[aeiou]", behavior, invert), shown))
            add("split_single_%s_%d" % (behavior, invert), pre_tokenizer=sequence(split(r"\s", behavior, invert), shown))
        add("split_string_" + behavior, pre_tokenizer=sequence(split("e", behavior, kind="String"), shown))
        add("punctuation_" + behavior, pre_tokenizer=sequence({"type": "Punctuation", "behavior": behavior}, shown))
        add("split_qwen_" + behavior, pre_tokenizer=sequence(split(QWEN2, behavior), shown))
    add("split_string_long", pre_tokenizer=sequence(split("the", kind="String"), shown))
    add("split_string_special", pre_tokenizer=sequence(split(".", kind="String"), shown))
    for individual in (False, True):
        add("digits_%d" % individual, pre_tokenizer=sequence({"type": "Digits", "individual_digits": individual}, shown))
    add("punctuation", pre_tokenizer=sequence({"type": "Punctuation"}, shown))
    add("whitespace", pre_tokenizer=sequence({"type": "Whitespace"}, shown))
    add("whitespace_split", pre_tokenizer=sequence({"type": "WhitespaceSplit"}, shown))
    add("bert", pre_tokenizer=sequence({"type": "BertPreTokenizer"}, shown))
    add("delimiter", pre_tokenizer=sequence({"type": "CharDelimiterSplit", "delimiter": "e"}, shown))
    add("fixed_length", pre_tokenizer=sequence({"type": "FixedLength", "length": 5}, shown))
    for scheme in ("always", "first", "never"):
        for cut in (False, True):
            add("metaspace_%s_%d" % (scheme, cut), pre_tokenizer=sequence(metaspace(scheme, cut), shown), decoder=metaspace(scheme, cut), added_tokens=PLAIN_ADDED)
    add("metaspace_after_split", pre_tokenizer=sequence({"type": "WhitespaceSplit"}, metaspace("first"), shown))
    add("metaspace_strip", normalizer={"type": "Strip", "strip_left": True, "strip_right": True}, pre_tokenizer=sequence(metaspace("first"), shown))
    add("metaspace_legacy", pre_tokenizer={"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": True}, model="llama",
        decoder={"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": True})
    for prefix in (False, True):
        for regex in (False, True):
            add("byte_level_%d%d" % (prefix, regex), pre_tokenizer=byte_level(prefix, regex), added_tokens=PLAIN_ADDED)
    add("byte_level_then_split", pre_tokenizer=sequence(byte_level(False, True), split(r"[a-m]+"), {"type": "Digits", "individual_digits": True}))
    add("sequence_empty", pre_tokenizer=sequence())
    add("smollm", pre_tokenizer=sequence({"type": "Digits", "individual_digits": True}, byte_level(False, True)), model="bytes_lacking")
    add("deepseek_llm", pre_tokenizer=sequence(split(r"[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split("[一-龥ࠀ-一가-퟿]+"),
                                               {"type": "Digits", "individual_digits": True}, shown))
    add("deepseek_v3", pre_tokenizer=sequence(split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(DEEPSEEK3), shown))

    add("model_ignore_merges", model_fields={"ignore_merges": True}, pre_tokenizer=byte_level(False, True))
    add("model_lacking_bytes", model="bytes_lacking", pre_tokenizer=byte_level(False, True))
    add("model_lacking_bytes_unk", model="bytes_lacking", model_fields={"unk_token": "a"}, pre_tokenizer=byte_level(False, True))
    for fuse in (False, True):
        add("model_unk_fuse_%d" % fuse, model="chars", model_fields={"fuse_unk": fuse}, pre_tokenizer={"type": "WhitespaceSplit"})
        add("model_some_bytes_fuse_%d" % fuse, model="some_bytes", model_fields={"fuse_unk": fuse, "byte_fallback": True}, pre_tokenizer=None,
            decoder={"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]})
    add("model_no_unk", model="chars", model_fields={"unk_token": None}, pre_tokenizer={"type": "Whitespace"}, decoder=None)
    add("model_affixes", model="affixes", pre_tokenizer={"type": "Whitespace"}, decoder={"type": "BPEDecoder", "suffix": "</w>"})
    add("model_suffix", model="suffix", pre_tokenizer={"type": "Whitespace"}, decoder={"type": "BPEDecoder", "suffix": "</w>"})
    add("llama", model="llama", normalizer=LLAMA_NORMALIZER, pre_tokenizer=None, decoder=LLAMA_DECODER, added_tokens=PLAIN_ADDED)
    add("llama_normalized_tokens", model="llama", normalizer=LLAMA_NORMALIZER, pre_tokenizer=None, decoder=LLAMA_DECODER,
        added_tokens=[token("<s>", normalized=True), token("</s>", normalized=True, special=False), token("<think>", special=False)])
    add("llama_metaspace", model="llama", pre_tokenizer=metaspace("first", False), decoder={"type": "Sequence", "decoders": [
        {"type": "ByteFallback"}, metaspace("first", False)]}, added_tokens=PLAIN_ADDED)
    add("llama_no_fallback_flag", model="llama", model_fields={"byte_fallback": False}, normalizer=LLAMA_NORMALIZER, pre_tokenizer=None, decoder=LLAMA_DECODER)

    for flag in ("single_word", "lstrip", "rstrip"):
        for normalized in (False, True):
            add("added_%s_%d" % (flag, normalized), added_tokens=[token(t, normalized=normalized, **{flag: True}) for t in
                                                                  ("<s>", "the", "[T]", "<|im_end|>", "<think>")], normalizer={"type": "Lowercase"})
    add("added_both_strips", added_tokens=[token("<|im_end|>", lstrip=True, rstrip=True), token("<s>", lstrip=True, rstrip=True), token(" <think>", special=False)])
    add("added_overlapping", added_tokens=[token("<s>"), token("<s>Hi"), token("s>"), token(" "), token("  ", special=False), token("aa", special=False), token("a")])
    add("added_normalized_nfc", normalizer={"type": "NFC"}, added_tokens=[token("\u00e9", normalized=True, special=False), token("e\u0301", special=False), token("\u212b", normalized=True)])
    add("added_normalized_lower", normalizer={"type": "Lowercase"}, added_tokens=[token("THE", normalized=True, special=False), token("<THINK>", normalized=True), token("<Think>")])
    add("added_letters", added_tokens=[token("\u00e9", special=False), token("\u0120the", special=False), token("\u4e2d", special=True)])

    add("template_bos", added_tokens=PLAIN_ADDED, post_processor=template(
        [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], **{"<s>": [1]}))
    add("template_both", post_processor={"type": "Sequence", "processors": [byte_level(), template(
        [{"SpecialToken": {"id": "x", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "y", "type_id": 0}}], x=[1, 2], y=[3])]})
    add("roberta", post_processor={"type": "RobertaProcessing", "sep": ["b", 5], "cls": ["c", 6], "trim_offsets": True, "add_prefix_space": False})
    add("bert_processing", post_processor={"type": "BertProcessing", "sep": ["b", 5], "cls": ["c", 6]})

    add("decoder_none", decoder=None)
    add("decoder_fuse", decoder={"type": "Fuse"})
    add("decoder_replace_after_fuse", decoder={"type": "Sequence", "decoders": [{"type": "Fuse"}, replace("\u0120t", "_T")]})
    add("decoder_replace_regex", decoder={"type": "Sequence", "decoders": [replace("[aeiou]+", "*", "Regex"), byte_level()]})
    add("decoder_strip", model="chars", pre_tokenizer={"type": "Whitespace"}, decoder={"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "Strip", "content": "e", "start": 2, "stop": 2}]})
    add("decoder_metaspace", model="llama", normalizer=LLAMA_NORMALIZER, pre_tokenizer=None, decoder=metaspace("always"))
    add("decoder_metaspace_never", model="llama", normalizer=LLAMA_NORMALIZER, pre_tokenizer=None, decoder=metaspace("never"))
    add("decoder_byte_fallback", model="llama", normalizer=LLAMA_NORMALIZER, pre_tokenizer=None, decoder={"type": "ByteFallback"})
    # The library numbers added tokens itself, in the order of the file; of a token that is there twice the last one's flags count.
    add("added_ids_out_of_order", added_tokens=[token("<|im_end|>", id=9000), token("<think>", special=False, id=8000), token("the", id=8500)])
    add("added_twice", added_tokens=[token("<|im_end|>", special=False), token("<think>"), token("<|im_end|>", lstrip=True)])
    add("added_strips_meet", added_tokens=[token("<|im_end|>", rstrip=True), token("<s>", rstrip=True), token(" ", special=False), token("  ", lstrip=True)])
    add("added_strips_meet_left", added_tokens=[token("<|im_end|>", rstrip=True), token("<s>", rstrip=True), token(" ", special=False, lstrip=True), token("the")])
    add("added_special_piece", model_fields={"ignore_merges": True}, pre_tokenizer=byte_level(False, False), added_tokens=[token("the"), token("<|im_end|>")])
    return out


def complete(parts, all_models):
    model = json.loads(json.dumps(all_models[parts.get("model", "bytes")]))
    model.update(parts.get("model_fields", {}))
    next_id = 1 + max(model["vocab"].values())
    added = []
    for t in parts.get("added_tokens", []):
        if t["content"] in model["vocab"]:
            i = model["vocab"][t["content"]]
        else:
            i, next_id = next_id, next_id + 1
        added.append(dict({"id": i}, **t))
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": parts.get("normalizer"),
            "pre_tokenizer": parts.get("pre_tokenizer", byte_level(False, False)), "post_processor": parts.get("post_processor"),
            "decoder": parts.get("decoder", byte_level()), "model": model}


def results(tokenizer, text):
    """ids of the three ways, then with the post-processor; then both decodes."""
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    row = {"ids": ids}
    tokenizer.encode_special_tokens = True
    no_special = tokenizer.encode(text, add_special_tokens=False).ids
    tokenizer.encode_special_tokens = False
    processed = tokenizer.encode(text, add_special_tokens=True).ids
    if no_special != ids:
        row["ids_no_special"] = no_special
    if processed != ids:
        row["ids_processed"] = processed
    decoded = tokenizer.decode(ids, skip_special_tokens=False)
    skipped = tokenizer.decode(ids, skip_special_tokens=True)
    if decoded != text:
        row["decoded"] = decoded
    if skipped != decoded:
        row["decoded_skip_special"] = skipped
    return row


def main():
    options = argparse.ArgumentParser()
    options.add_argument("out")
    options.add_argument("--texts", type=int, default=36)
    options.add_argument("--seed", type=int, default=5)
    options = options.parse_args()
    all_models = make_models(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "data", "tokenizer"))
    all_texts = texts(options.texts, options.seed)
    rng = random.Random(options.seed)
    written = []
    for name, parts in cases():
        full = complete(parts, all_models)
        try:
            tokenizer = Tokenizer.from_str(json.dumps(full))
        except Exception as error:
            raise SystemExit("%s: the library refuses it: %s" % (name, error))
        plain = Tokenizer.from_str(json.dumps(dict(full, added_tokens=[])))
        rows = []
        for text in all_texts:
            try:
                row = results(tokenizer, text)
            except BaseException as error:   # the library's own panic is no Exception
                if type(error).__name__ != "PanicException":
                    raise
                print(name, "panics on", ascii(text))
                rows.append(None)
                continue
            if full["added_tokens"]:
                ids = plain.encode(text, add_special_tokens=False).ids
                if ids != row["ids"]:
                    row["ids_plain"] = ids
            rows.append(row)
        decodes = []
        for _ in range(6):
            ids = [rng.randrange(tokenizer.get_vocab_size() + 3) for _ in range(rng.randint(1, 20))]
            decodes.append({"ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False)})
        kept = {k: v for k, v in full.items() if k not in ("model", "version", "truncation", "padding")}
        written.append({"name": name, "model": parts.get("model", "bytes"), "model_fields": parts.get("model_fields", {}), "tokenizer": kept,
                        "rows": rows, "decodes": decodes})
    with open(options.out, "w", encoding="ascii", newline="\n") as f:
        f.write('{"models":%s,\n"texts":%s,\n"cases":[\n' % (json.dumps(all_models, separators=(",", ":")), json.dumps(all_texts, separators=(",", ":"))))
        f.write(",\n".join(json.dumps(c, separators=(",", ":")) for c in written))
        f.write("\n]}\n")
    print(len(written), "cases of", len(all_texts), "texts")


if __name__ == "__main__":
    sys.exit(main())
