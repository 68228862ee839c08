"""Every task on both real encoders: what an export answers is the Keras model's answer, whatever its neighbours.

`KERAS_BERT_REAL_TEXTS` says on how many texts: 200 take some twenty minutes of two cores. Without it two of the
sixteen exports are tried, on 36 texts.
"""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from real_models import HEADS, MODELS, asked, with_head
from real_texts import real_texts

from keras_bert_impl.serving.kinds import FILL_MASK, kind_of
from keras_bert_impl.serving.proof.clean_process import run
from keras_bert_impl.serving.proof.prove import compared, requests_for
from keras_bert_impl.serving.saved_model import export_saved_model

COUNT = int(os.environ.get("KERAS_BERT_REAL_TEXTS", "0"))
USUAL = {("tagging", "all-MiniLM-L6-v2"), ("fill-mask", "bert-tiny-splade-mlm")}


def batches(count: int) -> dict[str, list[int]]:
    """Every text alone, then in batches of 3 and of 32, each of mixed lengths."""
    mixed = [i * 67 % count for i in range(count)] if count % 67 else list(range(count))
    cases = {f"alone_{i}": [i] for i in range(count)}
    for size in (3, 32):
        cases |= {f"of_{size}_{i}": mixed[i : i + size] for i in range(0, count, size)}
    return cases


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("encoder", MODELS)
@pytest.mark.parametrize("name", HEADS)
def test_an_export_answers_real_texts_as_keras_does_whatever_their_neighbours(name, encoder, shared, tmp_path):
    if not COUNT and (name, encoder) not in USUAL:
        pytest.skip("takes long; set KERAS_BERT_REAL_TEXTS=200")
    source = with_head(name, shared / "models" / encoder, tmp_path / "model")
    version = export_saved_model(source, tmp_path / "exports")
    kind = kind_of(source)
    texts = asked(name, real_texts(shared, COUNT or 36))

    class OfRealTexts(kind.comparison):
        def example_texts(self):
            return texts

    comparison = OfRealTexts(kind.load(source), **({"top": 5} if kind is FILL_MASK else {}))
    version = Path(shutil.move(version, tmp_path / "elsewhere"))
    shutil.rmtree(source)

    cases = batches(comparison.count)
    requests = requests_for(comparison, cases, comparison.expected)
    answers, modules, other_ops = run(version, requests)
    assert other_ops == []
    assert not {"keras_bert_impl", "tensorflow_text"} & set(modules)
    record = compared(comparison, cases, requests, answers)
    worst = record["differences"]
    print(json.dumps({f"{encoder} {name} {key}": value for key, value in worst.items()}, indent=1))
    assert max(worst.values()) <= 1e-5, {key: value for key, value in worst.items() if value > 1e-5}
    assert np.isfinite(list(worst.values())).all()
