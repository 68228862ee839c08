"""Training steps of Hugging Face's BERT on PyTorch, one for each line of the input; run by `step_peers`.

Needs PyTorch and transformers only, so that any environment that has them will do.
"""

import json
import sys

import numpy as np
import torch
import transformers


def main(batch_file, sizes, threads):
    """Prints the loss of each step."""
    torch.set_num_threads(int(threads))
    batch = {name: torch.from_numpy(values) for name, values in np.load(batch_file).items()}
    model = transformers.BertForPreTraining(transformers.BertConfig(**json.loads(sizes)))
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
    # Its loss wants a label at every position, -100 where none is to be predicted.
    labels = torch.full(batch["token_ids"].shape, -100)
    used = batch["mask_weights"] > 0
    rows = torch.arange(len(labels))[:, None].expand_as(used)
    labels[rows[used], batch["mask_positions"][used].long()] = batch["mask_labels"][used].long()
    inputs = {
        "input_ids": batch["token_ids"].long(),
        "token_type_ids": batch["segment_ids"].long(),
        "attention_mask": batch["padding_mask"].long(),
        "labels": labels,
        "next_sentence_label": batch["next_sentence_labels"].long(),
    }
    for _ in sys.stdin:
        optimizer.zero_grad()
        loss = model(**inputs).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print(float(loss), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
