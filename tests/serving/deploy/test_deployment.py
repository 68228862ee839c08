"""The files of a deployment say what holds of the export, in words that the servers read."""

import copy
import http.server
import json
import re
import shlex
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
import yaml
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format, wrappers_pb2
from json_faults import faults_of

from keras_bert_impl.cli import main
from keras_bert_impl.errors import InputError
from keras_bert_impl.serving.deploy import deployment, exported
from keras_bert_impl.serving.deploy.compose import health_check
from keras_bert_impl.serving.deploy.deployment import IMAGE, write_deployment
from keras_bert_impl.serving.deploy.exported import Exported
from keras_bert_impl.serving.deploy.kubernetes import object_name
from keras_bert_impl.serving.deploy.readme import readme
from keras_bert_impl.serving.warm_up import Request, write

REQUEST = {"instances": ["it's a “fine” note — $HOME"]}
ANSWER = {"predictions": [{"label": "good"}]}
DESCRIPTION = {
    "kind": "classification",
    "config": {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "num_hidden_layers": 2},
    "weights_sha256": "0123abcd",
    "max_length": 100,
    "padding": "positions with id 0 are padding",
    "signatures": {
        "serving_default": {
            "inputs": {"text": {"dtype": "string", "shape": [-1]}},
            "example": {"request": REQUEST, "answer": ANSWER},
        },
        "token_ids": {
            "inputs": {"token_ids": {"dtype": "int32", "shape": [-1, -1]}},
            "example": {"request": {"inputs": {"token_ids": [[2, 3]]}}, "answer": {"outputs": {"label": ["good"]}}},
        },
    },
}
MIB = 2**20


def make_export(folder, description=DESCRIPTION, version=1, rows=(1, 40), weights=3 * MIB):
    directory = folder / str(version)
    (directory / "variables").mkdir(parents=True)
    (directory / "assets.extra").mkdir()
    (directory / "saved_model.pb").touch()
    with (directory / "variables" / "variables.data-00000-of-00001").open("wb") as file:
        file.truncate(weights)
    (directory / "assets.extra" / "signature.json").write_text(json.dumps(description), encoding="utf-8")
    requests = [Request("serving_default", {"text": np.array([b"a"] * count, object)}) for count in rows]
    write(directory, "bert", requests)
    return folder


@pytest.fixture
def export(tmp_path):
    return make_export(tmp_path / "models" / "export $1")


@pytest.fixture
def output(export, tmp_path):
    write_deployment(export, tmp_path / "deploy", model_name="Film_1")
    return tmp_path / "deploy"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A deployment that is only looked at."""
    folder = tmp_path_factory.mktemp("written")
    write_deployment(make_export(folder / "models" / "export $1"), folder / "deploy", model_name="Film_1")
    return folder / "deploy"


def message_class(name, **fields):
    """A class of TensorFlow Serving's that tensorflow-serving-api lacks, by the published names and numbers."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", package="serving", syntax="proto3")
    file.dependency.append("google/protobuf/wrappers.proto")
    message = file.message_type.add(name=name)
    for field_name, (number, kind) in fields.items():
        label = field.LABEL_REPEATED if kind == field.TYPE_INT64 else field.LABEL_OPTIONAL
        added = message.field.add(name=field_name, number=number, label=label)
        if isinstance(kind, str):
            added.type, added.type_name = field.TYPE_MESSAGE, kind
        else:
            added.type = kind
    if name == "MonitoringConfig":
        inner = file.message_type.add(name="PrometheusConfig")
        inner.field.add(name="enable", number=1, label=field.LABEL_OPTIONAL, type=field.TYPE_BOOL)
        inner.field.add(name="path", number=2, label=field.LABEL_OPTIONAL, type=field.TYPE_STRING)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(wrappers_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"serving.{name}"))


def read_batching(text):
    field, wrapped = descriptor_pb2.FieldDescriptorProto, ".google.protobuf.Int64Value"
    parameters = message_class(
        "BatchingParameters",
        max_batch_size=(1, wrapped),
        batch_timeout_micros=(2, wrapped),
        max_enqueued_batches=(3, wrapped),
        num_batch_threads=(4, wrapped),
        thread_pool_name=(5, ".google.protobuf.StringValue"),
        allowed_batch_sizes=(6, field.TYPE_INT64),
        pad_variable_length_inputs=(7, field.TYPE_BOOL),
    )
    return text_format.Parse(text, parameters())


def test_the_server_reads_which_model_is_served(written):
    config_pb2 = pytest.importorskip("tensorflow_serving.config.model_server_config_pb2")
    config = text_format.Parse((written / "models.config").read_text(), config_pb2.ModelServerConfig())
    [model] = config.model_config_list.config
    assert (model.name, model.base_path, model.model_platform) == ("Film_1", "/models/Film_1", "tensorflow")


def test_the_server_reads_how_requests_are_joined(written):
    parameters = read_batching((written / "batching_parameters.config").read_text())
    # Fewer rows than the largest warm-up request has, and the server would refuse the version.
    assert parameters.max_batch_size.value == 40
    assert parameters.batch_timeout_micros.value == 0
    assert parameters.num_batch_threads.value == 2
    assert parameters.max_enqueued_batches.value == 16
    assert not parameters.pad_variable_length_inputs
    assert not parameters.allowed_batch_sizes


def test_the_server_reads_where_its_metrics_are(written):
    monitoring = message_class("MonitoringConfig", prometheus_config=(1, ".serving.PrometheusConfig"))
    config = text_format.Parse((written / "monitoring.config").read_text(), monitoring()).prometheus_config
    assert (config.enable, config.path) == (True, "/monitoring/prometheus/metrics")


def files_named_by(arguments, output):
    named = dict(argument.removeprefix("--").split("=") for argument in arguments)
    assert named.pop("enable_batching") == "true"
    assert named.keys() == {"model_config_file", "batching_parameters_file", "monitoring_config_file"}
    names = [path.removeprefix("/config/") for path in named.values()]
    return {name: (output / name).read_text() for name in names}


def test_compose_finds_the_export_and_the_files(written):
    [service] = yaml.safe_load((written / "compose.yaml").read_text())["services"].values()
    assert service["image"] == IMAGE == "tensorflow/serving:2.20.0"
    assert len(files_named_by(service["command"], written)) == 3
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    model, config = service["volumes"]
    assert "$$1" in model["source"]
    assert (written / model["source"].replace("$$", "$")).resolve() == (written.parent / "models" / "export $1")
    assert (model["target"], model["read_only"]) == ("/models/Film_1", True)
    assert (written / config["source"]).resolve() == written.resolve()
    assert service["healthcheck"]["test"] == ["CMD", "bash", "-c", health_check("Film_1")]
    assert "$" not in health_check("Film_1")


@pytest.mark.parametrize(("state", "healthy"), [("AVAILABLE", True), ("LOADING", False), ("END", False)])
def test_the_health_check_sees_whether_a_version_is_available(state, healthy):
    asked = []

    class Status(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f'{{"model_version_status": [{{"version": "1", "state": "{state}"}}]}}'.encode())

        def log_message(self, *arguments):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Status)
    thread = threading.Thread(target=server.handle_request)
    thread.start()
    done = subprocess.run(["bash", "-c", health_check("Film_1", server.server_port)], timeout=20, check=False)
    thread.join()
    server.server_close()
    assert (done.returncode == 0, asked) == (healthy, ["/v1/models/Film_1"])
    done = subprocess.run(
        ["bash", "-c", health_check("Film_1", server.server_port)], stderr=subprocess.DEVNULL, check=False
    )
    assert done.returncode != 0


def test_a_cluster_gets_the_same_files_and_the_image_of_the_version(written):
    config, server, service = yaml.safe_load_all((written / "kubernetes.yaml").read_text())
    assert [one["kind"] for one in (config, server, service)] == ["ConfigMap", "Deployment", "Service"]
    assert {one["metadata"]["name"] for one in (config, server, service)} == {"film-1"}
    pod = server["spec"]["template"]
    assert server["spec"]["selector"]["matchLabels"] == service["spec"]["selector"] == pod["metadata"]["labels"]
    [container] = pod["spec"]["containers"]
    assert config["data"] == files_named_by(container["args"], written)
    [volume] = pod["spec"]["volumes"]
    assert volume["configMap"]["name"] == config["metadata"]["name"]
    [mount] = container["volumeMounts"]
    assert (mount["name"], mount["mountPath"]) == (volume["name"], "/config")
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"grpc": 8500, "rest": 8501}
    assert [(port["port"], port["targetPort"]) for port in service["spec"]["ports"]] == [(8500, "grpc"), (8501, "rest")]
    for probe in ("startupProbe", "readinessProbe"):
        assert container[probe]["httpGet"] == {"path": "/v1/models/Film_1", "port": "rest"}
    assert container["livenessProbe"]["tcpSocket"] == {"port": "grpc"}
    assert container["image"] == "film-1:1"
    dockerfile = (written / "Dockerfile").read_text()
    assert f"\nFROM {IMAGE}\nCOPY 1 /models/Film_1/1\n" in dockerfile
    assert "--tag film-1:1 " in dockerfile


@pytest.mark.parametrize(
    ("name", "expected"), [("bert", "bert"), ("My_Model.v2", "my-model-v2"), ("_-_", "model"), ("a" * 70, "a" * 50)]
)
def test_names_are_such_as_a_cluster_takes(name, expected):
    assert object_name(name) == expected


def test_memory_follows_the_weights_the_rows_and_their_length(tmp_path):
    small = Exported.from_path(make_export(tmp_path / "small"))
    heavy = Exported.from_path(make_export(tmp_path / "heavy", weights=103 * MIB))
    longer = Exported.from_path(make_export(tmp_path / "longer", {**DESCRIPTION, "max_length": 300}))
    wider = Exported.from_path(make_export(tmp_path / "wider", rows=(1, 80)))
    assert small.waiting_mib == 512 + 2 * 3
    assert heavy.waiting_mib - small.waiting_mib == 2 * 100
    assert small.run_bytes == 4 * 40 * 100 * (8 * 64 + 4 * 128 + 3 * 4 * 100)
    assert wider.run_bytes == 2 * small.run_bytes
    assert longer.run_bytes > 3 * small.run_bytes
    signatures = {**DESCRIPTION["signatures"], "attention": DESCRIPTION["signatures"]["serving_default"]}
    shown = Exported.from_path(make_export(tmp_path / "shown", {**DESCRIPTION, "signatures": signatures}))
    assert shown.run_bytes - small.run_bytes == 4 * 40 * 100 * (2 * 2 * 4 * 100)
    assert longer.busy_mib(2) == longer.waiting_mib - (-2 * longer.run_bytes // MIB)


def test_memory_is_the_same_in_all_files(written):
    found = Exported.from_path(written.parent / "models" / "export $1")
    _, server, _ = yaml.safe_load_all((written / "kubernetes.yaml").read_text())
    resources = server["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert resources["requests"] == {"cpu": "2", "memory": f"{found.waiting_mib}Mi"}
    assert resources["limits"] == {"memory": f"{found.busy_mib(2)}Mi"}
    service = yaml.safe_load((written / "compose.yaml").read_text())["services"]["model"]
    assert service["deploy"]["resources"]["limits"] == {"memory": f"{found.busy_mib(2)}M"}
    page = (written / "README.md").read_text()
    assert f"{found.waiting_mib} MiB are asked for" in page and f"The limit is {found.busy_mib(2)} MiB" in page


def test_the_page_has_the_exports_own_example_as_a_shell_reads_it(written):
    page = (written / "README.md").read_text(encoding="utf-8")
    [line] = [line for line in page.splitlines() if line.startswith("curl ")]
    command, option, body, url = shlex.split(line)
    assert (command, option, json.loads(body)) == ("curl", "--data", REQUEST)
    assert url == "http://127.0.0.1:8501/v1/models/Film_1:predict"
    assert json.dumps(ANSWER) in page
    assert "Never set `pad_variable_length_inputs`" in page
    assert "- **Texts** (`serving_default`)" in page and "- **Others** (`token_ids`)" in page
    assert "tensorflow-text" not in page


def test_the_page_names_every_file(written):
    page = (written / "README.md").read_text(encoding="utf-8")
    table = page[: page.index("## Start")]
    assert all(f"`{path.name}`" in table for path in written.iterdir() if path.name != "README.md")


def test_operations_that_a_server_may_lack_are_named(tmp_path):
    description = {**DESCRIPTION, "other_ops": ["TFText>One"]}
    write_deployment(make_export(tmp_path / "export", description), tmp_path / "deploy")
    page = (tmp_path / "deploy" / "README.md").read_text()
    assert "needs operations of tensorflow-text, `TFText>One`: a server" in page


def test_the_highest_version_is_described(export, output):
    make_export(export, version=12, rows=(64,))
    make_export(export, version=9, rows=(7,))
    write_deployment(export, output, model_name="Film_1")
    assert read_batching((output / "batching_parameters.config").read_text()).max_batch_size.value == 64
    assert "COPY 12 /models/Film_1/12" in (output / "Dockerfile").read_text()


def test_an_export_without_warm_up_requests_has_usual_batches(export):
    (export / "1" / "assets.extra" / "tf_serving_warmup_requests").unlink()
    assert Exported.from_path(export).max_rows == 32


def test_the_files_and_what_is_said(export, tmp_path):
    lines, output, image = [], tmp_path / "new" / "deploy", "registry.example:5000/serving:7"
    files = write_deployment(export, output, image=image, say=lines.append)
    assert all(path.is_file() for path in files) and len(files) == 7
    assert len(list(output.iterdir())) == 8
    assert lines == [f"Wrote 8 files for {image} to {output}; {output / 'README.md'} says how to use them."]
    assert f"image: {image}\n" in (output / "compose.yaml").read_text()


# ----------------------------------------------------------------------------------------- what others wrote is kept


def test_own_files_are_replaced_and_others_are_kept(export, output):
    (output / "notes.txt").write_text("mine")
    write_deployment(export, output, model_name="another")
    assert 'name: "another"' in (output / "models.config").read_text()
    assert (output / "notes.txt").read_text() == "mine"
    (output / "models.config").unlink()
    write_deployment(export, output, model_name="third")
    assert 'name: "third"' in (output / "models.config").read_text()


@pytest.mark.parametrize("kind", ["foreign", "changed", "directory", "link"])
def test_files_that_somebody_wrote_or_changed_are_never_replaced(export, tmp_path, kind):
    output = tmp_path / "deploy"
    output.mkdir()
    if kind == "changed":
        write_deployment(export, output)
    path = output / "compose.yaml"
    if kind == "directory":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(output / "elsewhere.yaml")
    else:
        path.write_text("services: {}")
    before = {file.name: file.read_bytes() for file in output.iterdir() if file.is_file()}
    with pytest.raises(InputError, match=r"`output_dir` must have no files of these names .* with compose.yaml$"):
        write_deployment(export, output, model_name="another")
    assert before == {file.name: file.read_bytes() for file in output.iterdir() if file.is_file()}


def test_the_same_call_goes_on_after_it_was_ended_on_the_way(export, output, monkeypatch):
    whole = deployment.atomic_file

    def ends(path):
        if path.name == "monitoring.config":
            raise KeyboardInterrupt
        return whole(path)

    monkeypatch.setattr(deployment, "atomic_file", ends)
    with pytest.raises(KeyboardInterrupt):
        write_deployment(export, output, model_name="another")
    monkeypatch.setattr(deployment, "atomic_file", whole)
    for name in ("another", "third"):
        write_deployment(export, output, model_name=name)
        assert f"/models/{name}" in (output / "Dockerfile").read_text()


def test_a_record_that_is_damaged_or_anothers_is_a_sentence(export, output):
    content = json.loads((output / "deployment.json").read_text())
    for text in faults_of({**content, "sha256": {"Dockerfile": content["sha256"]["Dockerfile"]}}):
        (output / "deployment.json").write_text(text)
        # Where the record still is one, the files are not those that it tells of.
        with pytest.raises(InputError, match="`output_dir` must have no "):
            write_deployment(export, output)


# ------------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model_name": "a/b"}, "`model_name` must be of letters, digits, .* Received: model_name='a/b'"),
        ({"model_name": 'a"'}, "`model_name` must be of letters, digits"),
        ({"model_name": ""}, "`model_name` must be of letters, digits"),
        ({"image": "a b"}, "`image` must be the name of a container image. Received: image='a b'"),
        ({"image": "a\nRUN b"}, "`image` must be the name of a container image"),
    ],
)
def test_each_wrong_option_has_its_sentence(export, tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        write_deployment(export, tmp_path / "deploy", **options)
    assert not (tmp_path / "deploy").exists()


def test_a_directory_that_is_none_is_refused(export, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"`output_dir` must be a directory. Received: '.*file', which is none"):
        write_deployment(export, tmp_path / "file")
    for nothing in (tmp_path / "absent", tmp_path / "file", tmp_path):
        with pytest.raises(InputError, match="`export_dir` must hold numbered version directories"):
            write_deployment(nothing, tmp_path / "deploy")


def test_an_export_that_is_not_described_is_a_sentence(export, tmp_path):
    path = export / "1" / "assets.extra" / "signature.json"
    described = {**copy.deepcopy(DESCRIPTION), "other_ops": ["A"]}
    del described["signatures"]["token_ids"]
    refused = accepted = 0
    for text in faults_of(described):
        path.write_text(text)
        try:
            description = exported._description(path)
        except InputError as error:
            assert str(error).startswith("`export_dir` must hold an export that `keras-bert export` wrote; export it")
            refused += 1
        else:
            readme(Exported(export, 1, description, 1, 32), tmp_path, "bert", IMAGE).encode()
            accepted += 1
    assert refused > 200 and accepted > 50
    path.unlink()
    with pytest.raises(InputError, match="`export_dir` must hold an export that `keras-bert export` wrote"):
        write_deployment(export, tmp_path / "deploy")


def test_the_command_says_what_is_wrong_before_it_reads_the_model(tmp_path, capsys):
    (tmp_path / "compose.yaml").write_text("mine")
    for options, message in (
        (["--deploy", tmp_path], "`output_dir` must have no files of these names"),
        (["--model-name", "film"], "`model_name` must be left out where no files of a server are written"),
        (["--format", "onnx", "--deploy", tmp_path / "new"], "`deploy` must be left out of an ONNX export"),
    ):
        assert main(["export", "no_model", str(tmp_path / "export"), *map(str, options)]) == 2
        assert message in capsys.readouterr().err


def test_the_command_writes_the_files_of_what_it_exported(tmp_path, monkeypatch, capsys):
    def exports(model, target, **options):
        assert (options.pop("tokenizer_ops"), options.pop("attention"), options.pop("top")) == ("core", True, None)
        make_export(Path(target), version=4)

    monkeypatch.setattr("keras_bert_impl.serving.saved_model.export_saved_model", exports)
    target, output = tmp_path / "export", tmp_path / "deploy"
    assert main(["export", "MODEL", str(target), "--attention", "--deploy", str(output), "--model-name", "film"]) == 0
    assert "COPY 4 /models/film/4" in (output / "Dockerfile").read_text()
    assert f"Wrote 8 files for {IMAGE} to {output}" in capsys.readouterr().out


def test_the_examples_of_the_page_run(tmp_path, monkeypatch, capsys):
    page = (Path(__file__).resolve().parents[3] / "docs" / "deployment.md").read_text(encoding="utf-8")
    make_export(tmp_path / "exports" / "film")
    monkeypatch.chdir(tmp_path)
    for block in page.split("```python\n")[1:]:
        exec(block.split("```")[0], {})
    assert capsys.readouterr().out == "serving_default 1 ['text']\nserving_default 40 ['text']\n"
    cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    named = {name for cell in cells for name in re.findall("`(.*?)`", cell)}
    assert {path.name for path in (tmp_path / "deploy").iterdir()} == named
