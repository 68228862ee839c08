"""The methods of TensorFlow Serving's PredictionService and ModelService: message in, message out."""

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from google.protobuf.message import Message
from tensorflow.core.protobuf import error_codes_pb2
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    model_management_pb2,
    model_pb2,
    predict_pb2,
    regression_pb2,
)

from ..classification import check_classification, check_regression, classify, regress
from ..models.loaded_version import LoadedVersion
from ..models.signature import Signature
from ..models.store import ModelStore
from ..predictor import Predictor
from ..request_error import RequestError
from .tensor_proto import from_array, to_array

_CLASSIFY, _REGRESS = "tensorflow/serving/classify", "tensorflow/serving/regress"
_METADATA = "signature_def"


class Services:
    """The methods of both services: message in, message out."""

    def __init__(self, predictor: Predictor, store: ModelStore, max_bytes: int) -> None:
        self._predictor = predictor
        self._store = store
        self._max_bytes = max_bytes

    def predict(self, request: predict_pb2.PredictRequest) -> predict_pb2.PredictResponse:
        """Runs a signature."""
        with self._lease(request) as servable:
            name = _signature_name(request.model_spec)
            if name not in servable.signatures:
                raise RequestError(f'Serving signature key "{name}" not found.', "FAILED_PRECONDITION")
            signature = servable.signatures[name]
            inputs = self._inputs(request.inputs, signature)
            wanted = _wanted(request.output_filter, signature)
            outputs = self._predictor.run(servable, name, inputs, wanted)
        response = predict_pb2.PredictResponse(model_spec=_answering(request.model_spec, servable))
        for name, array in outputs.items():
            response.outputs[name].CopyFrom(from_array(array))
        return response

    def classify(self, request: classification_pb2.ClassificationRequest) -> classification_pb2.ClassificationResponse:
        """Returns labels and scores of examples."""
        with self._lease(request) as servable:
            result = classify(self._predictor, servable, _signature_name(request.model_spec), request.input)
        model_spec = _answering(request.model_spec, servable)
        return classification_pb2.ClassificationResponse(model_spec=model_spec, result=result)

    def regress(self, request: regression_pb2.RegressionRequest) -> regression_pb2.RegressionResponse:
        """Returns a number for each example."""
        with self._lease(request) as servable:
            result = regress(self._predictor, servable, _signature_name(request.model_spec), request.input)
        model_spec = _answering(request.model_spec, servable)
        return regression_pb2.RegressionResponse(model_spec=model_spec, result=result)

    def multi_inference(self, request: inference_pb2.MultiInferenceRequest) -> inference_pb2.MultiInferenceResponse:
        """Classifies and regresses the same examples."""
        response = inference_pb2.MultiInferenceResponse()
        with self._lease_for(asked_model(request)) as servable:
            _check_tasks(request.tasks, servable)
            for task in request.tasks:
                name = _signature_name(task.model_spec)
                result = response.results.add(model_spec=_answering(task.model_spec, servable))
                if task.method_name == _CLASSIFY:
                    classified = classify(self._predictor, servable, name, request.input)
                    result.classification_result.CopyFrom(classified)
                else:
                    result.regression_result.CopyFrom(regress(self._predictor, servable, name, request.input))
        return response

    def get_model_metadata(
        self, request: get_model_metadata_pb2.GetModelMetadataRequest
    ) -> get_model_metadata_pb2.GetModelMetadataResponse:
        """Returns a version's signatures."""
        _check_model_spec(request)
        if not request.metadata_field:
            raise RequestError("GetModelMetadataRequest must specify at least one metadata_field")
        for field in request.metadata_field:
            if field != _METADATA:
                raise RequestError(f"Metadata field {field} is not supported")
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        with self._lease(request) as servable:
            response.model_spec.name = request.model_spec.name
            response.model_spec.version.value = servable.version
            response.metadata[_METADATA].Pack(servable.signature_def_map())
        return response

    def get_model_status(
        self, request: get_model_status_pb2.GetModelStatusRequest
    ) -> get_model_status_pb2.GetModelStatusResponse:
        """Returns the states of a model's versions."""
        _check_model_spec(request)
        spec = request.model_spec
        response = get_model_status_pb2.GetModelStatusResponse()
        for known in self._store.status(spec.name, spec.version.value if spec.HasField("version") else None):
            status = response.model_version_status.add(version=known.version)
            status.state = get_model_status_pb2.ModelVersionStatus.State.Value(known.state)
            status.status.error_code = error_codes_pb2.Code.Value(known.code)
            status.status.error_message = known.message
        return response

    def handle_reload_config_request(self, request: model_management_pb2.ReloadConfigRequest) -> Message:
        """Refuses the request: the models are named at the start."""
        if not request.config.HasField("model_config_list"):
            raise RequestError(
                "ServerModelConfig type not supported by HandleReloadConfigRequest."
                " Only ModelConfigList is currently supported"
            )
        raise RequestError(
            "The models of this local server are named at its start. It finds new versions of them by itself",
            "UNIMPLEMENTED",
        )

    def _lease(self, request: Any) -> AbstractContextManager[LoadedVersion]:
        _check_model_spec(request)
        return self._lease_for(request.model_spec)

    def _lease_for(self, spec: model_pb2.ModelSpec) -> AbstractContextManager[LoadedVersion]:
        if not spec.name:
            raise RequestError("ModelSpec has no name specified.")
        choice = spec.WhichOneof("version_choice")
        version = spec.version.value if choice == "version" else None
        return self._predictor.lease(spec.name, version, spec.version_label if choice == "version_label" else None)

    def _inputs(self, tensors: Mapping[str, Any], signature: Signature) -> dict[str, np.ndarray]:
        defaults = signature.definition.defaults
        missing = signature.inputs.keys() - tensors.keys()
        extra = tensors.keys() - signature.inputs.keys()
        if len(extra) > len(missing) or (len(extra) < len(missing) and not defaults):
            raise RequestError(
                f"input size does not match signature: {len(tensors)}!={len(signature.inputs)} "
                f"len({_set(tensors)}) != len({_set(signature.inputs)}). Sent extra: {_set(extra)}. "
                f"Missing but required: {_set(missing)}."
            )
        for alias in sorted(missing - defaults.keys()):
            raise RequestError(
                f"Signature input alias: {alias}(feed name: {signature.inputs[alias].tensor}) not found in request and"
                f" no default value provided. Inputs expected to be in the request {_set(tensors)}, or default input"
                f" alias set: {','.join(sorted(defaults))}"
            )
        if extra:
            raise RequestError(
                f"Inputs contains invalid name. Used request inputs: {','.join(sorted(tensors.keys() - extra))},"
                f" request input: {','.join(sorted(tensors))}"
            )
        arrays = {}
        for alias in signature.inputs:
            try:
                arrays[alias] = to_array(defaults[alias] if alias in missing else tensors[alias], self._max_bytes)
            except RequestError as error:
                raise RequestError(f"tensor parsing error: {alias}: {error}") from None
        return arrays


def _wanted(output_filter: Collection[str], signature: Signature) -> set[str] | None:
    wanted: set[str] = set()
    for name in output_filter:
        if name not in signature.outputs:
            raise RequestError(
                f"output tensor alias not found in signature: {name} Outputs expected to be in the set "
                f"{_set(signature.outputs)}."
            )
        if name in wanted:
            raise RequestError(f"duplicate output tensor alias: {name}")
        wanted.add(name)
    return wanted or None


def _check_tasks(tasks: Collection[inference_pb2.InferenceTask], servable: LoadedVersion) -> None:
    names: set[str] = set()
    for task in tasks:
        if not task.model_spec.name:
            raise RequestError("Found ModelSpec with an empty model name.")
        if task.model_spec.name != servable.name:
            raise RequestError("All ModelSpecs in a MultiInferenceRequest must access the same model name.")
        name = _signature_name(task.model_spec)
        if name in names:
            raise RequestError(f"Duplicate evaluation of signature: {name}")
        names.add(name)
        if name not in servable.signatures:
            raise RequestError(f"Requested signature not found in model graph: {name}")
        if task.method_name not in (_CLASSIFY, _REGRESS):
            raise RequestError(f"Unsupported signature method_name: {task.method_name}", "UNIMPLEMENTED")
        check = check_classification if task.method_name == _CLASSIFY else check_regression
        check(servable.signatures[name])
    tensors = {servable.signatures[name].inputs["inputs"].tensor for name in names}
    if len(tensors) > 1:
        raise RequestError("Input tensor must be the same for all Signatures.")


def _check_model_spec(request: Any) -> None:
    if not request.HasField("model_spec"):
        raise RequestError("Missing ModelSpec")


def asked_model(request: Any) -> model_pb2.ModelSpec:
    """Returns what the request says of the model that it is for; empty if it says nothing."""
    if isinstance(request, inference_pb2.MultiInferenceRequest):
        request = request.tasks[0] if request.tasks else None
    return getattr(request, "model_spec", model_pb2.ModelSpec())


def _signature_name(spec: model_pb2.ModelSpec) -> str:
    return spec.signature_name or "serving_default"


def _answering(asked: model_pb2.ModelSpec, servable: LoadedVersion) -> model_pb2.ModelSpec:
    answering = model_pb2.ModelSpec(name=asked.name, signature_name=_signature_name(asked))
    answering.version.value = servable.version
    return answering


def _set(names: Collection[str]) -> str:
    return f"{{{','.join(sorted(names))}}}"
