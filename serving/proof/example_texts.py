"""Texts of many kinds, the longest last."""

TEXTS = (
    "the [MASK] sat on the mat.",
    "[MASK] and [MASK]; or neither of them?",
    "no mask stands here",
    "",
    " \t\r\n ",
    "ÇA coûte 5 € à l'ÉCOLE, naïvely: [MASK]",
    "今天天气很[MASK]，我们去公园。",
    "ひらがなとカタカナ 한국어 [MASK] עברית العربية हिन्दी",
    "e\u0301 \u0130stanbul ΟΔΟΣ ﬁ ½ \U0001f469\u200d\U0001f4bb \x00\x07\ufffd\u200b [MASK]",
    "[mask] [ MASK ] [CLS] [SEP] [UNK] unaffable!!!",
    "x" * 250 + " [MASK] " + "ab" * 40,
    "a " * 40 + "[MASK] " + "word piece " * 60,
    "[MASK] " + "again and again " * 300,
)

# Each of them with another one, so that short and long ones meet in either order.
_OTHERS = tuple((text, TEXTS[(5 * i + 4) % len(TEXTS)]) for i, text in enumerate(TEXTS))

SINGLE_TEXTS = tuple((text,) for text in ("Ada Lovelace lived in London, and wrote a fine note.", *TEXTS))
PAIRS = (("the cat sat on the mat.", "a cat was sitting on a mat."), *_OTHERS)
QUESTIONS = (
    ("Where did Ada Lovelace live?", "Ada Lovelace lived in London, and wrote a fine note."),
    ("why?", "x y x y x y"),
    *((context, question) for question, context in _OTHERS),
    ("how often is it said? " * 20, "again and again " * 300),
)
