#include "cli/command_line.h"
#include "core/mapped_file.h"

int main(int argc, char** argv) {
  qwench::explain_lost_files();
  return qwench::cli::run_program({argv + (argc > 0 ? 1 : 0), argv + argc});
}
