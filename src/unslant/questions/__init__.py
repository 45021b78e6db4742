"""What is asked: question types, loaders and the built-in set."""

from unslant.questions.question import MAX_OPTIONS, MIN_OPTIONS, JudgingQuestion, MathQuestion, Question

__all__ = ["MAX_OPTIONS", "MIN_OPTIONS", "JudgingQuestion", "MathQuestion", "Question"]
