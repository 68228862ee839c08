"""`write_attention_picture`: a heat map for each head, with its tokens, in one file."""

import base64
import html
import importlib.util
import io
import re

import numpy as np
import pytest
from harness import arrays, small_config
from PIL import Image

from keras_bert_impl.attention_picture import write_attention_picture
from keras_bert_impl.attention_picture.attention import Attention, attention_of
from keras_bert_impl.attention_picture.colours import SHADES, palette, shade
from keras_bert_impl.attention_picture.page import attention_page
from keras_bert_impl.models import BertEncoder
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

VOCABULARY = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on mat ##s < script > $ & 人 は".split()
LAYERS, HEADS = 2, 3


def save_model(folder, vocabulary=VOCABULARY, pooler=True, **config):
    encoder = BertEncoder(small_config(initializer_range=0.5, **config), pooler=pooler)
    encoder.save_pretrained(folder, WordPieceTokenizer(vocabulary))
    return encoder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "little"
    save_model(folder)
    return folder


def drawn(model, tmp_path, text, **options):
    said = []
    path = write_attention_picture(model, text, tmp_path / "picture.html", say=said.append, **options)
    return path, said


def random_attention(layers, heads, tokens):
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.full(tokens, 0.3), (layers, heads, tokens)).astype("float32")
    return Attention("random", ("a text",), [f"token{i}" for i in range(tokens)], None, probabilities, "")


def images(page):
    """The shades of every image of a page."""
    for data in re.findall(r'href="data:image/png;base64,([^"]+)"', page):
        image = Image.open(io.BytesIO(base64.b64decode(data)))
        assert image.getpalette()[: 3 * SHADES] == palette().flatten().tolist()
        yield np.asarray(image)


# ---------------------------------------------------------------------------------- what is drawn


def test_attention_is_that_of_the_encoder_over_the_row_it_reads(model):
    attention = attention_of(model, ("the cats", "sat"))
    assert attention.tokens == ["[CLS]", "the", "cat", "##s", "[SEP]", "sat", "[SEP]"]
    assert attention.second_text == 5
    token_ids = [[VOCABULARY.index(token) for token in attention.tokens]]
    inputs = {"token_ids": token_ids, "segment_ids": [[0] * 5 + [1] * 2], "padding_mask": [[1] * 7]}
    encoder = BertEncoder.from_pretrained(model, return_attention=True)
    outputs = arrays(encoder({name: np.array(value, "int32") for name, value in inputs.items()}))
    np.testing.assert_allclose(attention.probabilities, outputs["attention_probabilities"][0], atol=1e-6)


def test_a_page_has_the_shades_of_every_head_under_its_name(model, tmp_path):
    path, said = drawn(model, tmp_path, "the cat sat on the mat")
    page = path.read_text(encoding="utf-8")
    heads = attention_of(model, ("the cat sat on the mat",)).probabilities
    found = list(images(page))
    assert len(found) == LAYERS * HEADS
    np.testing.assert_array_equal(np.reshape(found, heads.shape), shade(heads))
    names = re.findall(r'aria-label="(layer \d+, head \d+)"', page)
    assert names == [f"layer {i}, head {j}" for i in (1, 2) for j in (1, 2, 3)]
    assert all(page.count(f">{name}</a>") == 1 for name in names)
    assert said == [f"Attention of 2 layers with 3 heads each over 8 tokens: {path}"]


def test_a_page_has_its_tokens_on_both_axes_and_says_which_is_which(model, tmp_path):
    page = drawn(model, tmp_path, "the cats")[0].read_text(encoding="utf-8")
    labels = re.findall(r"<text [^>]+>([^<]+)</text>", page)
    assert labels == [token for token in ("[CLS]", "the", "cat", "##s", "[SEP]") for _ in range(2)]
    assert page.count('<use href="#labels"/>') == LAYERS * HEADS
    assert "The row is the token that looks, the column the token looked at" in page
    assert "earlier tokens, right of it ahead at later ones" in page


def test_a_page_says_how_much_goes_back_and_ahead():
    probabilities = np.array([[[[0.5, 0.5, 0], [0.25, 0.5, 0.25], [0, 1, 0]]]], "float32")
    page = attention_page(Attention("m", ("t",), ["a", "b", "c"], None, probabilities, ""))
    assert "back 42% · itself 33% · ahead 25%" in page


def test_a_page_needs_nothing_beside_it_and_what_users_wrote_does_nothing(tmp_path):
    folder = tmp_path / "<b>model"
    save_model(folder, [*VOCABULARY, "<script>"])
    text = "<script>alert(1)</script> & the cat"
    page = drawn(folder, tmp_path, text)[0].read_text(encoding="utf-8")
    assert not re.search(r"<(script|link|iframe|b)\b|url\(|@import|https?:|\son\w+=", page)
    assert html.escape(text) in page and ">&lt;</text>" in page
    assert set(re.findall(r'(?:href|src)="([^"]{5})', page)) <= {"data:", "#laye", "#labe"}
    # Were there a script all the same, the browser would not run it.
    assert "default-src 'none'" in page
    page = attention_page(random_attention(1, 1, 2)._replace(tokens=["<script>", "</text>"]))
    assert ">&lt;script&gt;</text>" in page and ">&lt;/text&gt;</text>" in page


def test_shades_tell_small_probabilities_apart_and_have_two_ends():
    shades = shade(np.array([0, 0.01, 0.02, 0.05, 0.1, 0.5, 1]))
    assert (np.diff(shades.astype(int)) > 1).all()
    assert shades[0] == 0 and shades[-1] == SHADES - 1 == len(palette()) - 1
    assert palette()[0].min() > 240 > 100 > palette()[-1].max()


# ------------------------------------------------------------------------------ letters and lengths


def test_a_page_leaves_every_letter_to_the_browser(model, tmp_path):
    page = drawn(model, tmp_path, "人 は 😀")[0].read_text(encoding="utf-8")
    assert re.findall(r"<text [^>]+>([^<]+)</text>", page)[2:-2:2] == ["人", "は", "[UNK]"]
    assert "人 は 😀" in page


def test_a_text_too_long_for_the_model_is_cut_and_that_is_said(model, tmp_path):
    path, said = drawn(model, tmp_path, "the cat sat on the mat " * 5, text_pair="sat " * 4)
    assert said[0] == "Cut to the 16 tokens that the model has positions for: 21 of 34 left out."
    assert "over 16 tokens" in said[1]
    assert f'<p class="warning">{said[0]}</p>' in path.read_text(encoding="utf-8")


def test_the_longer_text_of_a_pair_is_cut_first(model):
    attention = attention_of(model, ("the " * 20, "sat " * 4))
    assert attention.tokens == ["[CLS]", *["the"] * 9, "[SEP]", *["sat"] * 4, "[SEP]"]
    attention = attention_of(model, ("the " * 20, "sat " * 20))
    assert attention.tokens == ["[CLS]", *["the"] * 7, "[SEP]", *["sat"] * 6, "[SEP]"]


def test_twelve_layers_of_twelve_heads_over_forty_tokens_are_all_labelled_in_a_few_megabytes():
    page = attention_page(random_attention(12, 12, 40))
    assert len(page) < 2**20
    assert all(page.count(f">token{i}</text>") == 2 for i in range(40))


# ------------------------------------------------------------------------------------------ models


def test_reads_the_best_model_of_a_run_and_models_without_pooler(tmp_path):
    save_model(tmp_path / "run" / "model", pooler=False)
    path, said = drawn(tmp_path / "run", tmp_path, "the cat")
    assert path.is_file() and len(said) == 1


def test_is_as_told_where_the_default_dtype_is_another(model, tmp_path):
    import keras

    expected = attention_of(model, ("the cat",)).probabilities
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        np.testing.assert_array_equal(attention_of(model, ("the cat",)).probabilities, expected)
    finally:
        keras.config.set_dtype_policy(policy)


@pytest.mark.shared
def test_a_real_model_has_a_head_that_looks_at_the_token_before(shared, tmp_path):
    folder = shared / "models" / "all-MiniLM-L6-v2"
    attention = attention_of(folder, ("The animal didn't cross the street because it was too tired.",))
    assert attention.tokens[:4] == ["[CLS]", "the", "animal", "didn"]
    before = np.diagonal(attention.probabilities, -1, axis1=2, axis2=3).mean(-1)
    assert before.max() > 0.95 and np.unravel_index(before.argmax(), before.shape) == (0, 2)
    assert drawn(folder, tmp_path, "It was too tired.")[0].stat().st_size < 2**20


# ---------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    "text,options,message",
    [
        ("", {}, r"`text` must have at least one token\. Received: ''"),
        (" \n", {}, r"`text` must have at least one token\. Received: ' \\n'"),
        ("the cat", {"text_pair": ""}, r"`text_pair` must have at least one token\. Received: ''"),
        (5, {}, r"`text` must be a string\. Received: int"),
    ],
)
def test_refuses_texts_without_a_token(model, tmp_path, text, options, message):
    with pytest.raises(ValueError, match=message):
        drawn(model, tmp_path, text, **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["", ".png", ".htm"])
def test_refuses_other_suffixes(model, tmp_path, form):
    with pytest.raises(ValueError, match=rf"`output` must end in \.html\. Received: '.*picture{form}'"):
        write_attention_picture(model, "the cat", tmp_path / f"picture{form}")


def test_refuses_a_directory_without_a_vocabulary_or_an_encoder(model, tmp_path):
    with pytest.raises(ValueError, match=r"Received: '.*absent', which is not there"):
        drawn(tmp_path / "absent", tmp_path, "the cat")
    BertEncoder(small_config()).save_pretrained(tmp_path / "wordless")
    with pytest.raises(ValueError, match=r"`model` must be a model or run directory with a vocabulary\. Received: "):
        drawn(tmp_path / "wordless", tmp_path, "the cat")
    WordPieceTokenizer(VOCABULARY).save_pretrained(tmp_path / "no_encoder")
    with pytest.raises(ValueError, match=r"which has no config\.json"):
        drawn(tmp_path / "no_encoder", tmp_path, "the cat")


def test_refuses_a_vocabulary_that_the_model_has_no_rows_for(tmp_path):
    save_model(tmp_path / "model", [*VOCABULARY, *map(str, range(50))])
    with pytest.raises(ValueError, match=r"a row for every token of its vocabulary\. Received: 68 tokens, 37 rows"):
        drawn(tmp_path / "model", tmp_path, "the cat")


def test_refuses_a_pair_where_the_model_knows_one_segment(tmp_path):
    save_model(tmp_path / "model", type_vocab_size=1)
    with pytest.raises(ValueError, match=r"`text_pair` needs a model with two segments\. Received: type_vocab_size=1"):
        drawn(tmp_path / "model", tmp_path, "the cat", text_pair="sat")


def test_without_the_extra_it_names_what_to_install(model, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "jinja2" else importlib)
    with pytest.raises(ValueError, match=r"pip install 'keras-bert-impl\[report\]'\. Missing: jinja2"):
        drawn(model, tmp_path, "the cat")
