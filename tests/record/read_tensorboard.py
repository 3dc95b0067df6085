#!/usr/bin/python3
"""read_tensorboard.py FILE…: prints TensorBoard event files, read with Google's protobuf and TensorFlow's public
schema.

Prints a line for each event: "step 3 train/loss=2.5 …", "version brain.Event:2", "start at 4". Checks every checksum.
Ends with 77 if python3-protobuf is missing. Independent of Motley's writer.
"""

import struct
import sys

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError as error:
    print(f"skipped: {error}; apt-get install python3-protobuf")
    sys.exit(77)

FIELD = descriptor_pb2.FieldDescriptorProto
# The subset of tensorflow/core/util/event.proto and tensorflow/core/framework/summary.proto that is read here.
SCHEMA = {
    "Event": [("wall_time", 1, FIELD.TYPE_DOUBLE, None), ("step", 2, FIELD.TYPE_INT64, None), ("file_version", 3, FIELD.TYPE_STRING, None),
              ("summary", 5, FIELD.TYPE_MESSAGE, "Summary"), ("session_log", 7, FIELD.TYPE_MESSAGE, "SessionLog")],
    "Summary": [("value", 1, FIELD.TYPE_MESSAGE, "Value")],
    "Value": [("tag", 1, FIELD.TYPE_STRING, None), ("simple_value", 2, FIELD.TYPE_FLOAT, None)],
    "SessionLog": [("status", 1, FIELD.TYPE_INT32, None)],
}


def event_class():
    file = descriptor_pb2.FileDescriptorProto(name="event.proto", package="t", syntax="proto3")
    for name, fields in SCHEMA.items():
        message = file.message_type.add(name=name)
        for field, number, kind, of in fields:
            label = FIELD.LABEL_REPEATED if (name, field) == ("Summary", "value") else FIELD.LABEL_OPTIONAL
            message.field.add(name=field, number=number, type=kind, label=label, type_name=f".t.{of}" if of else None)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    descriptor = pool.FindMessageTypeByName("t.Event")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(pool).GetPrototype(descriptor)


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    at = 0
    while at < len(data):
        length, crc = struct.unpack_from("<QI", data, at)
        assert crc == masked_crc(data[at:at + 8]), f"the length at byte {at} has another checksum"
        body = data[at + 12:at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked_crc(body), f"the data at byte {at} has another checksum"
        yield body
        at += 16 + length


def main():
    event_type = event_class()
    for path in sys.argv[1:]:
        with open(path, "rb") as file:
            for body in records(file.read()):
                event = event_type.FromString(body)
                if event.file_version:
                    print("version", event.file_version)
                if event.session_log.status:
                    print({1: "start at", 2: "stop at", 3: "checkpoint at"}[event.session_log.status], event.step)
                if event.summary.value:
                    print("step", event.step, *(f"{value.tag}={value.simple_value:g}" for value in event.summary.value))


main()
