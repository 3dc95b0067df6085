// An installed header that includes one that is not installed.
#pragma once

#include "base/internal.h"
