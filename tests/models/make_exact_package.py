"""Writes tests/models/packages/exact.motley: a model whose layers pass integers, truth values and
numbers without a gradient on. Needs nothing but Python.

    python3 tests/models/make_exact_package.py

prepare  ids -> ids, mask, scale: no gradient crosses the boundary behind it
embed    -> mask, hidden, ids, scale: of these hidden has a gradient
mix (2x) hidden @ weight * scale * mask, and the others as they are
head     cross entropy of hidden @ weight + table[ids] over 5 classes
"""

import hashlib
import json
import math
import pathlib
import struct

FOLDER = pathlib.Path(__file__).parent / "packages" / "exact.motley"
POSITIONS, WIDTH, CLASSES = 4, 3, 5
FLOAT = {"type": "float32"}
ROWS = {"batch": [0, POSITIONS]}
SAMPLES = {"batch": [0, 1]}


class Graph:
    """A layer's graph as package.json has it."""

    def __init__(self, takes):
        self.takes = takes
        self.nodes = []
        self.gives = []
        self.values = len(takes)

    def node(self, op, args, kwargs=None, results=1):
        first = self.values
        self.nodes.append({"op": "aten::" + op, "args": args, "kwargs": kwargs or {},
                           "results": results})
        self.values += results
        return first if results == 1 else tuple(range(first, first + results))

    def give(self, **roles):
        for role, value in roles.items():
            name, index = role.rsplit("_", 1)
            self.gives.append([f"{name}:{index}", value])
        return self

    def text(self):
        return {"takes": self.takes, "nodes": self.nodes, "gives": self.gives}


def value(number):
    return {"value": number}


def memory(saved, queued, workspace):
    return {"saved_bytes": saved, "queued_bytes": queued, "workspace_bytes": workspace}


def prepare():
    def made():
        graph = Graph(["input:0"])
        mask = graph.node("ne.Scalar", [value(0), 0])
        floats = graph.node("_to_copy", [value(0)], {"dtype": FLOAT})
        scale = graph.node("mul.Scalar", [value(floats), 0.25])
        return graph.give(output_0=0, output_1=mask, output_2=scale)

    back = Graph(["parameter:0"])
    back.give(parameter_grad_0=back.node("mul.Scalar", [value(0), 0.0]))
    return {"forward": made().text(), "input_part": back.text(), "weight_part": Graph([]).text(),
            "evaluate": made().text(), "memory": memory(0, 0, 64)}


def embed():
    def made():
        graph = Graph(["input:0", "input:1", "input:2", "parameter:0"])
        hidden = graph.node("embedding", [value(3), value(0)])
        return graph.give(output_0=1, output_1=hidden, output_2=0, output_3=2)

    late = Graph(["queued:0", "saved:0"])
    late.give(parameter_grad_0=late.node("embedding_dense_backward",
                                         [value(0), value(1), CLASSES, -1, False]))
    return {"forward": made().give(saved_0=0).text(),
            "input_part": Graph(["grad:1"]).give(queued_0=0).text(),
            "weight_part": late.text(), "evaluate": made().text(), "memory": memory(32, 48, 96)}


def mix():
    def made(saves):
        graph = Graph(["input:0", "input:1", "input:2", "input:3", "parameter:0"])
        rows = graph.node("view", [value(1), [ROWS, WIDTH]])
        mixed = graph.node("mm", [value(rows), value(4)])
        mixed = graph.node("view", [value(mixed), [SAMPLES, POSITIONS, WIDTH]])
        scale = graph.node("unsqueeze", [value(3), -1])
        mask = graph.node("unsqueeze", [value(0), -1])
        factor = graph.node("mul.Tensor", [value(scale), value(mask)])
        hidden = graph.node("mul.Tensor", [value(mixed), value(factor)])
        graph.give(output_0=0, output_1=hidden, output_2=2, output_3=3)
        return graph.give(saved_0=rows, saved_1=factor) if saves else graph

    back = Graph(["grad:1", "saved:1", "parameter:0"])
    scaled = back.node("mul.Tensor", [value(0), value(1)])
    rows = back.node("view", [value(scaled), [ROWS, WIDTH]])
    transposed = back.node("t", [value(2)])
    grad = back.node("mm", [value(rows), value(transposed)])
    grad = back.node("view", [value(grad), [SAMPLES, POSITIONS, WIDTH]])
    back.give(input_grad_1=grad, queued_0=rows)
    late = Graph(["queued:0", "saved:0"])
    transposed = late.node("t", [value(1)])
    late.give(parameter_grad_0=late.node("mm", [value(transposed), value(0)]))
    return {"forward": made(True).text(), "input_part": back.text(), "weight_part": late.text(),
            "evaluate": made(False).text(), "memory": memory(64, 48, 160)}


def scores(graph, hidden, ids, weight, table):
    rows = graph.node("view", [value(hidden), [ROWS, WIDTH]])
    products = graph.node("mm", [value(rows), value(weight)])
    flat = graph.node("view", [value(ids), [ROWS]])
    looked_up = graph.node("embedding", [value(table), value(flat)])
    return rows, flat, graph.node("add.Tensor", [value(products), value(looked_up)])


def head():
    def made(saves):
        graph = Graph(["input:1", "input:2", "parameter:0", "parameter:1", "target:0"])
        rows, flat, logits = scores(graph, 0, 1, 2, 3)
        likely = graph.node("_log_softmax", [value(logits), 1, False])
        target = graph.node("view", [value(4), [ROWS]])
        loss, weight = graph.node("nll_loss_forward", [value(likely), value(target), None, 2, -100],
                                  results=2)
        counted = graph.node("ge.Scalar", [value(target), 0])
        count = graph.node("sum", [value(counted)])
        best = graph.node("argmax", [value(logits), 1])
        right = graph.node("eq.Tensor", [value(best), value(target)])
        correct = graph.node("sum", [value(right)])
        graph.give(loss_0=loss, count_0=count, correct_0=correct)
        if saves:
            graph.give(saved_0=rows, saved_1=likely, saved_2=target, saved_3=weight, saved_4=flat)
        return graph

    back = Graph(["saved:1", "saved:2", "saved:3", "parameter:0"])
    one = back.node("full", [[], 1.0], {"dtype": FLOAT})
    grad = back.node("nll_loss_backward", [value(one), value(0), value(1), None, 2, -100, value(2)])
    grad = back.node("_log_softmax_backward_data", [value(grad), value(0), 1, FLOAT])
    transposed = back.node("t", [value(3)])
    hidden = back.node("mm", [value(grad), value(transposed)])
    hidden = back.node("view", [value(hidden), [SAMPLES, POSITIONS, WIDTH]])
    back.give(input_grad_1=hidden, queued_0=grad)
    late = Graph(["queued:0", "saved:0", "saved:4"])
    transposed = late.node("t", [value(1)])
    weight = late.node("mm", [value(transposed), value(0)])
    table = late.node("embedding_dense_backward", [value(0), value(2), CLASSES, -1, False])
    late.give(parameter_grad_0=weight, parameter_grad_1=table)
    score = Graph(["input:1", "input:2", "parameter:0", "parameter:1"])
    _, _, logits = scores(score, 0, 1, 2, 3)
    score.give(output_0=score.node("view", [value(logits), [SAMPLES, POSITIONS, CLASSES]]))
    return {"forward": made(True).text(), "input_part": back.text(), "weight_part": late.text(),
            "evaluate": made(False).text(), "score": score.text(), "memory": memory(200, 80, 240)}


IDS = {"type": "int64", "shape": [POSITIONS]}
MASK = {"type": "bool", "shape": [POSITIONS]}
SCALE = {"type": "float32", "shape": [POSITIONS], "gradient": False}
HIDDEN = {"type": "float32", "shape": [POSITIONS, WIDTH]}
PARAMETERS = {
    "prepare": {"prepare.unused": [2]},
    "embed": {"embed.weight": [CLASSES, WIDTH]},
    "mix.0": {"mix.0.weight": [WIDTH, WIDTH]},
    "mix.1": {"mix.1.weight": [WIDTH, WIDTH]},
    "head": {"head.weight": [WIDTH, CLASSES], "head.table": [CLASSES, CLASSES]},
}


def layer(name, graph, outputs, flops):
    parameters = [{"name": each, "shape": shape, "decayed": False, "tied": False}
                  for each, shape in PARAMETERS[name].items()]
    return {"name": name, "graph": graph, "outputs": outputs, "parameters": parameters,
            "statistics": [], "constants": [], "flops_per_sample": flops,
            "input_part_flops_per_sample": flops, "weight_part_flops_per_sample": flops}


def weights():
    """A safetensors file with waves as values."""
    header, data = {}, b""
    for parameters in PARAMETERS.values():
        for name, shape in parameters.items():
            count = math.prod(shape)
            phase = len(data) // 4
            values = [math.sin(1.7 * (phase + k)) for k in range(count)]
            block = struct.pack(f"<{count}f", *values)
            header[name] = {"dtype": "F32", "shape": shape,
                            "data_offsets": [len(data), len(data) + len(block)]}
            data += block
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def main():
    stored = weights()
    mixed = [MASK, HIDDEN, IDS, SCALE]
    package = {
        "format": "motley-package", "version": 2, "made_by": "make_exact_package.py",
        "name": "exact", "input": IDS, "input_limit": CLASSES, "target": IDS,
        "target_limit": CLASSES, "ignored": None, "units_per_sample": POSITIONS, "unit": "sample",
        "aliases": {},
        "layers": [layer("prepare", 0, [IDS, MASK, SCALE], 0), layer("embed", 1, mixed, 0),
                   layer("mix.0", 2, mixed, 72), layer("mix.1", 2, mixed, 72),
                   layer("head", 3, [], 120)],
        "graphs": [prepare(), embed(), mix(), head()],
        "weights": {"file": "weights.safetensors", "bytes": len(stored),
                    "sha256": hashlib.sha256(stored).hexdigest()},
    }
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "weights.safetensors").write_bytes(stored)
    (FOLDER / "package.json").write_text(json.dumps(package, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
