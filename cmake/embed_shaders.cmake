# Writes OUTPUT, a C++ file with the words of FOLDER/NAME.spv for each NAME of SHADERS.
set(text "#include \"backend/vulkan/embedded_shaders.h\"\n\nnamespace qwench {\nnamespace {\n\n")
set(table "")
foreach(shader ${SHADERS})
  file(READ ${FOLDER}/${shader}.spv bytes HEX)
  # SPIR-V is a row of words of 32 bits, here with the least byte first.
  string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1," words "${bytes}")
  string(REPLACE "." "_" identifier ${shader})
  string(APPEND text "constexpr uint32_t k_${identifier}[] = {${words}};\n")
  string(APPEND table "    {\"${shader}\", k_${identifier}},\n")
endforeach()
string(APPEND text "\nconstexpr EmbeddedShader kShaders[] = {\n${table}};\n\n}  // namespace\n\n"
                   "std::span<const EmbeddedShader> embedded_shaders() { return kShaders; }\n\n}  // namespace qwench\n")
file(WRITE ${OUTPUT} "${text}")
