#!/usr/bin/env python3
"""Reads the parameters of a checkpoint by docs/formats/checkpoint.md alone, with Python's standard library.

read_checkpoint.py FOLDER: checks the layout of every file against the manifest and the index, and prints
one line per parameter, sorted by name: name, shape, the 32-bit patterns of its first and last values, and
their sum modulo 2^64. It does not compute the XXH3 hashes, which the standard library lacks.
"""

import array
import json
import os
import struct
import sys


def read_safetensors(path):
    """The tensors of a file by name: (shape, values)."""
    with open(path, "rb") as file:
        data = file.read()
    (header_bytes,) = struct.unpack_from("<Q", data)
    assert header_bytes % 8 == 0 and data[8:9] == b"{", path
    header = json.loads(data[8 : 8 + header_bytes].decode("utf-8"))
    assert header.pop("__metadata__") == {"format": "pt"}, path
    body = memoryview(data)[8 + header_bytes :]
    tensors, place = {}, 0
    for name, entry in header.items():  # in byte order
        begin, end = entry["data_offsets"]
        count = 1
        for size in entry["shape"]:
            count *= size
        assert entry["dtype"] == "F32" and begin == place and end - begin == 4 * count, (path, name)
        values = array.array("I")
        values.frombytes(body[begin:end])
        tensors[name] = (entry["shape"], values)
        place = end
    assert place == len(body), path
    return tensors


def read_checkpoint(folder):
    """All parameters by name, and the names of the optimizer's tensors."""
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    assert manifest["format"] == "motley.checkpoint" and manifest["version"] in (1, 2)
    assert list(manifest)[-1] == "hash"
    named = {file["name"] for file in manifest["files"]}
    assert set(os.listdir(folder)) == named | {"manifest.json"}
    with open(os.path.join(folder, "model.safetensors.index.json"), encoding="utf-8") as file:
        index = json.load(file)
    parameters, state = {}, []
    for file in manifest["files"]:
        path = os.path.join(folder, file["name"])
        assert os.path.getsize(path) == file["bytes"], path
        if not file["name"].endswith(".safetensors"):
            assert not file["tensors"]
            continue
        tensors = read_safetensors(path)
        assert sorted(tensors) == sorted(tensor["name"] for tensor in file["tensors"]), path
        if file["name"].startswith("optimizer-"):
            state += tensors
            continue
        for name, tensor in tensors.items():
            assert index["weight_map"][name] == file["name"] and name not in parameters, name
            parameters[name] = tensor
    assert set(index["weight_map"]) == set(parameters)
    total = sum(4 * len(values) for _, values in parameters.values())
    assert index["metadata"]["total_size"] == total
    members = {}
    for name in state:
        part, parameter = name.split("/", 1)
        assert parameter in parameters, name
        if part.startswith("residual."):
            members.setdefault(parameter, []).append(int(part[len("residual.") :]))
    for parameter, numbers in members.items():
        assert len(set(numbers)) == len(numbers), parameter
        assert manifest["version"] == 1 or sorted(numbers) == list(range(len(numbers))), parameter
    return parameters


def main():
    for name, (shape, values) in sorted(read_checkpoint(sys.argv[1]).items()):
        ends = f"{values[0]} {values[-1]}" if values else "- -"
        print(name, shape, ends, sum(values) % 2**64)


if __name__ == "__main__":
    main()
