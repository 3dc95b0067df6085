// What the first lines of a program's main put right of what it was started with.
#pragma once

namespace motley {

// Opens /dev/null for each of standard input, output and error that is closed, so that no file
// which this process opens later is taken for one of them.
void open_standard_streams();

// From now on, a file that grows beyond the limit of its size (ulimit -f) is an error of the write,
// like a full disk, and not the end of the process.
void outlive_file_limits();

}  // namespace motley
