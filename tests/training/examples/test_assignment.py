import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.training.corpus.documents import Document
from keras_bert_impl.training.corpus.input_files import SourceFile
from keras_bert_impl.training.corpus.survey import DUPLICATE, HELD_OUT, SPLIT_OF_FATE, TRAIN, Survey
from keras_bert_impl.training.examples import blocks
from keras_bert_impl.training.examples.assignment import assignments
from keras_bert_impl.training.examples.blocks import block_size, blocks_of_documents

corpora = st.lists(
    st.lists(st.tuples(st.sampled_from([TRAIN, TRAIN, HELD_OUT, DUPLICATE]), st.integers(1, 40)), max_size=15),
    min_size=1,
)


@pytest.fixture(scope="module", autouse=True)
def small_blocks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "SMALLEST", 50)
        yield


@given(corpora)
def test_files_apart_give_the_blocks_of_the_whole_corpus(corpus):
    facts = [fact for file in corpus for fact in file]
    documents = [Document((f"{number:03d}" + "x" * size,)) for number, (_, size) in enumerate(facts)]
    sizes = np.array([document.size for document in documents], np.uint32)
    survey = Survey(
        files=tuple(SourceFile(f"{number}.txt", 1, documents=len(file)) for number, file in enumerate(corpus)),
        fates=np.array([fate for fate, _ in facts], np.uint8),
        size=int(sizes.sum()),
    )
    kept = [
        (SPLIT_OF_FATE[fate], document)
        for (fate, _), document in zip(facts, documents, strict=True)
        if fate in SPLIT_OF_FATE
    ]
    expected = {
        (block.split, block.number): list(block.documents)
        for block in blocks_of_documents(kept, block_size(survey.size))
    }
    found: dict[tuple[str, int], list[Document]] = {}
    for assignment in assignments(survey, sizes):
        own = documents[assignment.first : assignment.first + assignment.file.documents]
        for split, block, number, document in assignment.blocks(own):
            assert documents[number] is document
            found.setdefault((split, block), []).append(document)
    assert found == expected
