#include "grammar/tool_grammar.h"

#include <fmt/format.h>

#include <algorithm>

#include "grammar/constraint_grammar.h"
#include "grammar/grammar_builder.h"
#include "grammar/json_text.h"
#include "grammar/regex_parser.h"
#include "grammar/schema_compiler.h"
#include "grammar/schema_references.h"
#include "grammar/text_product.h"
#include "qwench/error.h"

namespace qwench {
namespace {

using Expr = GrammarBuilder::Expr;

/// Any text in which `stop`, ASCII, does not occur: the automaton of Knuth, Morris and Pratt (1977), a rule
/// for each state.
Expr text_without(GrammarBuilder& builder, const std::string& stop) {
  std::vector<GrammarBuilder::RuleId> rules;
  for (size_t i = 0; i < stop.size(); ++i) rules.push_back(builder.declare("text"));
  std::vector<CodeRange> letters;
  for (const char c : stop) letters.push_back({static_cast<char32_t>(c), static_cast<char32_t>(c)});
  const CodeRanges alphabet(letters);
  std::string distinct = stop;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  for (size_t state = 0; state < stop.size(); ++state) {
    std::vector<Expr> ways{builder.empty(),
                           builder.sequence({builder.chars(alphabet.complement()), builder.ref(rules[0])})};
    for (const char c : distinct) {
      std::string seen = stop.substr(0, state) + c;
      while (!stop.starts_with(seen)) seen.erase(0, 1);
      if (seen.size() == stop.size()) continue;
      ways.push_back(builder.sequence({builder.literal(std::string(1, c)), builder.ref(rules[seen.size()])}));
    }
    builder.define(rules[state], builder.either(std::move(ways)));
  }
  return builder.ref(rules[0]);
}

class ToolGrammar {
 public:
  ToolGrammar() : builder_("tools"), json_(builder_) {}

  std::shared_ptr<const Grammar> make(ToolSyntax syntax, const std::vector<ToolSignature>& tools,
                                      bool parallel, bool required, const Constraint* text) {
    if (tools.empty()) builder_.fail("there are none to call");
    std::vector<Expr> bodies;
    std::vector<Expr> held_bodies;  // of tools with a schema
    std::vector<GrammarBuilder::RuleId> calls;
    for (const ToolSignature& tool : tools) {
      builder_.speak_of(fmt::format("the tool \"{}\"", tool.name));
      const auto rule = builder_.declare(fmt::format("the arguments of the tool \"{}\"", tool.name));
      builder_.define(rule, syntax == ToolSyntax::hermes ? hermes(tool) : qwen3_coder(tool));
      calls.push_back(rule);
      bodies.push_back(builder_.ref(rule));
      if (!tool.parameters.is_null()) held_bodies.push_back(bodies.back());
    }
    builder_.speak_of("tools");
    const Expr call =
        builder_.rule("call", builder_.sequence({builder_.special("<tool_call>"), builder_.literal("\n"),
                                                 builder_.either(std::move(bodies)), builder_.literal("\n"),
                                                 builder_.special("</tool_call>")}));
    Expr answer = call;
    if (parallel) {
      answer = builder_.sequence({call, builder_.repeat(builder_.sequence({builder_.literal("\n"), call}), 0,
                                                        GrammarBuilder::kUnbounded)});
    }
    if (!required && text != nullptr) {
      answer = builder_.either({answer, builder_.rule("text", add_constraint(builder_, json_, *text))});
    } else if (!required) {
      answer = builder_.sequence({free_text(syntax, tools), builder_.optional(answer)});
      if (!held_bodies.empty() && syntax == ToolSyntax::hermes)
        answer = builder_.either({answer, without_tags(builder_.either(std::move(held_bodies)))});
    }
    const GrammarBuilder::RuleId root = builder_.declare("answer");
    builder_.define(root, answer);
    return builder_.build(root, calls);
  }

 private:
  /// A call whose tags the model forgot.
  Expr without_tags(Expr body) {
    const auto fenced = [&](const char* open) {
      return builder_.sequence({builder_.literal(open), body, builder_.literal("\n```")});
    };
    return builder_.sequence({builder_.repeat(white(builder_), 0, 2),
                              builder_.either({body, fenced("```json\n"), fenced("```\n")})});
  }

  static Expr white(GrammarBuilder& builder) {
    return builder.chars(CodeRanges({{'\t', '\n'}, {'\r', '\r'}, {' ', ' '}}));
  }

  /// Text that is no call, and does not begin like one that its tool's schema should hold.
  Expr free_text(ToolSyntax syntax, const std::vector<ToolSignature>& tools) {
    const bool held = std::any_of(tools.begin(), tools.end(),
                                  [](const ToolSignature& tool) { return !tool.parameters.is_null(); });
    if (syntax != ToolSyntax::hermes || !held) return text_without(builder_, "<tool_call>");
    TextProduct product(builder_,
                        [](GrammarBuilder& builder) { return text_without(builder, "<tool_call>"); });
    product.add_condition([&](GrammarBuilder& builder) {
      const Expr space = builder.repeat(white(builder), 0, GrammarBuilder::kUnbounded);
      // A name with escapes may be any.
      const CodeRanges plain = CodeRanges({{'"', '"'}, {'\\', '\\'}}).complement();
      std::vector<Expr> names{builder.sequence(
          {builder.literal("\""), builder.repeat(builder.chars(plain), 0, GrammarBuilder::kUnbounded),
           builder.literal("\\")})};
      for (const ToolSignature& tool : tools) {
        if (!tool.parameters.is_null()) names.push_back(builder.literal(Json(tool.name).dump()));
      }
      return builder.sequence(
          {space, builder.either({builder.empty(), builder.literal("```json\n"), builder.literal("```\n")}),
           builder.literal("{"), space, builder.literal("\"name\""), space, builder.literal(":"), space,
           builder.either(std::move(names)),
           builder.repeat(builder.chars(CodeRanges::all()), 0, GrammarBuilder::kUnbounded)});
    });
    return product.texts([](uint32_t met) { return met == 0; });
  }

  Expr hermes(const ToolSignature& tool) {
    const Expr arguments =
        tool.parameters.is_null()
            ? json_.object()
            : SchemaCompiler(builder_, json_, with_resolved_references(tool.parameters)).compile_as_object();
    return builder_.sequence({builder_.literal("{\"name\": "), json_.quoted(tool.name),
                              builder_.literal(", \"arguments\": "), builder_.rule(tool.name, arguments),
                              builder_.literal("}")});
  }

  Expr qwen3_coder(const ToolSignature& tool) {
    if (tool.name.find_first_of("<>\n\r") != std::string::npos)
      builder_.fail("its name holds a character that ends a name in the model's syntax");
    std::vector<Expr> parts{builder_.literal("<function=" + tool.name + ">\n")};
    if (tool.parameters.is_null()) {
      parts.push_back(any_parameters());
    } else {
      add_parameters(with_resolved_references(tool.parameters), parts);
    }
    parts.push_back(builder_.literal("</function>"));
    return builder_.sequence(std::move(parts));
  }

  Expr any_parameters() {
    const CodeRanges name_chars = CodeRanges({{0, 0x1F}, {'<', '<'}, {'>', '>'}}).complement();
    const Expr one = builder_.sequence(
        {builder_.literal("<parameter="),
         builder_.repeat(builder_.chars(name_chars), 1, GrammarBuilder::kUnbounded), builder_.literal(">\n"),
         text_without(builder_, "</parameter>"), builder_.literal("\n</parameter>\n")});
    return builder_.repeat(builder_.rule("parameter", one), 0, GrammarBuilder::kUnbounded);
  }

  void add_parameters(const Json& schema, std::vector<Expr>& parts) {
    const SchemaDocument document(builder_, schema);
    const Json flat = document.flatten(schema, "#");
    if (!flat.is_object()) document.fail("#", "expected an object's schema");
    for (const char* keyword : {"anyOf", "oneOf", "enum", "const", "minProperties", "maxProperties"}) {
      if (flat.contains(keyword))
        document.fail("#", fmt::format("{}: not supported for all parameters of a tool together", keyword));
    }
    if (!types_of(flat).contains("object")) document.fail("#", "expected an object's schema");
    SchemaCompiler compiler(builder_, json_, schema);
    const Json none = Json::object();
    const Json& properties = flat.contains("properties") ? flat["properties"] : none;
    if (!properties.is_object()) document.fail("#", "properties: expected an object");
    std::vector<std::string> required;
    if (flat.contains("required") && flat["required"].is_array()) {
      for (const Json& name : flat["required"]) {
        if (name.is_string()) required.push_back(name.get<std::string>());
      }
    }
    std::vector<std::pair<std::string, Json>> parameters;
    for (const auto& [name, value] : properties.items()) parameters.emplace_back(name, value);
    for (const std::string& name : required) {
      if (!properties.contains(name)) parameters.emplace_back(name, Json(true));
    }
    for (const auto& [name, value] : parameters) {
      if (name.find_first_of("<>\n\r") != std::string::npos)
        document.fail("#", "a parameter's name holds a character that ends a name in the model's syntax");
      const Expr parameter =
          builder_.sequence({builder_.literal("<parameter=" + name + ">\n"),
                             parameter_value(document, compiler, value, "#/properties/" + name),
                             builder_.literal("\n</parameter>\n")});
      const bool needed = std::find(required.begin(), required.end(), name) != required.end();
      parts.push_back(needed ? parameter : builder_.optional(parameter));
    }
  }

  /// Strings as they are, other values as JSON.
  Expr parameter_value(const SchemaDocument& document, SchemaCompiler& compiler, const Json& schema,
                       const std::string& path) {
    const Json flat = document.flatten(schema, path);
    const bool has_values = flat.is_object() && (flat.contains("enum") || flat.contains("const"));
    if (has_values) {
      const Json values = *document.valid_values(flat, path);
      const bool all_strings =
          values.is_array() && std::all_of(values.begin(), values.end(), [](const Json& v) {
            return v.is_string() && v.get_ref<const std::string&>().find("</parameter>") == std::string::npos;
          });
      if (!all_strings) return compiler.compile(schema, path);
      std::vector<Expr> ways;
      for (const Json& value : values) ways.push_back(builder_.literal(value.get<std::string>()));
      return builder_.either(std::move(ways));
    }
    const bool text = flat.is_object() && flat.contains("type") && flat["type"] == "string" &&
                      !flat.contains("anyOf") && !flat.contains("oneOf");
    if (!text) return compiler.compile(schema, path);
    const EncodeChars encode = [this](const CodeRanges& set) {
      return builder_.chars(set.without(CodeRanges::one(U'<')));
    };
    if (const auto content =
            compiler.string_content(flat, encode, path, StringSpelling::plain_without_less_than))
      return *content;
    return text_without(builder_, "</parameter>");
  }

  GrammarBuilder builder_;
  JsonText json_;
};

}  // namespace

std::shared_ptr<const Grammar> compile_tool_calls(ToolSyntax syntax, const std::vector<ToolSignature>& tools,
                                                  bool parallel, bool required, const Constraint* text) {
  return ToolGrammar().make(syntax, tools, parallel, required, text);
}

}  // namespace qwench
