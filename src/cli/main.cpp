#include "cli/command_line.h"

int main(int argc, char** argv) { return qwench::cli::run_program({argv + (argc > 0 ? 1 : 0), argv + argc}); }
