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


def said_of(*lines):
    said = []
    narrate = Narrator(said.append, clear=lambda: None)
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


def test_where_every_step_was_skipped_there_is_no_loss_to_tell():
    values = line(4)
    del values["loss"], values["mlm_loss"], values["mlm_accuracy"]
    assert said_of(values) == ["Step 4, length 16: no step taken since the line before"]
