#!/usr/bin/python3
"""`pip install .`: which torch the build uses or refuses, the wheel's version and requirements, and the torch that the
installed programs accept. With fake torch packages; needs neither torch, scikit-build-core nor a network."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tempfile
import unittest
import venv
from typing import Optional
from unittest import mock

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(SOURCE, "python"), os.path.join(SOURCE, "python", "backend")]

import environment_torch  # noqa: E402
import motley_programs  # noqa: E402
from environment_torch import NoUsableTorch, Torch  # noqa: E402


def write(path: str, text: str, mode: int = 0o644) -> str:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


def fake_torch(site: str, version: str, abi: Optional[int] = None) -> str:
    """Writes the files of a torch package that Motley reads."""
    folder = os.path.join(site, "torch")
    write(os.path.join(folder, "__init__.py"), "raise AssertionError('torch is imported')\n")
    write(os.path.join(folder, "version.py"),
          f"from typing import Optional\n\n__all__ = ['__version__', 'debug']\n__version__ = '{version}'\n")
    if abi is not None:
        write(os.path.join(folder, "share", "cmake", "Torch", "TorchConfig.cmake"),
              f'set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI={abi}")\n')
    return folder


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.work = tempfile.TemporaryDirectory()
        self.addCleanup(self.work.cleanup)
        self.root = os.path.realpath(self.work.name)


class FoundTorch(Case):
    def environment(self) -> str:
        """A virtual environment; the path of its Python."""
        folder = os.path.join(self.root, "environment")
        venv.create(folder, with_pip=False, symlinks=True)
        python = os.path.join(folder, "bin", "python")
        self.site = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"],
                                   stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        return python

    def test_is_that_of_the_environment_and_not_of_the_isolated_build(self) -> None:
        python = self.environment()
        folder = fake_torch(self.site, "2.15.0+cu132", abi=1)
        isolated = os.path.join(self.root, "isolated")
        fake_torch(isolated, "2.9.0")
        with mock.patch.dict(os.environ, {"PYTHONPATH": isolated, "PYTHONNOUSERSITE": "1"}):
            found = environment_torch.find_torch(python)
        self.assertEqual(found, Torch(folder, "2.15.0+cu132", None))

    def test_is_that_of_the_python_in_the_variable(self) -> None:
        python = self.environment()
        fake_torch(self.site, "2.14.1")
        with mock.patch.dict(os.environ, {"MOTLEY_PYTHON": python}):
            self.assertEqual(environment_torch.find_torch().version, "2.14.1")

    def test_elsewhere_than_the_environment_is_located_by_its_path(self) -> None:
        site = os.path.join(self.root, "system")
        found = environment_torch.described(fake_torch(site, "2.15.0"), os.path.join(self.root, "environment"))
        self.assertEqual(found.site, site)

    def test_missing_is_refused_with_the_interpreter_and_the_remedy(self) -> None:
        python = self.environment()
        with self.assertRaises(NoUsableTorch) as refused:
            environment_torch.find_torch(python)
        for part in (python, "has no torch", "pip install torch", "MOTLEY_PYTHON"):
            self.assertIn(part, str(refused.exception))

    def test_of_a_missing_interpreter_is_refused(self) -> None:
        with self.assertRaisesRegex(NoUsableTorch, "/no/such/python cannot be started: No such file.*MOTLEY_PYTHON"):
            environment_torch.find_torch("/no/such/python")

    def test_of_an_interpreter_that_fails_is_refused_with_its_output(self) -> None:
        python = write(os.path.join(self.root, "python"), "#!/bin/sh\necho broken >&2; exit 1\n", 0o755)
        with self.assertRaisesRegex(NoUsableTorch, "does not report where its torch is: broken"):
            environment_torch.find_torch(python)

    def test_without_a_version_is_refused(self) -> None:
        folder = fake_torch(self.root, "2.15.0")
        write(os.path.join(folder, "version.py"), "debug = False\n")
        with self.assertRaisesRegex(NoUsableTorch, "version.py has no __version__"):
            environment_torch.described(folder, self.root)
        os.remove(os.path.join(folder, "version.py"))
        with self.assertRaisesRegex(NoUsableTorch, "version.py cannot be read: No such file"):
            environment_torch.described(folder, self.root)


class RefusedTorch(Case):
    def check(self, version: str, abi: Optional[int] = None) -> None:
        environment_torch.refuse_unusable(environment_torch.described(fake_torch(self.root, version, abi), self.root))

    def test_has_the_old_strings(self) -> None:
        with self.assertRaisesRegex(NoUsableTorch, "torch 2.6.0.cu124 in .* old strings of .*'torch>=2.7'"):
            self.check("2.6.0+cu124", abi=0)

    def test_is_older_than_any_supported_one(self) -> None:
        with self.assertRaisesRegex(NoUsableTorch, "torch 1.12.1 in .* is too old.*'torch>=2.7'"):
            self.check("1.12.1")

    def test_has_no_number(self) -> None:
        with self.assertRaisesRegex(NoUsableTorch, "no release number"):
            self.check("main")

    def test_does_not_include_those_with_the_new_strings(self) -> None:
        self.check("2.6.0+cu126", abi=1)
        self.check("2.15.0+cpu")
        self.check("1.13.0a0+gitunknown", abi=1)


class Wheel(unittest.TestCase):
    def test_needs_the_torch_of_its_build(self) -> None:
        torch = Torch("/site/torch", "2.15.0+cu132", None)
        self.assertEqual(environment_torch.wheel_version("0.1.0", torch), "0.1.0+torch2.15")
        self.assertEqual(environment_torch.requirements(torch), ["numpy", "torch==2.15.*"])

    def test_accepts_debians_version_which_counts_as_one_before_its_release(self) -> None:
        torch = Torch("/usr/lib/python3/dist-packages/torch", "1.13.0a0+gitunknown", None)
        self.assertEqual(environment_torch.requirements(torch), ["numpy", "torch==1.13.*,>=1.13.0a0"])

    def test_has_the_version_of_the_programs_and_of_the_python_package(self) -> None:
        version = environment_torch.motley_version()
        with open(os.path.join(SOURCE, "python", "pyproject.toml"), encoding="utf-8") as file:
            alone = re.search(r'^version = "(.*)"$', file.read(), re.MULTILINE)
        assert alone is not None
        self.assertEqual(alone[1], version)

    def test_metadata_of_a_source_archive_names_no_release_of_torch(self) -> None:
        self.addCleanup(environment_torch.build_state, "wheel")
        environment_torch.build_state("sdist")
        found = environment_torch.dynamic_metadata({}, {})
        self.assertEqual(found, {"version": environment_torch.motley_version(), "dependencies": ["numpy", "torch"]})

    def test_has_a_build_folder_for_each_torch(self) -> None:
        found = environment_torch.build_folder(Torch("/a", "2.15.0+cu132", None))
        self.assertEqual(found, "build/pip/torch-2.15.0-cu132")


class InstalledPrograms(Case):
    """With a fake installation: site/motley/bin beside site/torch."""

    def setUp(self) -> None:
        super().setUp()
        self.bin = os.path.join(self.root, "motley", "bin")
        write(os.path.join(self.bin, "torch-version"), "2.15\n")
        patched = mock.patch.object(motley_programs, "FOLDER", self.bin)
        patched.start()
        self.addCleanup(patched.stop)

    def check(self, version: str) -> None:
        fake_torch(self.root, version)
        with mock.patch.object(sys, "path", [self.root, *sys.path]):
            importlib.invalidate_caches()
            motley_programs.check_torch()

    def test_accept_each_torch_of_their_release(self) -> None:
        for version in ("2.15.0", "2.15.1+cu132", "2.15.0a0+git1234"):
            self.check(version)

    def test_refuse_another_torch_with_both_remedies(self) -> None:
        for version in ("2.14.1", "2.1.5", "2.150.0", "3.15.0", "main"):
            with self.assertRaises(motley_programs.WrongTorch) as refused:
                self.check(version)
            for part in ("built with torch 2.15,", f"has torch {version}.", "install 'torch==2.15.*'", "install ."):
                self.assertIn(part, str(refused.exception))

    def test_of_a_package_without_programs_accept_any_torch(self) -> None:
        os.remove(os.path.join(self.bin, "torch-version"))
        self.check("1.13.0a0")
        self.assertIsNone(motley_programs.needed_torch())

    def test_are_found_if_they_are_executable(self) -> None:
        self.assertIsNone(motley_programs.program("motley"))
        path = write(os.path.join(self.bin, "motley"), "#!/bin/sh\n", 0o755)
        self.assertEqual(motley_programs.program("motley"), path)

    def test_are_run_by_the_commands_in_the_same_process(self) -> None:
        write(os.path.join(self.bin, "motley-store"), "#!/bin/sh\necho $$ \"$@\"\nexit 4\n", 0o755)
        code = f"import motley_programs as p; p.FOLDER = {self.bin!r}; p.motley_store()"
        with subprocess.Popen([sys.executable, "-c", code, "one two", "three"], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "python")}) as started:
            output, _ = started.communicate()
        self.assertEqual((started.returncode, output), (4, f"{started.pid} one two three\n"))

    def test_that_are_missing_are_named(self) -> None:
        with self.assertRaisesRegex(SystemExit, "motley: .*/motley/bin/motley is missing.*pip install ."):
            motley_programs.motley()


class StageScript(Case):
    """The script motley-stage of a wheel, beside a fake worker and a fake torch."""

    def run_script(self, folder: str = "$folder/../../torch") -> "subprocess.CompletedProcess[str]":
        with open(os.path.join(SOURCE, "cmake", "motley-stage.in"), encoding="utf-8") as file:
            text = file.read()
        text = text.replace("@MOTLEY_WHEEL_TORCH_RELEASE@", "2.15").replace("@MOTLEY_WHEEL_TORCH_FOLDER@", folder)
        self.assertNotIn("@MOTLEY", text)
        place = os.path.join(self.root, "site", "motley", "bin")
        script = write(os.path.join(place, "motley-stage"), text, 0o755)
        write(os.path.join(place, "motley-stage-torch"), "#!/bin/sh\ncat; echo \"$@\"; exit 5\n", 0o755)
        link = os.path.join(self.root, "link")
        os.symlink(script, link)
        return subprocess.run([link, "an argument"], input="a job\n", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True)

    def test_starts_the_worker_with_its_input_and_arguments(self) -> None:
        fake_torch(os.path.join(self.root, "site"), "2.15.1+cu132")
        done = self.run_script()
        self.assertEqual((done.returncode, done.stdout, done.stderr), (5, "a job\nan argument\n", ""))

    def test_refuses_another_torch(self) -> None:
        folder = fake_torch(os.path.join(self.root, "site"), "2.1.5")
        done = self.run_script()
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        for part in ("built with torch 2.15,", f"{folder} is torch 2.1.5", "pip install 'torch==2.15.*'"):
            self.assertIn(part, done.stderr)

    def test_refuses_a_missing_torch(self) -> None:
        done = self.run_script()
        self.assertEqual(done.returncode, 3)
        self.assertIn(f"there is no torch in {self.root}/site/torch", done.stderr)

    def test_reads_a_torch_outside_the_environment(self) -> None:
        folder = fake_torch(os.path.join(self.root, "else where"), "2.15.0")
        self.assertEqual(self.run_script(folder).returncode, 5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
