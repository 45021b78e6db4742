"""Logs of other harnesses, as tables of responses: one file a format, one row of :data:`IMPORTERS` each."""

from unslant.questions.formats import whole_records
from unslant.responses.importers.joining import joined
from unslant.responses.importers.logged import Log, Logged
from unslant.responses.importers.registry import IMPORTERS, Head, Importer, importers, load_logs

__all__ = ["IMPORTERS", "Head", "Importer", "Log", "Logged", "importers", "joined", "load_logs", "whole_records"]
