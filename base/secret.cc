#include "base/secret.h"

#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace motley {

Result<std::string> make_secret() {
  std::string secret(kSecretBytes, '\0');
  if (getentropy(secret.data(), secret.size()) != 0) {
    return Error{ErrorCode::kInternal, "the system gives no random numbers", std::strerror(errno),
                 ""};
  }
  return secret;
}

void wipe(std::string& secret) {
  volatile char* bytes = secret.data();
  for (std::size_t i = 0; i < secret.size(); ++i) bytes[i] = '\0';
  secret.clear();
}

}  // namespace motley
