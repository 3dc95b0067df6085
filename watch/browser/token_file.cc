#include "watch/browser/token_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/system/files.h"
#include "base/system/owned_fd.h"
#include "watch/http/http_server.h"

namespace motley {
namespace {

bool is_of_token(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' ||
         c == '_' || c == '.' || c == '~';
}

Result<std::string> new_token(const std::filesystem::path& file) {
  MOTLEY_ASSIGN(std::string token, make_token());
  const OwnedFd fd(
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  const std::string line = token + "\n";
  if (!fd.open() ||
      ::write(fd.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    return file_error("write", file, errno);
  }
  return token;
}

}  // namespace

Result<std::string> stored_token(const std::filesystem::path& file) {
  MOTLEY_ASSIGN(const bool exists, path_exists(file));
  if (!exists) return new_token(file);

  struct stat info {};

  if (::stat(file.c_str(), &info) != 0) return file_error("read", file, errno);
  if ((info.st_mode & S_IRWXO) != 0) {
    return Error{
        ErrorCode::kConfig, fmt::format("{} is readable by all users", file.string()),
        "its token grants access to the run",
        fmt::format("chmod o= {}, and give read permission only to the scraper", file.string())};
  }
  MOTLEY_ASSIGN(std::string token, read_file(file, kTokenCharactersMax + 2));
  token.erase(token.find_last_not_of("\r\n") + 1);
  if (token.size() < kTokenCharactersMin || token.size() > kTokenCharactersMax ||
      !std::ranges::all_of(token, is_of_token)) {
    return Error{
        ErrorCode::kConfig, fmt::format("{} contains no token", file.string()),
        fmt::format("a token is one line of {} to {} letters, digits, '-', '_', '.' and '~'",
                    kTokenCharactersMin, kTokenCharactersMax),
        "give a file that does not exist: it is created with a token"};
  }
  return token;
}

}  // namespace motley
