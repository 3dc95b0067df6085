# Toolchain: 64-bit Arm, with Debian's cross compiler and its libraries for that architecture
# (scripts/setup --arm64). Programs started by the build, including tests, run under emulation.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
