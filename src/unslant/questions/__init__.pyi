"""The names of the room, each with the module that it is imported from when it is first used."""

from .loaders import EMBEDDED as EMBEDDED
from .loaders import SKEWED as SKEWED
from .loaders import load_questions as load_questions
from .loaders import write_questions as write_questions
from .pinned import find_pinned as find_pinned
from .question import MAX_OPTIONS as MAX_OPTIONS
from .question import MIN_OPTIONS as MIN_OPTIONS
from .question import JudgingQuestion as JudgingQuestion
from .question import LoadReport as LoadReport
from .question import MathQuestion as MathQuestion
from .question import Question as Question
from .question import QuestionSet as QuestionSet
from .recipes import RECIPES as RECIPES
from .recipes import Recipe as Recipe
from .statements import load_judging as load_judging
from .statements import load_math as load_math
