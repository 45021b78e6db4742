"""What is asked: question types, loaders and the built-in set."""

from unslant.questions.loaders import EMBEDDED, SKEWED, load_questions, write_questions
from unslant.questions.pinned import find_pinned
from unslant.questions.question import MAX_OPTIONS, MIN_OPTIONS, JudgingQuestion, MathQuestion, Question
from unslant.questions.question_set import LoadReport, QuestionSet
from unslant.questions.recipes import RECIPES, Recipe, recipes
from unslant.questions.statements import load_judging, load_math

__all__ = [
    "EMBEDDED", "MAX_OPTIONS", "MIN_OPTIONS", "RECIPES", "SKEWED", "JudgingQuestion", "LoadReport", "MathQuestion",
    "Question", "QuestionSet", "Recipe", "find_pinned", "load_judging", "load_math", "load_questions", "recipes",
    "write_questions",
]  # fmt: skip
