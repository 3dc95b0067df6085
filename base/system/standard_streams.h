// Corrections to the inherited process environment, for the first lines of main.
#pragma once

namespace motley {

// Opens /dev/null for each of standard input, output and error that is closed, so that no file
// opened later gets one of their numbers.
void open_standard_streams();

// From now on, exceeding the file size limit (ulimit -f) is a write error, like a full disk, and
// does not kill the process.
void ignore_file_size_limit();

}  // namespace motley
