// What changes from step to step: tokens, positions, tables. Written by the host before each submit
// (step_data.h), so that the commands can be replayed as they are.
layout(set = 0, binding = 7) readonly buffer Step { uint step_words[]; };

const uint kTokens = 0;     // [rows]
const uint kPositions = 1;  // [rows]
const uint kTables = 2;     // [rows]: where the row's block table begins, counted from the buffer's begin
const uint kCos = 3;        // [rows, head_dim / 2]
const uint kSin = 4;        // [rows, head_dim / 2]
const uint kPieces = 5;     // [pieces, 2]: first row and rows of what one workgroup of attention computes
const uint kLogitRows = 6;  // [logit rows]

uint step_value(uint array, uint i) { return step_words[step_words[array] + i]; }
float step_number(uint array, uint i) { return uintBitsToFloat(step_value(array, i)); }
