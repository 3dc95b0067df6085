// Installed, and includes a header that is not.
#pragma once

#include "base/internal.h"
