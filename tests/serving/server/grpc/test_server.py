"""Over gRPC the local server answers, and refuses, as TensorFlow Serving does; and nothing that is sent ends it."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import grpc
import numpy as np
import pytest
import tensorflow as tf
from fake_example_model import CLASSIFY, PREDICT, REGRESS, SIGNATURES, ExampleModel
from fake_servables import wait_until
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tensorflow.core.example.example_pb2 import Example
from tensorflow_serving.apis import model_service_pb2_grpc, prediction_service_pb2_grpc
from tensorflow_serving.apis.classification_pb2 import ClassificationRequest
from tensorflow_serving.apis.get_model_metadata_pb2 import GetModelMetadataRequest, SignatureDefMap
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest, ModelVersionStatus
from tensorflow_serving.apis.inference_pb2 import MultiInferenceRequest
from tensorflow_serving.apis.model_management_pb2 import ReloadConfigRequest
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.regression_pb2 import RegressionRequest

from keras_bert_impl.errors import InputError
from keras_bert_impl.serving.server.batching import Batching
from keras_bert_impl.serving.server.grpc.server import GrpcServer
from keras_bert_impl.serving.server.models.load_error import LoadError
from keras_bert_impl.serving.server.models.store import ModelStore
from keras_bert_impl.serving.server.predictor import Predictor
from keras_bert_impl.serving.server.request_error import RequestError

MAX_BYTES = 200_000


class Server:
    """Everything but a real model, and stubs to ask it."""

    def __init__(self, folder, batching=None, **options):
        self.hold = None
        self.in_run = threading.Semaphore(0)
        self.records = []
        for number in (2, 5, 6):
            (folder / str(number)).mkdir(parents=True)
            (folder / str(number) / "saved_model.pb").touch()
        self.store = ModelStore({"m": folder}, load=self.load, poll_seconds=60)
        self.store.start()
        self.predictor = Predictor(self.store, batching, log=self.records.append, max_request_rows=100)
        self.grpc = GrpcServer(self.predictor, self.store, "127.0.0.1", 0, **{"max_body_bytes": MAX_BYTES, **options})
        self.grpc.start()
        self.channel, self.predictions, self.models = connect(f"127.0.0.1:{self.grpc.port}")

    def load(self, name, directory):
        if directory.name == "6":
            raise LoadError("/secret/path is torn", "It is torn", "DATA_LOSS")
        return ExampleModel(name, int(directory.name), self.before_run)

    def before_run(self, inputs):
        self.in_run.release()
        if self.hold is not None:
            assert self.hold.wait(20)

    def close(self):
        self.channel.close()
        self.grpc.stop(5)
        self.store.close()


def connect(target):
    channel = grpc.insecure_channel(target, [("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1)])
    predictions = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    return channel, predictions, model_service_pb2_grpc.ModelServiceStub(channel)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with contextlib.closing(Server(tmp_path_factory.mktemp("grpc") / "m")) as server:
        yield server


@pytest.fixture(scope="module")
def small(small_local_server):
    """A real model."""
    channel, predictions, _ = connect(small_local_server.grpc_target)
    with channel:
        yield predictions


def predict_request(inputs, model="m", signature="", output_filter=(), **version):
    request = PredictRequest(output_filter=output_filter)
    request.model_spec.CopyFrom(model_spec(model, signature, **version))
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return request


def model_spec(model="m", signature="", version=None, label=None):
    spec = ModelSpec(name=model, signature_name=signature)
    if version is not None:
        spec.version.value = version
    if label is not None:
        spec.version_label = label
    return spec


def examples_request(request_class, signature="", texts=("a", "bcd"), context=None, model="m"):
    request = request_class(model_spec=model_spec(model, signature))
    add_examples(request.input, texts, context)
    return request


def add_examples(kind, texts, context=None):
    kind = kind.example_list if context is None else kind.example_list_with_context
    if context is not None:
        kind.context.features.feature["context"].bytes_list.value.append(context)
    for text in texts:
        kind.examples.add().features.feature["text"].bytes_list.value.append(text.encode())


def refusal(method, request):
    with pytest.raises(grpc.RpcError) as error:
        method(request, timeout=30)
    return error.value.code().name, error.value.details()


# ------------------------------------------------------------------------------------------------ answers


def test_predict_answers_with_all_outputs_and_says_who_answered(server):
    answer = server.predictions.Predict(predict_request({"text": ["a", "héy"]}))
    assert tf.make_ndarray(answer.outputs["length"]).tolist() == [1, 4]
    assert tf.make_ndarray(answer.outputs["upper"]).tolist() == [b"A", "héy".encode().upper()]
    assert answer.outputs.keys() == {"length", "upper"}
    assert answer.model_spec == model_spec("m", "serving_default", version=5)


def test_predict_answers_with_the_outputs_that_are_asked_for(server):
    answer = server.predictions.Predict(predict_request({"text": ["a"]}, output_filter=["upper"], version=5))
    assert list(answer.outputs) == ["upper"]


def test_an_input_that_has_a_default_may_be_left_out(server):
    answer = server.predictions.Predict(predict_request({"a": np.float32([1])}, signature="scaled"))
    assert list(answer.outputs["sum"].float_val) == [11]
    both = predict_request({"a": np.float32([1]), "b": np.float32([2])}, signature="scaled")
    assert list(server.predictions.Predict(both).outputs["sum"].float_val) == [3]


def test_a_real_model_answers_all_its_types(small):
    answer = small.Predict(predict_request({"text": [b"h\xc3\xa9y", b""]}, "small"))
    outputs = {name: tf.make_ndarray(value) for name, value in answer.outputs.items()}
    assert outputs["length"].tolist() == [4, 0]
    assert outputs["long"].tolist() == [True, False]
    assert outputs["raw_bytes"].tolist() == [b"h\xc3\xa9y", b""]
    np.testing.assert_allclose(outputs["scaled"], [0.8, 0])
    assert answer.model_spec == model_spec("small", "serving_default", version=3)
    ids = {"token_ids": np.int32([[1, 2]]), "segment_ids": np.int32([[0, 1]])}
    answer = small.Predict(predict_request(ids, "small", "pairs"))
    np.testing.assert_allclose(tf.make_ndarray(answer.outputs["value"]), [[0.4, 1.6]], rtol=1e-6)


def test_classify_answers_with_labels_and_scores(server):
    answer = server.predictions.Classify(examples_request(ClassificationRequest, "labels"))
    assert answer.model_spec == model_spec("m", "labels", version=5)
    first, second = answer.result.classifications
    assert [found.label for found in first.classes] == ["long", "süß"]
    assert first.classes[0].score == -first.classes[1].score == second.classes[0].score - 2
    [row] = server.predictions.Classify(examples_request(ClassificationRequest, "scores", ["a"])).result.classifications
    assert [found.label for found in row.classes] == ["", ""]


def test_regress_answers_with_a_number_for_each_example(server):
    answer = server.predictions.Regress(examples_request(RegressionRequest, "value"))
    one, three = (row.value for row in answer.result.regressions)
    assert three == one + 2
    assert answer.model_spec == model_spec("m", "value", version=5)


def test_an_example_has_the_features_of_its_context(server):
    seen = []
    server.before_run = lambda inputs: seen.extend(inputs["inputs"].tolist())
    with server.store.lease("m") as model:
        model._before_run = server.before_run
    try:
        server.predictions.Regress(examples_request(RegressionRequest, "value", ["a"], context=b"c"))
    finally:
        del server.before_run
        model._before_run = server.before_run
    features = Example.FromString(seen[0]).features.feature
    assert {name: list(feature.bytes_list.value) for name, feature in features.items()} == {
        "context": [b"c"],
        "text": [b"a"],
    }


def multi_request(*tasks, model="m"):
    request = MultiInferenceRequest()
    add_examples(request.input, ["a"])
    for signature, method in tasks:
        request.tasks.add(model_spec=model_spec(model, signature), method_name=method)
    return request


def test_multi_inference_answers_each_task(server):
    request = multi_request(("labels", CLASSIFY), ("value", REGRESS))
    labels, value = server.predictions.MultiInference(request).results
    assert len(labels.classification_result.classifications[0].classes) == 2
    assert len(value.regression_result.regressions) == 1
    assert value.model_spec == model_spec("m", "value", version=5)


def test_metadata_has_the_signatures(server):
    request = GetModelMetadataRequest(model_spec=model_spec(), metadata_field=["signature_def"])
    answer = server.predictions.GetModelMetadata(request)
    signatures = SignatureDefMap()
    assert answer.metadata["signature_def"].Unpack(signatures)
    assert signatures.signature_def["labels"] == SIGNATURES["labels"].definition
    assert answer.model_spec == ModelSpec(name="m", version=answer.model_spec.version)
    assert answer.model_spec.version.value == 5


def test_status_has_all_versions_the_highest_first(server):
    answer = server.models.GetModelStatus(GetModelStatusRequest(model_spec=model_spec()))
    state = ModelVersionStatus.State
    known = [(status.version, status.state) for status in answer.model_version_status]
    assert known == [(6, state.END), (5, state.AVAILABLE)]
    torn = answer.model_version_status[0].status
    assert (torn.error_code, torn.error_message) == (15, "It is torn")
    [one] = server.models.GetModelStatus(GetModelStatusRequest(model_spec=model_spec(version=5))).model_version_status
    assert (one.version, one.status.error_code) == (5, 0)


# ------------------------------------------------------------------------------------------------ refusals

BROKEN = predict_request({"text": "a"})
BROKEN.inputs["text"].tensor_shape.dim.add(size=2**40)


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        (predict_request({}, signature="zzz"), "FAILED_PRECONDITION", 'Serving signature key "zzz" not found.'),
        (
            predict_request({}),
            "INVALID_ARGUMENT",
            "input size does not match signature: 0!=1 len({}) != len({text}). Sent extra: {}. "
            "Missing but required: {text}.",
        ),
        (
            predict_request({"x": 1, "text": "a"}),
            "INVALID_ARGUMENT",
            "input size does not match signature: 2!=1 len({text,x}) != len({text}). Sent extra: {x}. "
            "Missing but required: {}.",
        ),
        (
            predict_request({"x": ["a"]}),
            "INVALID_ARGUMENT",
            "Signature input alias: text(feed name: any:0) not found in request and no default value provided. "
            "Inputs expected to be in the request {x}, or default input alias set: ",
        ),
        (
            predict_request({"a": [1.0], "x": [1.0]}, signature="scaled"),
            "INVALID_ARGUMENT",
            "Inputs contains invalid name. Used request inputs: a, request input: a,x",
        ),
        (
            predict_request({"text": ["a"]}, output_filter=["zz"]),
            "INVALID_ARGUMENT",
            "output tensor alias not found in signature: zz Outputs expected to be in the set {length,upper}.",
        ),
        (
            predict_request({"text": ["a"]}, output_filter=["upper", "upper"]),
            "INVALID_ARGUMENT",
            "duplicate output tensor alias: upper",
        ),
        (predict_request({}, model="zz"), "NOT_FOUND", "Servable not found for request: Latest(zz)"),
        (predict_request({}, version=7), "NOT_FOUND", "Servable not found for request: Specific(m, 7)"),
        (predict_request({}, version=0), "NOT_FOUND", "Servable not found for request: Specific(m, 0)"),
        (predict_request({}, label="stable"), "INVALID_ARGUMENT", "Unrecognized servable version label: stable"),
        (predict_request({}, model=""), "INVALID_ARGUMENT", "ModelSpec has no name specified."),
        (PredictRequest(), "INVALID_ARGUMENT", "Missing ModelSpec"),
        (
            BROKEN,
            "INVALID_ARGUMENT",
            f"tensor parsing error: text: its shape [{2**40}] takes more than the 200000 bytes that are allowed",
        ),
        (
            predict_request({"text": ["a"] * 101}),
            "INVALID_ARGUMENT",
            "Task size 101 is larger than maximum input batch size 100",
        ),
        (predict_request({"text": ["bad"]}), "INVALID_ARGUMENT", "No such text: bad"),
        (predict_request({"text": ["crash"]}), "INTERNAL", "Internal error"),
    ],
)
def test_each_wrong_predict_request_has_the_real_servers_code_and_text(server, request_, code, message):
    assert refusal(server.predictions.Predict, request_) == (code, message)
    assert server.records[-1].code == code


@pytest.mark.parametrize(
    ("inputs", "signature", "message"),
    [
        ({"text": np.int32([1])}, "", "Expects arg[0] to be string but int32 is provided"),
        ({"x": np.float64([[1]])}, "decimals", "Expects arg[0] to be float but double is provided"),
        (
            {"token_ids": np.int32([[1]]), "segment_ids": np.int64([[1]])},
            "pairs",
            "Expects arg[0] to be int32 but int64 is provided",
        ),
        (
            {"token_ids": np.int32([[9]]), "segment_ids": np.int32([[1]])},
            "pairs",
            "indices[0,0] = 9 is not in [0, 4)",
        ),
        ({"text": [[["a"]]]}, "", "(1, 1, 1)"),
        ({"x": np.float32(1)}, "decimals", "()"),
    ],
)
def test_each_wrong_tensor_is_refused_by_a_real_model(small, inputs, signature, message):
    code, details = refusal(small.Predict, predict_request(inputs, "small", signature))
    assert code == "INVALID_ARGUMENT"
    assert message in details
    assert_tells_nothing(details)


@pytest.mark.parametrize(
    ("method", "request_", "message"),
    [
        (
            "Classify",
            examples_request(ClassificationRequest),
            "No classification inputs found in SignatureDef: inputs {",
        ),
        ("Regress", examples_request(RegressionRequest), "No regression inputs found in SignatureDef: inputs {"),
        ("Classify", examples_request(ClassificationRequest, "q"), "No signature was found with the name: q"),
        ("Classify", examples_request(ClassificationRequest, "two"), "Expected one input Tensor."),
        ("Classify", examples_request(ClassificationRequest, "many"), "Expected one or two output Tensors, found 3"),
        ("Regress", examples_request(RegressionRequest, "many"), "Expected one output Tensor."),
        (
            "Classify",
            examples_request(ClassificationRequest, "other"),
            'Expected classification signature outputs to contain at least one of "classes" or "scores". Signature was',
        ),
        ("Regress", examples_request(RegressionRequest, "other"), "No regression outputs found in SignatureDef: "),
        ("Classify", examples_request(ClassificationRequest, "labels", []), "Input is empty."),
        ("Classify", ClassificationRequest(), "Missing ModelSpec"),
        ("Regress", RegressionRequest(), "Missing ModelSpec"),
        (
            "Classify",
            examples_request(ClassificationRequest, "flat"),
            "Expected Tensor shape: [batch_size num_classes] but got [2]",
        ),
        (
            "Classify",
            examples_request(ClassificationRequest, "named"),
            "Expected classes Tensor of DT_STRING. Got: DT_INT32",
        ),
        (
            "Classify",
            examples_request(ClassificationRequest, "uneven"),
            "Tensors class and score should match in dim_size(1). Got 2 vs. 1",
        ),
        (
            "Regress",
            examples_request(RegressionRequest, "short"),
            "Input batch size did not match output batch size: 2 vs. 1",
        ),
        ("MultiInference", MultiInferenceRequest(), "ModelSpec has no name specified."),
        (
            "MultiInference",
            multi_request(("value", REGRESS), ("value", REGRESS)),
            "Duplicate evaluation of signature: value",
        ),
        ("MultiInference", multi_request(("q", REGRESS)), "Requested signature not found in model graph: q"),
        (
            "MultiInference",
            multi_request(("serving_default", CLASSIFY)),
            "No classification inputs found in SignatureDef: inputs {",
        ),
        ("GetModelMetadata", GetModelMetadataRequest(metadata_field=["signature_def"]), "Missing ModelSpec"),
        (
            "GetModelMetadata",
            GetModelMetadataRequest(model_spec=model_spec()),
            "GetModelMetadataRequest must specify at least one metadata_field",
        ),
        (
            "GetModelMetadata",
            GetModelMetadataRequest(model_spec=model_spec(), metadata_field=["graph"]),
            "Metadata field graph is not supported",
        ),
    ],
)
def test_each_other_wrong_request_has_its_text(server, method, request_, message):
    code, details = refusal(getattr(server.predictions, method), request_)
    assert code == "INVALID_ARGUMENT"
    assert details.startswith(message)
    assert server.records[-1].method == method


def test_a_task_of_another_kind_or_model_is_refused(server):
    code, details = refusal(server.predictions.MultiInference, multi_request(("serving_default", PREDICT)))
    assert (code, details) == ("UNIMPLEMENTED", f"Unsupported signature method_name: {PREDICT}")
    request = multi_request(("value", REGRESS), ("scores", CLASSIFY))
    request.tasks[1].model_spec.name = "other"
    assert "must access the same model name" in refusal(server.predictions.MultiInference, request)[1]


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        (GetModelStatusRequest(), "INVALID_ARGUMENT", "Missing ModelSpec"),
        (GetModelStatusRequest(model_spec=model_spec("zz")), "NOT_FOUND", "Could not find any versions of model zz"),
        (
            GetModelStatusRequest(model_spec=model_spec(version=7)),
            "NOT_FOUND",
            "Could not find version 7 of model m",
        ),
    ],
)
def test_each_wrong_status_request_has_its_code_and_text(server, request_, code, message):
    assert refusal(server.models.GetModelStatus, request_) == (code, message)


def test_the_models_are_not_changed_from_outside(server):
    request = ReloadConfigRequest()
    code, details = refusal(server.models.HandleReloadConfigRequest, request)
    assert (code, details[:37]) == ("INVALID_ARGUMENT", "ServerModelConfig type not supported ")
    request.config.model_config_list.config.add(name="m", base_path="/tmp")
    code, details = refusal(server.models.HandleReloadConfigRequest, request)
    assert (code, details[:37]) == ("UNIMPLEMENTED", "The models of this local server are n")


def test_long_error_texts_are_cut(server):
    _, details = refusal(server.predictions.Predict, predict_request({}, signature="é" * 5000))
    assert details.endswith("é...TRUNCATED") and len(details) == 1024 + len("...TRUNCATED")


def test_a_message_over_the_limit_is_refused(server):
    request = predict_request({"text": [b"x" * (MAX_BYTES + 1)]})
    assert refusal(server.predictions.Predict, request)[0] == "RESOURCE_EXHAUSTED"
    with pytest.raises(grpc.RpcError) as error:
        server.predictions.Predict(request, compression=grpc.Compression.Gzip)
    assert error.value.code().name == "RESOURCE_EXHAUSTED"


def test_unknown_methods_are_unimplemented(server):
    for path in ("/tensorflow.serving.PredictionService/Explain", "/tensorflow.serving.SessionService/SessionRun"):
        assert refusal(server.channel.unary_unary(path), b"")[0] == "UNIMPLEMENTED"


# ------------------------------------------------------------------------------------------------ robustness

METHODS = [
    *(f"PredictionService/{name}" for name in ("Predict", "Classify", "Regress", "MultiInference", "GetModelMetadata")),
    *(f"ModelService/{name}" for name in ("GetModelStatus", "HandleReloadConfigRequest")),
]
CODES = {"INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION", "INTERNAL", "UNIMPLEMENTED"}


def assert_tells_nothing(details):
    for sign in ("Traceback", 'File "', "/secret", "/tmp", "/work", "site-packages", ".py"):
        assert sign not in details


def assert_answered_or_refused(channel, method, data):
    try:
        channel.unary_unary(f"/tensorflow.serving.{method}")(data, timeout=30)
    except grpc.RpcError as error:
        assert error.code().name in CODES
        assert error.details() != "Internal error"
        assert_tells_nothing(error.details())


def test_a_message_that_is_none_is_refused(server):
    for method in METHODS:
        code, details = refusal(server.channel.unary_unary(f"/tensorflow.serving.{method}"), b"\xff\xff")
        assert (code, details.rpartition(" ")[0]) == ("INTERNAL", "The message is no")


WHOLE = [
    predict_request({"text": ["a", "b"]}, output_filter=["upper"], version=5),
    predict_request({"a": [1.0], "b": [2.0]}, signature="sums"),
    examples_request(ClassificationRequest, "labels", context=b"c"),
    multi_request(("labels", CLASSIFY), ("value", REGRESS)),
]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(METHODS), st.binary(max_size=60), st.sampled_from(WHOLE), st.randoms(use_true_random=False))
def test_no_bytes_end_the_server(server, method, noise, whole, random):
    data = bytearray(whole.SerializeToString())
    for byte in noise[:4]:
        data[random.randrange(len(data))] = byte
    for sent in (noise, bytes(data), bytes(data[: random.randrange(len(data))])):
        assert_answered_or_refused(server.channel, method, sent)
    assert server.predictions.Predict(predict_request({"text": ["a"]})).outputs["length"].int_val == [1]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["serving_default", "pairs", "decimals"]),
    st.dictionaries(
        st.sampled_from(["text", "x", "token_ids", "segment_ids"]),
        st.tuples(
            st.sampled_from([1, 3, 7, 9, 10, 14, 0, 99]),
            st.lists(st.integers(-1, 3) | st.just(2**62), max_size=3),
            st.lists(st.integers(-5, 5), max_size=4),
            st.lists(st.binary(max_size=4), max_size=4),
        ),
        max_size=3,
    ),
)
def test_no_tensors_end_a_real_model(small_local_server, small, signature, inputs):
    request = predict_request({}, "small", signature)
    for name, (dtype, shape, numbers, strings) in inputs.items():
        proto = request.inputs[name]
        proto.dtype = dtype
        for size in shape:
            proto.tensor_shape.dim.add(size=size)
        proto.int_val.extend(numbers)
        proto.float_val.extend(numbers)
        proto.string_val.extend(strings)
    try:
        small.Predict(request, timeout=30)
    except grpc.RpcError as error:
        assert error.code().name == "INVALID_ARGUMENT"
        assert_tells_nothing(error.details())
    assert small.Predict(predict_request({"text": ["a"]}, "small")).outputs["length"].int_val == [1]


def test_requests_at_the_same_time_get_their_own_answers(server):
    def ask(i):
        answer = server.predictions.Predict(predict_request({"text": ["x" * (i % 17), "yy"]}))
        return list(answer.outputs["length"].int_val)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(200))) == [[i % 17, 2] for i in range(200)]


# ------------------------------------------------------------------------------------------------ beginning and end


def test_a_port_that_is_taken_is_a_sentence(server):
    with pytest.raises(InputError, match=rf"`grpc_port` must be one .* Received: grpc_port={server.grpc.port}"):
        GrpcServer(server.predictor, server.store, "127.0.0.1", server.grpc.port)


def test_a_request_whose_time_is_over_is_not_begun(server):
    late = SimpleNamespace(time_remaining=lambda: -0.1, is_active=lambda: False)
    with pytest.raises(RequestError) as error:
        server.grpc._answer("Predict", PredictRequest, lambda request: 1 / 0, b"", late)
    assert error.value.code == "DEADLINE_EXCEEDED"


def test_what_a_client_that_does_not_wait_asked_for_is_not_run(tmp_path):
    with contextlib.closing(Batching(threads=1)) as batching:
        with contextlib.closing(Server(tmp_path / "m", batching=batching)) as server:
            server.hold = threading.Event()
            held = server.predictions.Predict.future(predict_request({"text": ["kept"]}))
            assert server.in_run.acquire(timeout=20)
            left = server.predictions.Predict.future(predict_request({"text": ["left"]}))
            wait_until(lambda: batching._waiting)
            left.cancel()
            wait_until(lambda: not batching._waiting[0].wanted())
            server.hold.set()
            assert held.result(20).outputs["length"].int_val == [4]
            wait_until(lambda: len(server.records) == 2)
            assert {record.code for record in server.records} == {"OK", "CANCELLED"}
        assert not server.in_run.acquire(blocking=False)


def test_a_client_that_does_not_wait_does_not_disturb_others(tmp_path):
    with contextlib.closing(Server(tmp_path / "m")) as server:
        server.hold = threading.Event()
        request = predict_request({"text": ["a"]})
        with pytest.raises(grpc.RpcError) as error:
            server.predictions.Predict(request, timeout=0.2)
        assert error.value.code().name == "DEADLINE_EXCEEDED"
        server.hold.set()
        assert server.predictions.Predict(request, timeout=20).outputs["length"].int_val == [1]


def test_an_answer_that_came_too_late_is_told_of_as_the_client_saw_it(tmp_path):
    with contextlib.closing(Server(tmp_path / "m")) as server:
        server.hold = threading.Event()
        asked = server.predictions.Predict.future(predict_request({"text": ["late"]}), timeout=1)
        assert server.in_run.acquire(timeout=20)
        assert asked.exception(20).code().name == "DEADLINE_EXCEEDED"
        server.hold.set()
        wait_until(lambda: server.records)
        assert [record.code for record in server.records] == ["DEADLINE_EXCEEDED"]


def test_requests_beyond_those_in_work_are_refused(tmp_path):
    with contextlib.closing(Server(tmp_path / "m", max_requests=1)) as server:
        server.hold = threading.Event()
        request = predict_request({"text": ["a"]})
        held = server.predictions.Predict.future(request)
        assert server.in_run.acquire(timeout=20)
        assert refusal(server.predictions.Predict, request)[0] == "RESOURCE_EXHAUSTED"
        server.hold.set()
        assert held.result(20).outputs["length"].int_val == [1]


def test_accepted_requests_are_answered_when_the_server_stops(tmp_path):
    with contextlib.closing(Server(tmp_path / "m")) as server:
        server.hold = threading.Event()
        request = predict_request({"text": ["a"]})
        held = [server.predictions.Predict.future(request) for _ in range(3)]
        for _ in held:
            assert server.in_run.acquire(timeout=20)
        stopping = threading.Thread(target=server.grpc.stop, args=(20,))
        stopping.start()
        with pytest.raises(grpc.RpcError):
            while True:
                server.predictions.Predict(request, timeout=0.5)
        server.hold.set()
        assert [answer.result(20).outputs["length"].int_val for answer in held] == [[1]] * 3
        stopping.join(20)
        assert not stopping.is_alive()
