import sys
from pathlib import Path

import pytest
from toy_data import toy_config

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.beam_prepare import prepare_with_beam


def test_without_beam_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    message = (
        r"`beam` needs Apache Beam: pip install 'keras-bert-impl\[beam\]', in .*\. Received: '--runner=DirectRunner'"
    )
    with pytest.raises(InputError, match=message):
        prepare_with_beam(toy_config(tmp_path), "--runner=DirectRunner")
