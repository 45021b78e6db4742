"""Local models of transformers, scored through one prefix tree a batch."""

import importlib
import warnings

with warnings.catch_warnings():
    # transformers imports this by itself, and every notebook without ipywidgets then begins with a warning
    warnings.filterwarnings("ignore", message="IProgress not found")
    importlib.import_module("tqdm.auto")
