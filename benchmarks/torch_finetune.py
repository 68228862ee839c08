"""Fine-tuning by Hugging Face's Trainer on PyTorch, run by `finetune_runs`.

Needs PyTorch, transformers, accelerate, scikit-learn, scipy and seqeval only, so that any environment that has them
will do. Prints a line of JSON: the best epoch's metric, and the training examples a second, without evaluations.
"""

import json
import sys
import tempfile
import time

import numpy as np
import torch
import transformers


def main(job_file):
    """Fine-tunes as the job says.

    Args:
        job_file: JSON with model, task, labels, train, dev (lists of examples), max_length, batch_size, epochs,
            learning_rate, warmup_share, weight_decay, seed and threads.
    """
    with open(job_file, encoding="utf-8") as file:  # noqa: PTH123
        job = json.load(file)
    torch.set_num_threads(job["threads"])
    transformers.logging.set_verbosity_error()
    tokenizer = transformers.AutoTokenizer.from_pretrained(job["model"])
    features, collator, model_class, metric = TASKS[job["task"]](job, tokenizer)
    transformers.set_seed(job["seed"])
    options = {"num_labels": len(job["labels"])}
    if job["task"] == "regression":
        options["problem_type"] = "regression"
    model = model_class.from_pretrained(job["model"], **options)
    clock = EpochClock()
    with tempfile.TemporaryDirectory() as folder:
        trainer = transformers.Trainer(
            model=model,
            args=arguments(job, folder),
            train_dataset=features(job["train"]),
            eval_dataset=features(job["dev"]),
            data_collator=collator,
            compute_metrics=lambda prediction: {"metric": metric(prediction)},
            callbacks=[clock],
        )
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
    metrics = [line["eval_metric"] for line in trainer.state.log_history if "eval_metric" in line]
    rate = len(job["train"]) * job["epochs"] / clock.seconds
    print(json.dumps({"metric": max(metrics), "examples_per_second": rate}))


class EpochClock(transformers.TrainerCallback):
    """Adds up the seconds of training; evaluations come after the end of an epoch."""

    seconds = 0.0

    def on_epoch_begin(self, *arguments, **more):
        self.started = time.perf_counter()

    def on_epoch_end(self, *arguments, **more):
        self.seconds += time.perf_counter() - self.started


def arguments(job, folder):
    return transformers.TrainingArguments(
        output_dir=folder,
        use_cpu=True,
        seed=job["seed"],
        per_device_train_batch_size=job["batch_size"],
        per_device_eval_batch_size=job["batch_size"],
        num_train_epochs=job["epochs"],
        learning_rate=job["learning_rate"],
        warmup_steps=job["warmup_share"],
        weight_decay=job["weight_decay"],
        adam_epsilon=1e-6,
        max_grad_norm=1.0,
        lr_scheduler_type="linear",
        eval_strategy="epoch",
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )


def texts(job, tokenizer):
    """Classification and regression of texts and pairs."""
    is_number = job["task"] == "regression"

    def features(examples):
        return [
            {
                **tokenizer(e["text"], e.get("text_pair"), truncation=True, max_length=job["max_length"]),
                "labels": float(e["label"]) if is_number else job["labels"].index(e["label"]),
            }
            for e in examples
        ]

    def metric(prediction):
        from scipy.stats import pearsonr

        if is_number:
            return float(pearsonr(prediction.predictions[:, 0], prediction.label_ids).statistic)
        return float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())

    collator = transformers.DataCollatorWithPadding(tokenizer)
    return features, collator, transformers.AutoModelForSequenceClassification, metric


def words(job, tokenizer):
    """Tagging of words by their first piece."""

    def features(examples):
        rows = []
        for e in examples:
            row = tokenizer(e["words"], is_split_into_words=True, truncation=True, max_length=job["max_length"])
            numbers = row.word_ids()
            first = [n is not None and n != m for n, m in zip(numbers, [None, *numbers], strict=False)]
            row["labels"] = [
                job["labels"].index(e["tags"][n]) if f else -100 for n, f in zip(numbers, first, strict=True)
            ]
            rows.append(dict(row))
        return rows

    def metric(prediction):
        from seqeval.metrics import f1_score

        ids = prediction.predictions.argmax(-1)
        names = np.array(job["labels"], object)
        used = prediction.label_ids != -100
        right = [names[row[u]].tolist() for row, u in zip(prediction.label_ids, used, strict=True)]
        given = [names[row[u]].tolist() for row, u in zip(ids, used, strict=True)]
        return float(f1_score(right, given))

    collator = transformers.DataCollatorForTokenClassification(tokenizer)
    return features, collator, transformers.AutoModelForTokenClassification, metric


TASKS = {"classification": texts, "regression": texts, "tagging": words}

if __name__ == "__main__":
    main(*sys.argv[1:])
