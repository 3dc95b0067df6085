# cmake -DOUT=FILE.cc -DHEADER=HEADER.h -DFILES="A;B;…" -P EmbedFiles.cmake
#
# Writes the bytes of the files into a source that defines embedded_files() of HEADER, each under its name
# without its folder. Embedded files need no installed data files at run time.
set(arrays "")
set(rows "")
set(index 0)
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  file(READ ${file} hex HEX)
  string(LENGTH "${hex}" digits)
  math(EXPR bytes "${digits} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," values "${hex}")
  string(APPEND arrays "constexpr unsigned char kFile${index}[] = {${values}0};\n")
  string(APPEND rows "      {\"${name}\", text_of(kFile${index}, ${bytes})},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUT} "#include \"${HEADER}\"

namespace motley {
namespace {

${arrays}
std::string_view text_of(const unsigned char* bytes, std::size_t count) {
  return {reinterpret_cast<const char*>(bytes), count};
}

}  // namespace

std::span<const EmbeddedFile> embedded_files() {
  static const EmbeddedFile files[] = {
${rows}  };
  return files;
}

}  // namespace motley
")
