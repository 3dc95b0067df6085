"""`motley.load` on checkpoints in Motley's format, and `motley.train` up to the program's command line and back."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
import unittest
from typing import Any, Dict, List

import numpy
import torch
import torch.nn as nn

import language_models
import vision_models
from support import Folder, motley
from motley import weights
from motley.interpret import Package
from motley.setup import Setup


def write_checkpoint(folder: str, package: str, step: int, tensors: Dict[str, torch.Tensor], config_path: Any = None,
                     steps: int = 1000) -> None:
    """As in docs/formats/checkpoint.md, over two ranks."""
    os.makedirs(folder)
    files = []
    names = list(tensors)
    for rank, part in enumerate((names[::2], names[1::2])):
        name = f"model-{rank + 1:05}-of-00002.safetensors"
        weights.write(os.path.join(folder, name), {key: tensors[key] for key in part})
        files.append({"name": name, "bytes": os.path.getsize(os.path.join(folder, name)), "hash": "0", "tensors": []})
    manifest = {"format": "motley.checkpoint", "version": 1, "step": step, "files": files,
                "config": {"model": {"kind": "package", "path": config_path or package}, "train": {"steps": steps}}}
    with open(os.path.join(folder, "manifest.json"), "w") as file:
        json.dump(manifest, file)


def moved(package: str) -> Dict[str, torch.Tensor]:
    """Parameters and statistics, each shifted by a small amount."""
    read = Package.open(package)
    names = [entry["name"] for layer in read.description["layers"] for kind in ("parameters", "statistics") for entry in layer[kind]]
    return {name: read.tensors[name] + 0.5 for name in names}


class Loading(unittest.TestCase):
    def test_loads_strictly(self) -> None:
        images = (torch.randn(2, 3, 32, 32), torch.randint(10, (2,)))
        tokens = (torch.randint(50, (2, 8)), torch.randint(50, (2, 8)))
        for make, example in ((vision_models.ResNet, images), (language_models.GPT2LMHeadModel, tokens), (language_models.LlamaForCausalLM, tokens)):
            with self.subTest(make.__name__), Folder() as folder:
                model = make()
                package = motley.export(motley.split(model), nn.CrossEntropyLoss(), example, folder.path("m.motley")).path
                for step in (20, 100):
                    write_checkpoint(folder.path(f"run/checkpoints/step-{step:06}"), package, step, moved(package))
                state = motley.load(folder.path("run"))
                fresh = make()
                fresh.load_state_dict(state, strict=True)
                for name, value in fresh.state_dict().items():
                    before = model.state_dict()[name]
                    if name.endswith("num_batches_tracked"):
                        self.assertEqual((int(value), value.dtype), (100, torch.int64))
                    else:
                        self.assertTrue(torch.equal(value, before + 0.5), name)
                self.assertTrue(torch.equal(next(iter(motley.load(folder.path("run/checkpoints/step-000020")).values())),
                                            next(iter(state.values()))))

    def test_keeps_what_does_not_train(self) -> None:
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
        model[0].requires_grad_(False)
        model.register_buffer("version", torch.tensor([7, 8], dtype=torch.int32))
        with Folder() as folder:
            package = motley.export(motley.split(model), nn.MSELoss(), (torch.randn(2, 4), torch.randn(2, 2)), folder.path("m.motley")).path
            trained = moved(package)
            self.assertEqual(sorted(trained), ["1.bias", "1.weight"])
            write_checkpoint(folder.path("step-000001"), package, 1, trained)
            state = motley.load(folder.path("step-000001"))
            model.load_state_dict(state, strict=True)
            self.assertTrue(torch.equal(state["version"], torch.tensor([7, 8], dtype=torch.int32)))

    def test_a_replaced_checkpoint_counts_until_the_new_one_is_there(self) -> None:
        with Folder() as folder:
            package = self._package(folder)
            write_checkpoint(folder.path("run/checkpoints/.step-000003.replaced"), package, 3, moved(package))
            os.makedirs(folder.path("run/checkpoints/step-000004"))  # not committed
            self.assertEqual(int(motley.load(folder.path("run"))["1.num_batches_tracked"]), 3)

    def test_metrics_of_a_run(self) -> None:
        with Folder() as folder:
            run = motley.Run(folder.path("measured"), "package", "config")
            with self.assertRaisesRegex(motley.MotleyError, "cannot read the metrics"):
                run.metrics()
            os.makedirs(run.run)
            with open(os.path.join(run.run, "metrics.jsonl"), "w") as file:
                file.write('{"step":1,"loss":2.5}\n{"step":2,"loss":null,"eval_accuracy":0.75}\n')
            self.assertEqual(run.metrics(), [{"step": 1, "loss": 2.5}, {"step": 2, "loss": None, "eval_accuracy": 0.75}])

    def test_says_what_is_wrong(self) -> None:
        with Folder() as folder:
            package = self._package(folder)
            tensors = moved(package)
            with self.assertRaisesRegex(motley.MotleyError, "not a checkpoint and contains none"):
                motley.load(folder.path("nothing"))
            write_checkpoint(folder.path("gone"), package, 1, tensors, "/nowhere/m.motley")
            with self.assertRaisesRegex(motley.MotleyError, "/nowhere/m.motley.*does not exist. Pass its folder"):
                motley.load(folder.path("gone"))
            self.assertIn("0.weight", motley.load(folder.path("gone"), package))
            write_checkpoint(folder.path("less"), package, 1, {k: v for k, v in tensors.items() if k != "0.bias"})
            with self.assertRaisesRegex(motley.MotleyError, "has no 0.bias"):
                motley.load(folder.path("less"))
            write_checkpoint(folder.path("other"), package, 1, {**tensors, "0.bias": torch.zeros(9)})
            with self.assertRaisesRegex(motley.MotleyError, r"0.bias has shape \[9\]"):
                motley.load(folder.path("other"))
            for name, text in (("empty", "{}"), ("list", "[]"), ("text", '{"step": "1", "config": {}, "files": []}'),
                               ("files", '{"step": 1, "config": {}, "files": [7]}')):
                os.makedirs(folder.path(name))
                with open(folder.path(f"{name}/manifest.json"), "w") as file:
                    file.write(text)
                with self.assertRaisesRegex(motley.MotleyError, "manifest.json (is damaged|is not a JSON object)"):
                    motley.load(folder.path(name))
            write_checkpoint(folder.path("right"), package, 1, tensors)
            for text in ("{}", '{"weights": 3}', '{"weights": {"file": "none", "sha256": ""}}'):
                os.makedirs(folder.path("bad.motley"), exist_ok=True)
                with open(folder.path("bad.motley/package.json"), "w") as file:
                    file.write(text)
                with self.assertRaisesRegex(motley.MotleyError, "bad.motley is damaged or incomplete"):
                    motley.load(folder.path("right"), folder.path("bad.motley"))
            shutil.copytree(package, folder.path("changed.motley"))
            with open(folder.path("changed.motley/weights.safetensors"), "r+b") as file:
                file.seek(-1, os.SEEK_END)
                file.write(b"?")
            with self.assertRaisesRegex(motley.MotleyError, "does not have the SHA-256 of package.json"):
                motley.load(folder.path("right"), folder.path("changed.motley"))
            write_checkpoint(folder.path("short"), package, 1, tensors)
            os.truncate(folder.path("short/model-00001-of-00002.safetensors"), 20)
            with self.assertRaisesRegex(motley.MotleyError, "incomplete"):
                motley.load(folder.path("short"))

    def _package(self, folder: Folder) -> str:
        model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
        return motley.export(motley.split(model), nn.MSELoss(), (torch.randn(2, 4), torch.randn(2, 3)), folder.path("m.motley")).path


class SafeTensors(unittest.TestCase):
    def test_all_types_come_back(self) -> None:
        with Folder() as folder:
            tensors = {"a": torch.randn(2, 3), "b": torch.tensor(5), "c": torch.tensor([True, False]), "empty": torch.zeros(0, 3),
                       "turned": torch.randn(3, 2).t(), "half": torch.randn(4).half(), "bytes": torch.arange(3, dtype=torch.uint8)}
            weights.write(folder.path("x"), tensors)
            with open(folder.path("x"), "rb") as file:
                self.assertEqual(int.from_bytes(file.read(8), "little") % 8, 0)
            for name, value in weights.read(folder.path("x")).items():
                self.assertEqual((value.dtype, value.shape), (tensors[name].dtype, tensors[name].shape))
                self.assertTrue(torch.equal(value, tensors[name]), name)

    def test_damaged_files_are_errors(self) -> None:
        with Folder() as folder:
            weights.write(folder.path("x"), {"a": torch.randn(64)})
            with open(folder.path("x"), "rb") as file:
                whole = file.read()
            for damaged in (b"", whole[:7], b"\xff" * 16, whole[:-5], whole.replace(b'[64]', b'[65]'), whole.replace(b'"shape"', b'"shale"'),
                            whole.replace(b'[64]', b'"64"'), whole.replace(b'"a":', b'"a"='), whole.replace(b'[0,', b'[9,')):
                with open(folder.path("y"), "wb") as file:
                    file.write(damaged)
                with self.assertRaises(motley.MotleyError):
                    weights.read(folder.path("y"))


PROGRAM = f"""#!{sys.executable}
import json, os, sys
arguments = sys.argv[1:]
config = open(arguments[1]).read()
values = dict(line.split(" = ", 1) for line in config.splitlines() if " = " in line)
if arguments[0] == "config":
    sys.exit("unknown key train.step: did you mean train.steps?" if "step" in values else 0)
print("got", json.dumps(arguments[:1] + arguments[2:]), flush=True)
if values.get("steps") == "13":
    print("the learning rate is unlucky", flush=True)
    sys.exit(3)
run = json.loads(values["dir"])
package = json.loads([line for line in config.splitlines() if line.startswith("path")][0].split(" = ")[1])
sys.path[:0] = {[os.path.dirname(os.path.abspath(__file__))]!r}
import training_test
training_test.write_checkpoint(os.path.join(run, "checkpoints", "step-000010"), package, 10, training_test.moved(package), steps=10)
print("done")
"""


class Training(unittest.TestCase):
    """Replaces the program by a script that writes a checkpoint; the test checks its arguments."""

    def setUp(self) -> None:
        self.folder = Folder().__enter__()
        self.addCleanup(self.folder.__exit__)
        self.program = self.folder.path("motley")
        with open(self.program, "w") as file:
            file.write(PROGRAM)
        os.chmod(self.program, os.stat(self.program).st_mode | stat.S_IXUSR)
        self.lines: List[str] = []

    def train(self, model: nn.Module, loss: Any, data: Any, **options: Any) -> motley.Run:
        return motley.train(model, loss, data, run=self.folder.path("run"), motley=self.program, follow=self.lines.append, **options)

    def test_images(self) -> None:
        model = vision_models.cnn()
        inputs, targets = torch.randint(256, (12, 1, 8, 8), dtype=torch.uint8), torch.randint(10, (12,))
        run = self.train(model, nn.CrossEntropyLoss(), (inputs, targets), eval_data=(inputs[:3], targets[:3]), cluster="home.toml",
                         steps=10, lr=1e-3, data__mean=[0.5], data__std=[0.25])
        self.assertEqual(self.lines, ['got ["launch", "--cluster", "home.toml"]', "done"])
        with open(run.config) as file:
            config = file.read()
        for line in ("[model]\nkind = \"package\"", "[train]\nsteps = 10\nlr = 0.001", "kind = \"arrays\"", "mean = [0.5]", "std = [0.25]"):
            self.assertIn(line, config)
        data = os.path.join(self.folder.path("run.setup"), "data")
        for name, right in (("inputs", inputs), ("targets", targets), ("eval_inputs", inputs[:3]), ("eval_targets", targets[:3])):
            written = numpy.load(os.path.join(data, f"{name}.npy"))
            self.assertEqual(written.dtype, right.numpy().dtype)
            self.assertTrue(numpy.array_equal(written, right.numpy()))
        fresh = vision_models.cnn()
        fresh.load_state_dict(run.state_dict(), strict=True)
        self.assertTrue(torch.equal(fresh[0].weight, model[0].weight + 0.5))

    def test_tokens_and_resume(self) -> None:
        tokens = numpy.arange(40) % 50
        run = self.train(language_models.GPT2LMHeadModel(), nn.CrossEntropyLoss(), tokens, context=8, steps=3)
        raw = numpy.fromfile(os.path.join(self.folder.path("run.setup"), "data", "tokens.bin"), dtype="<u4")
        self.assertEqual(list(raw[:3]), [20240801, 7, 40])
        self.assertTrue(numpy.array_equal(raw[256:], tokens))
        os.rename(os.path.join(run.run, "checkpoints"), self.folder.path("old"))
        self.train(language_models.GPT2LMHeadModel(), nn.CrossEntropyLoss(), tokens, context=8, resume=True)
        self.assertEqual(self.lines[2:], ['got ["train", "--resume"]', "done"])
        with open(run.config) as file:
            self.assertIn("steps = 3", file.read())
        os.rename(os.path.join(run.run, "checkpoints"), self.folder.path("older"))
        self.train(language_models.GPT2LMHeadModel(), nn.CrossEntropyLoss(), tokens, context=8, resume=True, steps=7, links="l.json")
        self.assertEqual(self.lines[4:], ['got ["train", "--links", "l.json", "--resume"]', "done"])
        with open(run.config) as file:
            config = file.read()
        for line in ("steps = 7", 'kind = "tokens"', 'kind = "package"'):
            self.assertIn(line, config)

    def test_resuming_leaves_what_it_cannot_change(self) -> None:
        model, data = vision_models.mlp(), (torch.randn(5, 12), torch.randn(5, 3))

        def again(**settings: Any) -> motley.Run:
            return self.train(model, nn.MSELoss(), data, resume=True, **settings)

        run = self.train(model, nn.MSELoss(), data, steps=10)
        del self.lines[:]
        self.assertIn("0.weight", again().state_dict())
        self.assertIn("has ended", self.lines[0])
        self.assertEqual(len(self.lines), 1)
        with open(run.config) as file:
            before = file.read()
        for settings, message in (({"steps": 13}, "ended with status 3"), ({"steps": 11, "step": 9}, "invalid settings")):
            with self.assertRaisesRegex(motley.MotleyError, message):
                again(**settings)
            with open(run.config) as file:
                self.assertEqual(file.read(), before)
        os.rename(os.path.join(run.run, "checkpoints"), self.folder.path("old"))
        again(steps=11, allow_changes=True, adapt=True)
        self.assertEqual(self.lines[-2], 'got ["train", "--adapt", "--resume", "--allow-changes"]')
        os.remove(self.folder.path("run.setup/data.json"))
        with self.assertRaisesRegex(motley.MotleyError, "data.json cannot be read"):
            again(steps=12)

    def test_one_at_a_time(self) -> None:
        with Setup(self.folder.path("run"), resume=False):
            with self.assertRaisesRegex(motley.MotleyError, "is in use by another motley.train"):
                self.train(vision_models.mlp(), nn.MSELoss(), (torch.randn(5, 12), torch.randn(5, 3)))

    def test_datasets_and_layers_by_hand(self) -> None:
        model = vision_models.mlp()
        dataset = [(torch.randn(12), torch.randn(3)) for _ in range(5)]
        run = self.train(model, nn.MSELoss(), dataset, layers=[("all", model)], steps=2)
        with open(os.path.join(run.package, "package.json")) as file:
            self.assertEqual(json.load(file)["layers"][0]["parameters"][0]["name"], "0.weight")

    def test_says_what_is_wrong(self) -> None:
        model, loss, data = vision_models.mlp(), nn.MSELoss(), (torch.randn(5, 12), torch.randn(5, 3))
        for options, given, message in (
                ({"resume": True}, data, "nothing to resume"), ({"step": 9}, data, "invalid settings:.*\n.*train.steps"), ({"steps": 13}, data, "ended with status 3.*\n.*\n.*unlucky"),
                ({"lr": torch.tensor(1.0)}, data, "train.lr is a Tensor"), ({"lr": float("nan")}, data, "train.lr is nan"), ({}, torch.arange(9), "needs context="),
                ({"context": 9}, torch.arange(9), "too few"), ({"context": 0}, torch.arange(9), "context is 0"), ({}, (data[0], data[1][:2]), "5 inputs and 2 targets"),
                ({"label_smoothing": 0.1}, data, "nn.CrossEntropyLoss.label_smoothing="), ({"class_weights": [1.0, 2.0]}, data, "weight=...."),
                ({"eval_data": data, "data__holdout_path": "val"}, data, "are both held-out data"),
                ({}, iter([]), "not a supported type of data"), ({"context": 3, "eval_data": data}, torch.arange(9), "data__holdout")):
            with self.assertRaisesRegex(motley.MotleyError, message):
                self.train(model, loss, given, **options)
        self.train(model, loss, data, steps=numpy.int64(2), lr=numpy.float32(0.5))
        with self.assertRaisesRegex(motley.MotleyError, "already contains a run"):
            self.train(model, loss, data)
        self.program = self.folder.path("gone")
        with self.assertRaisesRegex(motley.MotleyError, "gone is not found"):
            self.train(model, loss, data)


WAITING = f"""#!{sys.executable}
import signal, sys, time
def end(number, frame):
    with open(sys.argv[2].replace("run.setup/motley.toml", "ended"), "w") as file:
        file.write(str(int(number)))
    sys.exit(130)
if sys.argv[1] != "config":
    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    print("waiting", flush=True)
    time.sleep(60)
"""

CALLER = """
import sys
import torch, torch.nn as nn
from support import motley
try:
    motley.train(nn.Sequential(nn.Linear(2, 2)), nn.MSELoss(), (torch.randn(4, 2), torch.randn(4, 2)), run=sys.argv[1] + "/run",
                 motley=sys.argv[1] + "/motley", follow=lambda line: print(line, flush=True))
except KeyboardInterrupt as interrupt:
    print("interrupted:", interrupt, flush=True)
"""


class Interruptions(unittest.TestCase):
    """A signal to this process, not to its group, also reaches the program."""

    def ended_by(self, number: int) -> str:
        with Folder() as folder:
            program = folder.path("motley")
            with open(program, "w") as file:
                file.write(WAITING)
            os.chmod(program, 0o755)
            place = os.path.dirname(os.path.abspath(__file__))
            with subprocess.Popen([sys.executable, "-c", CALLER, folder.path("")], stdout=subprocess.PIPE, text=True, cwd=place) as caller:
                self.assertEqual(caller.stdout.readline(), "waiting\n")
                caller.send_signal(number)
                said = caller.stdout.read()
            deadline = time.monotonic() + 30
            while not os.path.exists(folder.path("ended")) and time.monotonic() < deadline:
                time.sleep(0.05)
            time.sleep(0.05)
            with open(folder.path("ended")) as file:
                self.assertEqual(int(file.read()), signal.SIGINT if number == signal.SIGINT else signal.SIGTERM)
            return said

    def test_an_interruption_is_handed_on(self) -> None:
        self.assertIn("interrupted: Motley was interrupted", self.ended_by(signal.SIGINT))

    @unittest.skipUnless(sys.platform == "linux", "only Linux signals a child at its parent's end")
    def test_nothing_goes_on_after_a_kill(self) -> None:
        self.ended_by(signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()
