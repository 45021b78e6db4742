"""The rule of ReCoRD, whose own code needs an older transformers: any of several answers is right."""


def process_results(doc, results):
    best = max(range(len(results)), key=lambda i: results[i][0])
    return {"em": float(doc["entities"][best] in doc["answers"])}
