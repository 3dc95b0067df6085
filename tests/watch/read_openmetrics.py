#!/usr/bin/python3
"""read_openmetrics.py < TEXT: prints metrics read by the Prometheus project's own parser of OpenMetrics.

Prints a line for each family: "motley_loss gauge 1" (name, type, samples). Ends with 77 if
python3-prometheus-client is missing. Independent of Motley's writer.
"""

import sys

try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
except ImportError as error:
    print(f"skipped: {error}; apt-get install python3-prometheus-client")
    sys.exit(77)

for family in text_string_to_metric_families(sys.stdin.read()):
    assert family.documentation, family.name
    assert not family.unit or family.name.endswith("_" + family.unit), family.name
    print(family.name, family.type, len(family.samples))
