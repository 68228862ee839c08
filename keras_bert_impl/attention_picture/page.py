"""The picture as a page. Tokens are text there, so that the browser finds the letters."""

import base64
import io
import unicodedata
from pathlib import Path

import numpy as np

from keras_bert_impl.attention_picture.attention import Attention
from keras_bert_impl.attention_picture.colours import SHADES, TICKS, palette, place, shade

_TEMPLATE = Path(__file__).with_name("page.html")
_CELL = 10
_LONGEST_LABEL = 18
_NARROW, _WIDE = 5.0, 9.0  # at the labels' font size of 8 units


def attention_page(attention: Attention) -> str:
    """Returns the page: one SVG for each head; their labels are written once and used by all."""
    import jinja2

    template = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    ).from_string(_TEMPLATE.read_text(encoding="utf-8"))
    colours = palette()
    labels = [_shortened(token) for token in attention.tokens]
    margin = round(max(map(_width, labels)) + 8)
    return template.render(
        attention=attention,
        labels=labels,
        cell=_CELL,
        margin=margin,
        side=_CELL * len(labels),
        layers=[
            [{"image": _image(shade(head), colours), **_directions(head)} for head in layer]
            for layer in attention.probabilities
        ],
        scale=_image(np.arange(SHADES, dtype="uint8")[None], colours),
        ticks=[(f"{tick:g}", f"{place(tick):.1%}") for tick in TICKS],
    )


def _image(shades: np.ndarray, colours: np.ndarray) -> str:
    """Returns one pixel for each value as the address of a PNG image."""
    from PIL import Image

    image = Image.fromarray(shades)
    image.putpalette(colours.tobytes())
    stream = io.BytesIO()
    image.save(stream, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode("ascii")


def _directions(head: np.ndarray) -> dict[str, float]:
    """Returns the mean share that goes to earlier tokens, to the token itself and to later ones."""
    rows = len(head)
    return {
        "back": np.tril(head, -1).sum() / rows,
        "itself": np.trace(head) / rows,
        "ahead": np.triu(head, 1).sum() / rows,
    }


def _shortened(label: str) -> str:
    """Returns a label that leaves room for the heat map."""
    return label if len(label) <= _LONGEST_LABEL else label[: _LONGEST_LABEL - 1] + "…"


def _width(label: str) -> float:
    return sum(
        _WIDE if unicodedata.east_asian_width(letter) in "WF" else _NARROW
        for letter in label
        if not unicodedata.combining(letter)
    )
