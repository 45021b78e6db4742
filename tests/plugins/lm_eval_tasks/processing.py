"""What the tasks of this folder compute."""


def with_query(dataset):
    """Documents whose options are in no field, only in the text."""

    def one(doc):
        lines = [f"{letter}. {text}" for letter, text in zip("ABCD", doc["options"], strict=True)]
        query = "\n".join([f"Question: {doc['question']}", *lines, "Answer:"])
        return {"query": query, "letters": list("ABCD"), "gold": doc["answer"]}

    return dataset.map(one, remove_columns=["options", "question", "answer"])
