"""Names in a TFLite file, by which inputs and outputs are bound."""

SIGNATURE = "token_ids"
"""The signature that takes ids, called as that of a SavedModel."""

TEXT_SIGNATURE = "text"
"""The signature that takes texts, strings of shape `(1,)`: `text`, and `text_pair` of a model for pairs."""

TOKEN_IDS, SEGMENT_IDS, PADDING_MASK = INPUTS = ("token_ids", "segment_ids", "padding_mask")
"""The inputs, int32, `(1, length)`."""

MEANINGS = {
    "token_ids": "ids of [CLS], the pieces of the text, [SEP]; of a pair, those of the second text and [SEP] too; then "
    "the padding id up to the length",
    "segment_ids": "0 for the first text and padding, 1 for the second",
    "padding_mask": "1 for ids of the text, 0 for padding",
    "text": "the text, UTF-8",
    "text_pair": "the second text, UTF-8",
    "num_tokens": "ids of the row, with [CLS] and [SEP]",
    "truncated": "whether the end of a text was left out",
    "mask_positions": "places of the mask tokens in the row",
    "logits": "scores of the labels, in their order; of a model for tagging those of each token",
    "probabilities": "probabilities of the labels, in their order",
    "value": "the number",
    "start_logits": "score of each token as the first of the answer",
    "end_logits": "score of each token as the last of the answer",
    "sentence_embedding": "mean of the tokens' vectors, of length 1",
    "sequence_output": "vector of each token, 0 at padding",
    "pooled_output": "what the pooler makes of the vector of [CLS]",
    "mlm_logits": "scores of the vocabulary's tokens at each mask",
    "nsp_logits": "scores of: the second text follows the first; it does not",
}
"""What each input and output means."""
