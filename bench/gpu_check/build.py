"""Builds Motley against the installed LibTorch, or uses an existing build."""
import shutil
import subprocess

from .context import Failed


class Build:
    def __init__(self, context):
        self.context = context

    def make(self):
        context = self.context
        if context.given.build:
            return "was there already"
        options = [f"-DMOTLEY_WITH_UCX={'ON' if has_header('ucp/api/ucp.h') else 'OFF'}"]
        options += ([f"-DMOTLEY_TORCH={context.given.torch.resolve()}"] if context.given.torch else
                    ["-DMOTLEY_TORCH=python", f"-DMOTLEY_PYTHON={context.given.python}"])
        if shutil.which("cmake") is None:
            raise Failed("cmake is missing: scripts/setup installs what a build needs")
        context.run("cmake", "--preset", "release", "-B", context.build, *options, cwd=context.root)
        context.run("cmake", "--build", context.build, "--parallel", "--target", "motley",
                    "motley-stage", "device_tests", cwd=context.root)
        return ", ".join(options)

    def facts(self):
        """The build's configuration, from its CMake cache."""
        cache = self.context.build / "CMakeCache.txt"
        if not cache.is_file():
            return {}
        values = dict(line.split("=", 1) for line in cache.read_text().splitlines()
                      if "=" in line and not line.startswith(("#", "//")))
        by_name = {name.partition(":")[0]: value for name, value in values.items()}
        return {"LibTorch of": by_name.get("MOTLEY_TORCH", "unknown"),
                "built with": "UCX" if by_name.get("MOTLEY_WITH_UCX") == "ON" else "TCP alone"}


def has_header(header):
    done = subprocess.run(["c++", "-E", "-x", "c++", "-", "-o", "/dev/null"], text=True,
                          input=f"#include <{header}>\n", capture_output=True)
    return done.returncode == 0
