"""The clients that the tests drive against `qwench serve`: docs/compatibility.md shows this table, and a test compares the two.

`python3 compatibility.py --write` writes the table anew.
"""
import os
import sys

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "compatibility.md")
BEGIN, END = "<!-- made by tests/e2e/compatibility.py: begin -->\n", "<!-- end -->\n"

# Client, how it is installed, what the tests do with it, the test that does it (module.class of tests/e2e).
CLIENTS = (
    ("openai (Python)", "pip install openai", "chat, completions, streams, log-probabilities, models, errors", "serve_test.OpenAiClient"),
    ("openai (Python), tools", "pip install openai", "calls of tools, whole and streamed, answers to calls", "clients_test.OpenAi"),
    ("openai (Node)", "npm install openai", "chat, completions, streams, models, errors, leaving a stream; calls of tools, streamed",
     "clients_test.Node"),
    ("LangChain's ChatOpenAI", "pip install langchain-openai", "`invoke`, `stream`, `bind_tools`, `with_structured_output`, tool messages", "clients_test.LangChain"),
    ("llm", "pip install llm", "prompts by `extra-openai-models.yaml`, streamed, with a tool", "clients_test.Llm"),
    ("openai (Python), embeddings", "pip install openai", "vectors as numbers and base64, `dimensions`", "serve_apis_test.Embeddings"),
    ("openai (Python), responses", "pip install openai", "whole and streamed, items given back, calls of functions", "serve_apis_test.Responses"),
    ("anthropic (Python)", "pip install anthropic", "messages, streams, stop sequences, counting tokens, tools, errors", "serve_apis_test.Anthropic"),
    ("ollama (Python)", "pip install ollama", "chat, generate, streams, tools, embed, list, ps, show, errors", "serve_apis_test.Ollama"),
    ("curl", "", "every line of [server.md](server.md)", "clients_test.Curl"),
)


def table():
    rows = ["| client | installed by | tested | by |", "|---|---|---|---|"]
    for name, install, tested, test in CLIENTS:
        module, case = test.split(".")
        rows.append(f"| {name} | {f'`{install}`' if install else ''} | {tested} | `tests/e2e/{module}.py`, {case} |")
    return "\n".join(rows) + "\n"


def page_with_table():
    with open(PAGE, encoding="utf-8") as f:
        text = f.read()
    before, rest = text.split(BEGIN)
    return text, before + BEGIN + table() + END + rest.split(END, 1)[1]


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    new_text = page_with_table()[1]
    with open(PAGE, "w", encoding="utf-8") as page:
        page.write(new_text)
