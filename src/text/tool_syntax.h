#pragma once

namespace qwench {

/// How a model writes a call of a tool; its chat template says which.
enum class ToolSyntax {
  hermes,       ///< <tool_call>\n{"name": "f", "arguments": {...}}\n</tool_call>
  qwen3_coder,  ///< <tool_call>\n<function=f>\n<parameter=p>\nvalue\n</parameter>\n</function>\n</tool_call>
};

}  // namespace qwench
