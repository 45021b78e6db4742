"""How a presentation is worded and how its answer is elicited."""

from unslant.prompts.decision import Decision
from unslant.prompts.elicitation import Cloze, Counterfactual, Elicitation, Writer
from unslant.prompts.prompt import Message, Prompt
from unslant.prompts.templates import PromptTemplate, load_template, template_names, usual_template

__all__ = [
    "Cloze", "Counterfactual", "Decision", "Elicitation", "Message", "Prompt", "PromptTemplate", "Writer",
    "load_template", "template_names", "usual_template",
]  # fmt: skip
