"""Runs of the built Motley, and their output files."""
import json
import pathlib

TINY = dict(layers=2, width=32, heads=4, context=16, vocab=256, micro_batch=2, micro_batches=4)
MIDDLE = dict(layers=8, width=512, heads=8, context=256, vocab=8192, micro_batch=4, micro_batches=4)


def steps(context):
    return 6 if context.short else 20


class Run:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def column(self, key):
        lines = (self.folder / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line)[key] for line in lines]

    def report(self):
        return json.loads((self.folder / "report.json").read_text())

    def parameter_hash(self):
        newest = max((self.folder / "checkpoints").glob("step-*/manifest.json"))
        return json.loads(newest.read_text())["parameter_hash"]


def config_text(model, step_count):
    return f"""[model]
kind = "gpt2"
layers = {model['layers']}
width = {model['width']}
heads = {model['heads']}
context = {model['context']}
vocab = {model['vocab']}
[data]
kind = "synthetic"
[train]
steps = {step_count}
global_batch = {model['micro_batch'] * model['micro_batches']}
micro_batch = {model['micro_batch']}
warmup_steps = 2
[checkpoint]
every = 0
"""


def train(context, name, devices, *words, model=None, step_count=None):
    """A whole run on these devices of this machine."""
    config = context.folder / f"{name}.toml"
    config.write_text(config_text(model or TINY, step_count or steps(context)))
    cluster = context.folder / f"{name}-cluster.toml"
    cluster.write_text(f'[[machine]]\nname = "here"\ndevices = {json.dumps(devices)}\n')
    seconds = 2 if context.short else 10
    run = context.folder / name
    context.run(context.motley, "train", config, "--run", run, "--cluster", cluster, "--set",
                f"profile.seconds={seconds}", *words)
    return Run(run)
