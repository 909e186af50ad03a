# tide_embed(TARGET FILE FUNCTION): a source with the bytes of FILE, returned by tide::FUNCTION().
function(tide_embed target file function)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  file(CONFIGURE OUTPUT ${output} CONTENT "#include \"data/embedded.h\"
namespace tide {
namespace {
constexpr unsigned char kBytes[] = {@bytes@};
}
std::span<const unsigned char> @function@() { return kBytes; }
}
" @ONLY)
  target_sources(${target} PRIVATE ${output})
endfunction()
