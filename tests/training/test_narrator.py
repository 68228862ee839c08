import math

from keras_bert_impl.training.narrator import Narrator


def line(step, held_out=None, **values):
    return {
        "step": step,
        "length": 16,
        "loss": 6.7,
        "mlm_loss": 6.0,
        "mlm_accuracy": 0.1,
        "learning_rate": 0.25,
        **({f"held_out_{name}": value for name, value in held_out.items()} if held_out else {}),
        **values,
    }


def held_out(mlm_loss):
    return {
        "mlm_loss": mlm_loss,
        "unigram_loss": 6.25,
        "mlm_accuracy": 0.21,
        "nsp_accuracy": 0.7,
        "nsp_majority_share": 0.53,
    }


def said_of(*lines, warmup_steps=0, vocab_size=1000):
    said = []
    narrate = Narrator(said.append, clear=lambda: None, vocab_size=vocab_size, warmup_steps=warmup_steps)
    for values in lines:
        narrate(values)
    return said


def test_like_losses_stand_side_by_side_and_accuracy_beside_the_commoner_label():
    assert said_of(line(4, held_out(5.5))) == [
        "Step 4, length 16: MLM loss 6.000 in training, 5.500 held out (unigram 6.250), accuracy 21.0%; "
        "NSP accuracy 70.0% (always the commoner label: 53.0%)"
    ]


def test_without_next_sentence_prediction_nothing_is_told_of_it():
    values = {name: value for name, value in held_out(5.5).items() if "nsp" not in name}
    assert said_of(line(4, values)) == [
        "Step 4, length 16: MLM loss 6.000 in training, 5.500 held out (unigram 6.250), accuracy 21.0%"
    ]


def test_without_held_out_examples_the_training_loss_is_told():
    assert said_of(line(4)) == ["Step 4, length 16: MLM loss 6.000 in training, accuracy 10.0%"]


def test_a_loss_above_that_of_guessing_is_warned_of_once():
    said = said_of(line(4, held_out(9.0)), line(8, held_out(121804.0)))
    assert [text for text in said if text.startswith("Warning")] == [
        "Warning: the held-out MLM loss is above 6.908, that of guessing evenly among the 1000 tokens, so training "
        "does harm; start anew with a lower `learning_rate` (now 0.25)."
    ]


def test_a_training_loss_above_that_of_guessing_is_warned_of_too():
    assert "the training MLM loss is above 6.908" in said_of(line(4, mlm_loss=9.0))[1]


def test_a_fresh_model_and_the_warm_up_are_not_warned_of():
    assert len(said_of(line(4, held_out(9.0)), warmup_steps=4)) == 1
    assert len(said_of(line(4, held_out(math.log(1000) + 0.02)))) == 1
