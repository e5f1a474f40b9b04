// Continues prompts with libqwench, all of them at once, and prints each answer as it comes.
//
//   stream_completions MODEL PROMPT...
#include <iostream>
#include <vector>

#include "qwench/engine.h"

int main(int argc, char** argv) try {
  if (argc < 3) {
    std::cerr << "usage: " << argv[0] << " MODEL PROMPT...\n";
    return 2;
  }
  const auto engine = qwench::Engine::load(argv[1]);
  std::vector<qwench::Stream> streams;
  for (int i = 2; i < argc; ++i) {
    qwench::Request request;
    request.ids = engine->encode(argv[i]);
    request.sampling.temperature = 0.0f;
    request.stop.max_tokens = 24;
    streams.push_back(engine->submit(std::move(request)));
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    std::cout << argv[i + 2];
    for (const qwench::StreamDelta& delta : streams[i]) std::cout << delta.text << std::flush;
    std::cout << "\n[" << streams[i].result().usage.completion_tokens << " tokens]\n";
  }
  return 0;
} catch (const qwench::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
