"""README.md of a deployment: how to start it, ask it, give it new versions, and what to keep in mind."""

import json
import os
import shlex
from pathlib import Path
from typing import Any

from . import compose, kubernetes, server_config
from .compose import REST_PORT
from .exported import Exported

FILE = "README.md"


def readme(export: Exported, output: Path, model_name: str, image: str) -> str:
    """Returns the page in Markdown."""
    description = export.description
    source = os.path.relpath(os.path.realpath(export.directory), os.path.realpath(output))
    url = f"http://127.0.0.1:{REST_PORT}/v1/models/{model_name}"
    example = description["signatures"]["serving_default"]["example"]
    name, tag = kubernetes.object_name(model_name), kubernetes.model_image(export, model_name)
    runs, rows, length = server_config.BATCHES_AT_ONCE, export.max_rows, description["max_length"]
    limit_mib = export.busy_mib(runs)
    weights_mib, run_mib = -(-export.weights_bytes // 2**20), -(-export.run_bytes // 2**20)
    local = f"keras-bert serve {shlex.quote(source)} --model-name {model_name}"
    return f"""\
# {model_name}: a model for {description["kind"]} on TensorFlow Serving

Written from version {export.version} of the export in `{source}` (as seen from here; weights SHA-256
`{description["weights_sha256"]}`). What the model is, how good, and all of its signatures: `README.md` and
`signature.json` in the version's `assets.extra`.

| file | |
|---|---|
| `{compose.FILE}` | the server `{image}` on one machine |
| `{server_config.MODELS}` | which model is served, by which name |
| `{server_config.BATCHING}` | how requests are joined |
| `{server_config.MONITORING}` | metrics for Prometheus at `{server_config.METRICS_PATH}` |
| `{kubernetes.DOCKERFILE}`, `{kubernetes.FILE}` | an example for a cluster |
| `deployment.json` | checksums of these files, by which the next export knows those that you have changed |
{_needs(description)}
## Start it and ask it

```sh
docker compose up --detach --wait
{curl(url, example["request"])}
```

The answer, to rounding:

```json
{json.dumps(example["answer"], ensure_ascii=False)}
```

`{url}` tells the state of the versions, `{url}/metadata` the signatures. gRPC is at port {compose.GRPC_PORT}.

A new version is exported into the same directory; it appears there whole. The server loads it within seconds, runs its
warm-up requests, and then lets the old one go. Copying one by other means? Under a name that is no number, and rename
it: the server takes every number for a finished version.

## Batching and padding

Requests to one signature that wait are joined into one run of up to {rows} rows, and an answer does not depend on those
of others, but for its width: where rows have several values, they are filled up (-1, 0 or an empty text) to the widest
of the run. A single request of more than {rows} rows is refused: send several.

- **Texts** ({_listed(_text_signatures(description))}) may be joined whatever their lengths.
- **Others** ({_listed(_shaped_signatures(description))}): where requests of different lengths meet in a run, all of
  them are refused: "Tensors with name … from different tasks have different shapes and padding is turned off". Send
  texts, or fill all rows up to one length yourself (of ids, {description["padding"]}; an empty text is no word), or
  serve them where batching is off.
- Never set `pad_variable_length_inputs`: the server fills rows up with their *first value*, which is no padding. The
  answers are wrong then, without an error.

## Memory

{export.waiting_mib:,} MiB are asked for: twice the weights ({weights_mib:,} MiB), since a new version is loaded while
the old one answers, and 512 MiB for the server. The limit is {limit_mib:,} MiB: besides, {runs} runs at once
of {rows} rows of {length} tokens, each about {run_mib:,} MiB. These are estimates from the model's sizes: watch what it
takes, and correct them. An export with a smaller `max_length` (an argument of `export_saved_model`, in Python)
needs less, if your texts are short.

## On a cluster

```sh
docker build --file {kubernetes.DOCKERFILE} --tag {tag} {shlex.quote(source)}
kubectl apply --filename {kubernetes.FILE}
kubectl port-forward service/{name} {REST_PORT}:{REST_PORT}
```

The image holds one version, so a new version is a new image. Push it to your registry and put its name there into
`{kubernetes.FILE}`.

## Without Docker

`{local}` answers alike on this machine, for development and tests.
"""


def curl(url: str, request: Any) -> str:
    """Returns a line that asks for predictions."""
    return f"curl --data {shlex.quote(json.dumps(request, ensure_ascii=False))} {url}:predict"


def _needs(description: dict[str, Any]) -> str:
    if not (operations := description.get("other_ops")):
        return ""
    return (
        f"\nThis export needs operations of tensorflow-text, {', '.join(f'`{name}`' for name in operations)}: a server "
        "without them does not load it. An export with `--tokenizer-ops core` needs none.\n"
    )


def _text_signatures(description: dict[str, Any]) -> list[str]:
    return [name for name in description["signatures"] if name not in _shaped_signatures(description)]


def _shaped_signatures(description: dict[str, Any]) -> list[str]:
    """Returns the signatures of which an input has more dimensions than that of the rows."""
    return [
        name
        for name, signature in description["signatures"].items()
        if any(len(spec["shape"]) > 1 for spec in signature["inputs"].values())
    ]


def _listed(names: list[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)
