#include "inspect/structure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "core/utf8.h"

namespace qwench {
namespace {

constexpr int kDeepest = 32;  // parts of a name; the rest stays together

ModuleNode& child(ModuleNode& parent, std::string_view name) {
  // Tensors come sorted: the child that is wanted is the last one, or new.
  if (parent.children.empty() || parent.children.back().name != name) {
    parent.children.push_back({});
    parent.children.back().name = std::string(name);
  }
  return parent.children.back();
}

void insert(ModuleNode& root, const ListedTensor& tensor) {
  ModuleNode* node = &root;
  std::string_view rest = tensor.name;
  for (int depth = 0; depth < kDeepest; ++depth) {
    const size_t dot = rest.find('.');
    if (dot == std::string_view::npos) break;
    node = &child(*node, rest.substr(0, dot));
    rest.remove_prefix(dot + 1);
  }
  node->tensors.push_back(&tensor);
}

std::string_view leaf_name(const ListedTensor& tensor) {
  const std::string_view name = tensor.name;
  return name.substr(name.rfind('.') + 1);
}

std::string signature(const ModuleNode& node) {
  std::string text;
  for (const ListedTensor* tensor : node.tensors) {
    text += fmt::format("{}:{}[{}];", leaf_name(*tensor), tensor->type_name, fmt::join(tensor->shape, ","));
  }
  for (const ModuleNode& c : node.children) text += fmt::format("{}x{}({})", c.name, c.copies, signature(c));
  return text;
}

bool is_number(const std::string& name) {
  return !name.empty() && name.size() < 9 && name.find_first_not_of("0123456789") == std::string::npos;
}

struct Run {
  size_t place;  // among the folded children
  std::vector<int> numbers;
};

/// "0–3, 5" of ascending numbers.
std::string ranges(const std::vector<int>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += std::to_string(numbers[i]);
    if (last > i) text += fmt::format("–{}", numbers[last]);
    i = last + 1;
  }
  return text;
}

void fold(ModuleNode& node) {
  node.parameters = 0;
  for (const ListedTensor* tensor : node.tensors) node.parameters += tensor->count();
  for (ModuleNode& c : node.children) {
    fold(c);
    node.parameters += c.parameters * c.copies;
  }
  std::vector<ModuleNode> folded;
  std::map<std::string, Run> runs;  // by signature
  for (ModuleNode& c : node.children) {
    if (!is_number(c.name)) {
      folded.push_back(std::move(c));
      continue;
    }
    const int number = std::stoi(c.name);
    const auto [found, is_new] = runs.emplace(signature(c), Run{folded.size(), {}});
    found->second.numbers.push_back(number);
    if (is_new) folded.push_back(std::move(c));
  }
  for (const auto& [text, run] : runs) {
    folded[run.place].name = ranges(run.numbers);
    folded[run.place].copies = static_cast<int>(run.numbers.size());
  }
  node.children = std::move(folded);
}

/// A module that only holds its one child is named with it: "layers.0–27".
void join_chains(ModuleNode& node) {
  for (ModuleNode& c : node.children) {
    while (c.tensors.empty() && c.children.size() == 1 && c.copies == 1) {
      ModuleNode only = std::move(c.children.front());
      only.name = c.name + "." + only.name;
      c = std::move(only);
    }
    join_chains(c);
  }
}

std::string amount(int64_t parameters) {
  const auto number = static_cast<double>(parameters);
  if (parameters >= 1'000'000'000) return fmt::format("{:.2f} B", number / 1e9);
  if (parameters >= 1'000'000) return fmt::format("{:.1f} M", number / 1e6);
  if (parameters >= 1'000) return fmt::format("{:.1f} K", number / 1e3);
  return std::to_string(parameters);
}

std::string describe(const ModuleNode& node) {
  std::string text;
  for (const ListedTensor* tensor : node.tensors) {
    const std::string_view leaf = leaf_name(*tensor);
    if (!text.empty()) text += ", ";
    if (leaf != "weight") text += fmt::format("{} ", to_valid_utf8(leaf));
    if (leaf == "weight" && tensor->shape.size() == 2 && !tensor->is_embedding()) {
      text += fmt::format("{} → {}", tensor->shape[1], tensor->shape[0]);
    } else {
      text += fmt::format("[{}]", fmt::join(tensor->shape, ", "));
    }
    text += fmt::format(" {}", tensor->type_name);
  }
  return text;
}

struct Line {
  std::string left;
  std::string middle;
  std::string right;
};

void collect(const ModuleNode& node, const std::string& indent, std::vector<Line>& lines) {
  for (size_t i = 0; i < node.children.size(); ++i) {
    const ModuleNode& c = node.children[i];
    const bool last = i + 1 == node.children.size();
    std::string label = to_valid_utf8(c.name);
    if (c.copies > 1) label += fmt::format(" ×{}", c.copies);
    lines.push_back({indent + (last ? "└─ " : "├─ ") + label, describe(c),
                     amount(c.parameters) + (c.copies > 1 ? " each" : "")});
    collect(c, indent + (last ? "   " : "│  "), lines);
  }
}

size_t columns(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(),
                                           [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

}  // namespace

ModuleNode module_tree(const Listing& listing) {
  ModuleNode root;
  for (const ListedTensor& tensor : listing.tensors()) insert(root, tensor);
  fold(root);
  join_chains(root);
  return root;
}

std::string draw(const ModuleNode& tree, const ModelCard& card) {
  std::vector<Line> lines;
  collect(tree, "", lines);
  if (card.tied) {
    for (Line& line : lines) {
      if (line.left.find("lm_head") != std::string::npos)
        line.middle += "  (not used: the head is the embedding)";
    }
  }
  size_t left = 0;
  size_t middle = 0;
  for (const Line& line : lines) {
    left = std::max(left, columns(line.left));
    middle = std::max(middle, columns(line.middle));
  }
  std::string text =
      fmt::format("{}   {} parameters\n", card.architecture.empty() ? card.family : card.architecture,
                  amount(card.parameters));
  for (const Line& line : lines) {
    std::string row = line.left + std::string(left - columns(line.left) + 2, ' ') + line.middle +
                      std::string(middle - columns(line.middle) + 2, ' ') + line.right;
    text += row + "\n";
  }
  if (card.tied && text.find("lm_head") == std::string::npos) text += "   (the head is the embedding)\n";
  return text;
}

Json to_json(const ModuleNode& tree) {
  Json object{{"name", to_valid_utf8(tree.name)}, {"copies", tree.copies}, {"parameters", tree.parameters}};
  if (!tree.tensors.empty()) {
    Json& tensors = object["tensors"] = Json::array();
    for (const ListedTensor* tensor : tree.tensors) {
      tensors.push_back(
          {{"name", to_valid_utf8(tensor->name)}, {"shape", tensor->shape}, {"type", tensor->type_name}});
    }
  }
  if (!tree.children.empty()) {
    Json& children = object["children"] = Json::array();
    for (const ModuleNode& c : tree.children) children.push_back(to_json(c));
  }
  return object;
}

}  // namespace qwench
